"""The terminal form: every state of a field, growth, what a model writes, and its place in a live console."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from constrained.stream import Close, DeltaStream, Field, Op, Open, Set, Text
from constrained.terminal.form import MARKS, Form, State
from constrained.terminal.show import live

ORDER = ("/name", "/nick", "/hobbies", "/hobbies/*/name", "/hobbies/*/level", "/address", "/address/street")


def shown(form: Form, max_rows: int | None = None) -> list[str]:
    """The form's lines as text, without trailing blanks."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(form.render(max_rows))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def filled(document: Any, order: tuple[str, ...] = ORDER) -> Form:
    form = Form(order)
    stream = DeltaStream(None)
    for op in [*stream.feed(json.dumps(document).encode()), *stream.finish()]:
        form.apply(op)
    return form


def after(*ops: Op) -> Form:
    form = Form(ORDER)
    for op in ops:
        form.apply(op)
    return form


def mark(state: State) -> str:
    return MARKS[state][0]


def test_every_state_has_a_mark_of_its_own() -> None:
    assert len({symbol for symbol, _ in MARKS.values()}) == len(MARKS)


def test_all_known_fields_are_drawn_before_any_op() -> None:
    lines = shown(Form(ORDER, title="Person"))
    assert lines[0] == "Person"
    assert [line.split()[1] for line in lines[1:]] == ["name", "nick", "hobbies", "address", "street"]
    assert {line[0] for line in lines[1:]} == {mark("pending")}


def test_a_field_that_is_next_tells_what_it_may_be() -> None:
    assert f"{mark('next')} name     string | null" in shown(after(Open("", "object"), Field("/name", ("string", "null"))))
    enum = Field("/name", ("string", "null"), enum=("low", None))
    assert f"{mark('next')} name     low | null" in shown(after(Open("", "object"), enum))


def test_a_string_grows_behind_a_cursor() -> None:
    ops: list[Op] = [Open("", "object"), Open("/name", "string"), Text("/name", "An"), Text("/name", "na")]
    assert f"{mark('streaming')} name     Anna▌" in shown(after(*ops))
    assert f"{mark('complete')} name     Anna" in shown(after(*ops, Close("/name")))


def test_scalars_appear_whole_and_a_long_number_as_it_was_written() -> None:
    form = filled({"a": None, "b": True, "c": -1.5})
    assert [line.split()[-1] for line in shown(form)[-3:]] == ["null", "true", "-1.5"]
    exact = after(Open("", "object"), Set("/name", 1e400, "1e400"))
    assert f"{mark('complete')} name     1e400" in shown(exact)


def test_elements_append_with_the_members_that_the_schema_knows() -> None:
    form = after(Open("", "object"), Open("/hobbies", "array"), Open("/hobbies/0", "object"), Set("/hobbies/0/name", "chess"))
    lines = shown(form)
    at = next(i for i, line in enumerate(lines) if "[0]" in line)
    assert [line.split()[:2] for line in lines[at + 1 : at + 3]] == [[mark("complete"), "name"], [mark("pending"), "level"]]


def test_a_field_that_was_skipped_is_absent_once_its_parent_closes() -> None:
    lines = shown(filled({"name": "Anna", "hobbies": [], "address": {}}))
    assert f"{mark('absent')} nick" in lines
    assert f"{mark('absent')}   street" in lines
    assert f"{mark('complete')} hobbies  [ ]" in lines


def test_an_interrupted_form_keeps_what_is_complete_and_marks_what_is_open() -> None:
    form = after(Open("", "object"), Set("/name", "Anna"), Open("/hobbies", "array"), Field("/hobbies/0", ("object",)))
    form.interrupt()
    lines = shown(form)
    assert f"{mark('complete')} name      Anna" in lines
    assert f"{mark('interrupted')} hobbies" in lines
    assert f"{mark('interrupted')}   [0]" in lines
    assert f"{mark('pending')} nick      ········" in lines


@pytest.mark.parametrize("document", ["text", 7, [], {}, [[1], {"a": [2]}]])
def test_a_document_of_any_shape_has_a_form(document: Any) -> None:
    assert len(shown(filled(document, order=()))) == {"text": 1, "7": 1, "[]": 0, "{}": 0}.get(str(document), 5)


def test_keys_with_slashes_and_tildes_are_shown_as_keys() -> None:
    assert shown(filled({"a/b~c": 1}, order=("/a~1b~0c",))) == [f"{mark('complete')} a/b~c 1"]


def test_what_the_model_writes_cannot_steer_the_terminal() -> None:
    text = "\n".join(shown(filled({"k\x1b[2J": "a\x1b[31m\r\n\x07\x9b\u202eb"}, order=())))
    assert text == f"{mark('complete')} k␛[2J a␛[31m␍⏎␇\ufffdb"


def test_markup_of_rich_in_the_text_is_text() -> None:
    assert shown(filled({"k": "[red]x[/red]"}, order=())) == [f"{mark('complete')} k [red]x[/red]"]


def test_a_low_screen_shows_the_lines_around_the_one_being_written() -> None:
    form = filled(list(range(100)), order=())
    assert len(shown(form)) == 100
    lines = shown(form, max_rows=10)
    assert len(lines) == 10
    assert lines[-1].split() == [mark("complete"), "[99]", "99"]


def test_a_long_text_is_cut_to_its_end_only_while_live() -> None:
    form = filled({"name": "a" * 2000 + "z"})
    assert "a" * 2000 + "z" in "".join(line[11:] for line in shown(form))
    live_text = "".join(line[11:] for line in shown(form, max_rows=50))
    assert live_text.startswith("…a")
    assert live_text.count("a") < 500


def _feed(console: Console, stop_after: int | None = None) -> None:
    stream = DeltaStream(None)
    data = json.dumps({"name": "Anna", "age": 34}).encode()
    with live(Form(("/name", "/age")), console) as show:
        for i, byte in enumerate(data):
            if i == stop_after:
                raise KeyboardInterrupt
            show(stream.feed(bytes([byte])))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_whole_form_stays_on_the_console(is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=40, height=12, force_terminal=is_terminal, color_system=None)
    _feed(console)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[-2].endswith("✓ name Anna")
    assert lines[-1] == "✓ age  34"
    assert is_terminal == (len(lines) > 2)


def test_where_the_run_breaks_off_the_form_says_so() -> None:
    console = Console(file=io.StringIO(), width=40, color_system=None)
    with pytest.raises(KeyboardInterrupt):
        _feed(console, stop_after=12)
    assert "✗ name An" in console.file.getvalue()
