"""Schemas that are given as text."""

from __future__ import annotations

import json

import pytest

from constrained import check_json_schema, compile_json_schema
from constrained.errors import SchemaError
from constrained.grammar.reading import read
from tests.grammars import accepts, byte_vocabulary

SCHEMA = {"type": "object", "properties": {"é": {"enum": ["a", 10**30, 0.5]}}, "required": ["é"], "additionalProperties": False}


@pytest.mark.parametrize("text", [json.dumps(SCHEMA), json.dumps(SCHEMA).encode(), bytearray(json.dumps(SCHEMA).encode())])
def test_a_text_is_compiled_as_what_it_says(text: str | bytes | bytearray) -> None:
    grammar = compile_json_schema(text, byte_vocabulary())
    given = compile_json_schema(SCHEMA, byte_vocabulary())
    assert grammar.schema == SCHEMA
    assert grammar.schema_hash == given.schema_hash
    assert grammar.source_of == given.source_of
    assert grammar.min_bytes == given.min_bytes
    assert accepts(grammar, '{"é":"a"}')
    assert not accepts(grammar, '{"é":"b"}')
    assert check_json_schema(text).supported


def test_what_the_caller_does_to_the_schema_of_a_grammar_changes_no_grammar() -> None:
    grammar = compile_json_schema(json.dumps(SCHEMA), byte_vocabulary())
    grammar.schema["properties"]["é"]["enum"] = ["b"]
    assert accepts(grammar, '{"é":"a"}')


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"type": "string"} x', "[" * 100_000, '"\n"', b"\xff", "1" * 5000])
def test_other_texts_are_refused(text: str | bytes) -> None:
    with pytest.raises(SchemaError, match="not JSON"):
        compile_json_schema(text, byte_vocabulary())
    report = check_json_schema(text)
    assert not report.supported
    assert "not JSON" in str(report.error)


@pytest.mark.parametrize(("text", "found"), [('"string"', "a string"), ("[]", "an array"), ("1", "a number"), ("null", "null")])
def test_a_text_of_another_value_is_no_schema(text: str, found: str) -> None:
    with pytest.raises(SchemaError, match=f"an object or a boolean, not {found}"):
        compile_json_schema(text, byte_vocabulary())
    assert accepts(compile_json_schema("true", byte_vocabulary()), "[1]")


@pytest.mark.parametrize(
    "text",
    ['"\\ud800"', "[" * 300 + "]" * 300, "-0", "-0.0", "1e400", "9007199254740993.0", "NaN", '{"a": 1, "a": 2}', "1" * 40],
)
def test_texts_are_read_as_by_the_standard_library(text: str) -> None:
    assert repr(read(text)) == repr(json.loads(text))
