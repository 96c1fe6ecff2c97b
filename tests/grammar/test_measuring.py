"""What is looked at, and when: a mask needs to know which values there are, not how long they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrained.grammar.glimpses import Glimpses
from constrained.grammar.language import Language
from constrained.grammar.measuring import Measuring
from constrained.grammar.object_endings import EndingSearch
from constrained.grammar.shapes import NodeKey
from tests.grammars import grammar_of

DEEP = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"$ref": "#/$defs/deep"}}, "required": ["x"]}
OWING = {"type": "object", "properties": {"a": {"$ref": "#/$defs/deep"}}, "minProperties": 1, "$defs": {"deep": DEEP}}
CLASSES = {**OWING, "patternProperties": {"^x-": {"$ref": "#/$defs/deep"}}, "minProperties": 2}
COMPLEMENT = {**OWING, "not": {"properties": {"a": {"properties": {"x": {"const": "k"}}}, "b": {"type": "integer"}}}}
CONTAINS = {"type": "array", "items": {"$ref": "#/$defs/deep"}, "contains": {"required": ["y"]}, "$defs": {"deep": DEEP}}
VALUE = {"x": "", "y": {"x": "é"}}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A growth of the nodes each, while a test runs: whether it asked for lengths."""
    found: list[bool] = []
    run = Measuring.run

    def recorded(self: Measuring, key: tuple[int, ...]) -> None:
        found.append(not self.roughly)
        run(self, key)

    monkeypatch.setattr(Measuring, "run", recorded)
    return found


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (OWING, {"a": VALUE, "b": 1}),
        (CLASSES, {"a": VALUE, "x-1": VALUE}),
        (COMPLEMENT, {"a": VALUE, "b": "text"}),
        (CONTAINS, [{"x": ""}, VALUE]),
    ],
    ids=["owing", "classes", "complement", "contains"],
)
def test_masks_ask_for_no_length(schema: Any, document: Any, order: str, measured: list[bool]) -> None:
    grammar = grammar_of(schema, property_order=order)
    matcher = grammar.matcher()
    for byte in json.dumps(document).encode():
        assert matcher.mask_row() is not None
        assert matcher.accept_token(byte)
    assert matcher.is_accepting
    assert True not in measured
    assert matcher.min_tokens_to_end == 1
    assert grammar.min_tokens > 1
    assert True in measured


def test_a_way_to_the_end_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many names may come where it does not stand in the way: that is not searched for each of them."""
    names = [f"name{index}" for index in range(40)]
    exclusive = [{"required": [name], "properties": {name: {"type": "string"}}} for name in names[:20]]
    grammar = grammar_of({"type": "object", "properties": dict.fromkeys(names, True), "oneOf": exclusive}, property_order="any")
    walks: list[int] = []
    search = EndingSearch.cheapest

    def counted(self: EndingSearch) -> Any:
        walks.append(1)
        return search(self)

    monkeypatch.setattr(EndingSearch, "cheapest", counted)
    matcher = grammar.matcher()
    for byte in b'{"name3": "", "name30": 1, "name31": 2}':
        assert matcher.mask_row() is not None
        assert matcher.accept_token(byte)
    assert matcher.is_accepting
    assert len(walks) < 20 * 3  # 20 alternatives, 40 names, 3 members


def test_what_items_must_not_be_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item must differ from all before it: what is known of one of those is not asked again for the next item."""
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    items = {"type": "object", "properties": properties, "required": ["a"]}
    grammar = grammar_of({"type": "array", "items": items, "uniqueItems": True})
    compared: list[int] = []
    asked: list[int] = []
    implies, contains = Glimpses.implies, Language.contains

    def counted(self: Glimpses, key: NodeKey, other: NodeKey) -> bool:
        compared.append(1)
        return implies(self, key, other)

    def noted(self: Language, text: str) -> bool:
        asked.append(1)
        return contains(self, text)

    monkeypatch.setattr(Glimpses, "implies", counted)
    monkeypatch.setattr(Language, "contains", noted)
    matcher, number = grammar.matcher(), 20
    for byte in json.dumps([{"a": f"v{index}", "b": index} for index in range(number)]).encode():
        assert matcher.mask_row() is not None
        assert matcher.accept_token(byte)
    assert matcher.is_accepting
    assert len(compared) < 10 * number
    assert len(asked) < 10 * number
