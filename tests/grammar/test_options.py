"""What a caller may choose: formats of their own, OpenAPI's `nullable`, and how long a compile may take."""

from __future__ import annotations

from typing import Any

import pytest

from constrained import CompileOptions, check_json_schema
from constrained.errors import FuelError, OptionError, UnsupportedKeywordError
from constrained.options import Limits
from tests.grammars import check, grammar_of

PLATE = {"plate": "[A-Z]{2}-[0-9]{1,4}"}


def test_a_custom_format_is_a_regular_expression_for_the_whole_string() -> None:
    check({"format": "plate"}, accepts=["KA-123", 5], rejects=["KA-12345", "xKA-1", "ka-1"], custom_formats=PLATE)
    check({"not": {"format": "plate"}}, accepts=["xKA-1", ""], rejects=["KA-1", 5], custom_formats=PLATE)
    check({"format": "plate", "maxLength": 4}, accepts=["KA-1"], rejects=["KA-12"], custom_formats=PLATE)


def test_a_custom_format_takes_the_place_of_a_known_one() -> None:
    check({"format": "date"}, accepts=["today"], rejects=["2020-01-01"], custom_formats={"date": "today|tomorrow"})
    check({"format": "idn-hostname"}, accepts=["a.de"], rejects=["A"], custom_formats={"idn-hostname": "[a-z]+(\\.[a-z]+)*"})


def test_custom_formats_assert_nothing_where_formats_are_annotations() -> None:
    check({"format": "plate"}, accepts=["x"], rejects=[], custom_formats=PLATE, formats="annotate")


def test_a_custom_format_that_is_no_regular_expression() -> None:
    with pytest.raises(OptionError, match="'plate'") as caught:
        grammar_of(True, custom_formats={"plate": "("})
    assert caught.value.option == "custom_formats"


def test_unknown_formats_can_be_refused() -> None:
    with pytest.raises(UnsupportedKeywordError, match="'x-mine'") as caught:
        grammar_of({"items": {"format": "x-mine"}}, unknown_formats="refuse")
    assert (caught.value.pointer, caught.value.keyword) == ("/items", "format")
    check({"format": "plate"}, accepts=["KA-1"], rejects=["x"], unknown_formats="refuse", custom_formats=PLATE)
    check({"format": "x-mine"}, accepts=["x"], rejects=[], unknown_formats="refuse", formats="annotate")


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": ["string", "integer"], "nullable": True}, ["a", 1, None], [True]),
        ({"type": "string", "nullable": False}, ["a"], [None]),
        # Without a type there is nothing to widen, and an enum lists null by itself.
        ({"nullable": True, "enum": ["a"]}, ["a"], [None]),
        ({"type": "string", "nullable": True, "enum": ["a"]}, ["a"], [None]),
        ({"type": "string", "nullable": True, "enum": ["a", None]}, ["a", None], ["b"]),
        ({"properties": {"nullable": {"type": "string", "nullable": True}}}, [{"nullable": None}], [{"nullable": 1}]),
        ({"not": {"type": "string", "nullable": True}}, [1], ["a", None]),
    ],
)
def test_nullable(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects, nullable=True)


def test_nullable_is_an_annotation_without_its_option() -> None:
    check({"type": "string", "nullable": True}, accepts=["a"], rejects=[None])


def test_a_compile_that_takes_too_long_names_the_place() -> None:
    with pytest.raises(FuelError, match="timeout_s") as caught:
        grammar_of({"items": {"maxItems": 3}}, limits=Limits(timeout_s=0))
    assert caught.value.pointer == ""


def test_time_runs_out_inside_string_languages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**9))
    monkeypatch.setattr("constrained.grammar.language.clock.monotonic", lambda: next(ticks))
    schema = {"properties": {"a": {"type": "null"}, "b": {"allOf": [{"pattern": "^a.{9}z"}, {"pattern": "b.{9}y$"}]}}}
    with pytest.raises(FuelError, match="took more than 30 s") as caught:
        grammar_of(schema, limits=Limits(timeout_s=30))
    assert caught.value.pointer == "/properties/b"


def test_what_check_says_of_formats_and_nullable() -> None:
    schema = {
        "type": "string",
        "nullable": True,
        "anyOf": [
            {"format": "plate"},
            {"format": "x-mine"},
            {"format": "date"},
            {"format": "idn-hostname"},
            {"nullable": True},
        ],
    }
    report = check_json_schema(schema, CompileOptions(custom_formats=PLATE, nullable=True))
    found = {one.pointer: (one.status, one.reason) for one in report.keywords}
    assert found["/nullable"] == ("enforced", None)
    assert found["/anyOf/0/format"] == ("enforced", None)
    assert found["/anyOf/1/format"] == ("annotation", "no format 'x-mine' is known")
    assert found["/anyOf/2/format"] == ("enforced", None)
    assert found["/anyOf/3/format"][0] == "refused"
    assert found["/anyOf/4/nullable"] == ("annotation", "there is no type that it could widen")


def test_what_check_says_where_formats_are_annotations() -> None:
    report = check_json_schema({"format": "date"}, CompileOptions(formats="annotate"))
    assert [(one.status, one.reason) for one in report.keywords] == [("annotation", "formats='annotate'")]
