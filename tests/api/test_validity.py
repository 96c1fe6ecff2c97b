"""The standard validator's verdict, also where the document is deep or its numbers are large."""

from __future__ import annotations

import pytest

from api.validity import DocumentValidator

NESTED = {"type": "array", "items": {"$ref": "#"}}


@pytest.mark.parametrize(
    ("schema", "text", "valid"),
    [
        ({"type": "integer"}, b"5", True),
        ({"type": "integer"}, b"5.5", False),
        ({"type": "integer"}, b"1" * 6000, True),
        ({"type": "integer", "maximum": 10}, b"1" * 6000, False),
        ({"anyOf": [{"maximum": 10}, {"minimum": 11}]}, b"1" * 6000, True),
        ({"type": "string"}, b'"cut', False),
        ({"type": "string"}, b"", False),
        ({"type": "string"}, b'"\xff"', False),
        ({"const": 0.1}, b"0.10", True),
        (True, b"null", True),
        (False, b"null", False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}, b"[1]", False),
    ],
)
def test_verdicts(schema: object, text: bytes, valid: bool) -> None:
    assert DocumentValidator(schema).is_valid(text) is valid


@pytest.mark.parametrize(("leaf", "valid"), [(b"[]", True), (b"1", False)])
def test_a_document_deeper_than_the_stack_is_judged_all_the_same(leaf: bytes, valid: bool) -> None:
    assert DocumentValidator(NESTED).is_valid(b"[" * 2000 + leaf + b"]" * 2000) is valid
