"""Reading a Lark text: what it may hold, and the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained.errors import GrammarError, GrammarFuelError, UnsupportedGrammarError
from constrained.grammar.context_free import SchemaTerminal
from constrained.grammar.lark import load_lark
from constrained.grammar.lark.directives import take_schemas

ERRORS: list[tuple[str, type[GrammarError], str]] = [
    ("start: a", GrammarError, "'a' used but not defined"),
    ("start: (", GrammarError, "not a Lark grammar"),
    ("", GrammarError, "no rule 'start'"),
    ('begin: "a"', GrammarError, "'start'"),
    (r"start: A\nA: /(a)\1/".replace(r"\n", "\n"), UnsupportedGrammarError, "backreference.*in 'A'"),
    ("start: A\nA: /a(?!b)/", UnsupportedGrammarError, "lookahead.*in 'A'"),
    ("%import .own (x)\nstart: x", UnsupportedGrammarError, "own library"),
    ("%import nothing.x\nstart: x", GrammarError, "nothing.lark"),
    ("start: A\n%declare A", UnsupportedGrammarError, "in 'A'"),
    ("start: %json {", GrammarError, "%json"),
    ("start: A\nA: B\nB: A", GrammarError, "[Rr]ecursion"),
    ("start: " + " ".join(f'"{number}"?' for number in range(30)), GrammarFuelError, "productions.*in 'start'"),
    ("start: x{x}\nx{y}: x{x{y}}", GrammarFuelError, "template"),
]


@pytest.mark.parametrize(("text", "kind", "message"), ERRORS)
def test_errors_name_the_place(text: str, kind: type[GrammarError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        load_lark(text)
    assert caught.value.place == "grammar"


def test_no_file_of_the_machine_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.lark").write_text('x: "secret"', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for statement in ("%import .own.x", "%import own.x"):
        with pytest.raises(GrammarError) as caught:
            load_lark(f"{statement}\nstart: x")
        assert "secret" not in str(caught.value)


def test_what_shapes_the_tree_only_is_left_out() -> None:
    grammar = load_lark('?start: (a | b)+ -> top\n!a.2: "x"i\nb: A\nA.-1: "y".."z"\n%ignore " "\n')
    assert grammar.ignored == ("__IGNORE_0",)
    assert {"start", "a", "b"} <= grammar.rules.keys()


def test_json_stands_where_a_terminal_may() -> None:
    text = 'start: "%json" /%json/ %json {"type": "object", "x": "}"} | P // %json\n'
    rewritten, schemas = take_schemas(text, {"P": True})
    assert schemas == {"P": True, "JSON__1": {"type": "object", "x": "}"}}
    assert rewritten.startswith('start: "%json" /%json/ JSON__1 | P // %json\n')
    assert "%declare P JSON__1" in rewritten
    terminals = load_lark(text, schemas={"P": True}).terminals
    assert isinstance(terminals["P"], SchemaTerminal)
    assert isinstance(terminals["JSON__1"], SchemaTerminal)
