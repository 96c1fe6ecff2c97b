"""Which instances count: those whose flag a second opinion confirms and whose tokens spell their text."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cases, vocabularies

BYTES = vocabularies.load("byte")


def build(schema: Any, *tests: tuple[Any, bool]) -> cases.Case:
    return cases.build_case(
        {"id": "x", "schema": schema, "tests": [{"data": data, "valid": valid} for data, valid in tests]}, BYTES
    )


def test_an_instance_is_spelled_with_blanks_and_unescaped() -> None:
    case = build({"type": "object"}, ({"a": [1, "é"]}, True))
    assert [bytes(document.token_ids).decode() for document in case.documents] == ['{"a": [1, "é"]}']
    assert case.documents[0].valid
    assert not case.set_apart


def test_a_flag_that_jsonschema_contradicts_is_set_apart() -> None:
    case = build({"type": "integer"}, (1, True), ("a", True), (2, False), ("b", False))
    assert [document.valid for document in case.documents] == [True, False]
    assert case.set_apart == {"flag true, jsonschema false": 1, "flag false, jsonschema true": 1}


def test_formats_are_asserted() -> None:
    case = build({"type": "string", "format": "ipv4"}, ("1.2.3.4", True), ("1.2.3.400", False))
    assert len(case.documents) == 2


def test_the_dialect_is_that_of_the_schema() -> None:
    """`dependencies` means something in draft 7, and nothing in 2020-12."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}
    assert len(build(schema, ({"a": 1}, False)).documents) == 1


def test_a_reference_that_leads_nowhere_is_set_apart_and_never_fetched() -> None:
    case = build({"$ref": "https://example.invalid/schema.json"}, (1, True))
    assert case.set_apart == {"jsonschema raises _WrappedReferencingError": 1}


def test_jsonschema_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "ORACLE_LIMIT_S", 0.05)
    case = build({"pattern": "^(a|aa|aaa)+$"}, ("a" * 60 + "!", False))
    assert case.set_apart == {"jsonschema takes too long": 1}


def test_text_that_is_not_unicode_is_set_apart() -> None:
    assert build({"type": "string"}, ("\ud800", True)).set_apart == {"tokens do not spell the text": 1}


def test_a_tokenizer_that_changes_the_text_is_noticed() -> None:
    lower = dataclasses.replace(BYTES, encode=lambda text: list(text.lower().encode()))
    row = {"id": "x", "schema": True, "tests": [{"data": "A", "valid": True}, {"data": "a", "valid": True}]}
    case = cases.build_case(row, lower)
    assert len(case.documents) == 1
    assert case.set_apart == {"tokens do not spell the text": 1}


def test_the_draw_is_repeatable_and_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({"id": number}) + "\n" for number in range(50)).encode()))
    rows = cases.read_rows(path)
    drawn = [row["id"] for row in cases.sample(rows, 10, seed=4)]
    assert drawn == sorted(drawn) == [row["id"] for row in cases.sample(rows, 10, seed=4)]
    assert len(set(drawn)) == 10
    assert drawn != [row["id"] for row in cases.sample(rows, 10, seed=5)]
    assert cases.sample(rows, 0, seed=4) == cases.sample(rows, 500, seed=4) == rows


def test_another_order_than_the_declared_one_is_set_apart() -> None:
    case = build({"properties": {"a": {}, "b": {}}}, ({"b": 1, "a": 2}, True), ({"a": 1, "b": 2}, True))
    assert len(case.documents) == 1
    assert case.set_apart == {"valid, not in declared order": 1}


def test_an_invalid_instance_counts_in_any_order() -> None:
    assert len(build({"properties": {"a": {"const": 1}, "b": {}}}, ({"b": 1, "a": 2}, False)).documents) == 1
