"""Leaves are shared wherever the same is said, and only there; references to one place have one target."""

from __future__ import annotations

from typing import Any

import pytest

from constrained import CompileOptions
from constrained.grammar import leaves
from constrained.grammar.leaves import Leaf
from constrained.grammar.nodes import Nodes
from constrained.grammar.shapes import NodeKey

DRAFT4 = "http://json-schema.org/draft-04/schema#"


def members(schema: dict[str, Any], **options: Any) -> tuple[Nodes, dict[str, NodeKey]]:
    nodes = Nodes({"type": "object", **schema}, CompileOptions(**options))
    [shape] = nodes[nodes.root].objects
    return nodes, dict(shape.properties)


def leaf_of(contents: Any, draft: str | None = None, **options: Any) -> Leaf | None:
    schema = {"properties": {"a": contents}} if draft is None else {"properties": {"a": contents}, "$schema": draft}
    nodes, keys = members(schema, **options)
    found = nodes.look(keys["a"])
    return found if isinstance(found, Leaf) else None


@pytest.mark.parametrize(
    ("contents", "same"),
    [
        ({"type": "string"}, {"description": "a name", "type": "string", "x-unit": [1]}),
        ({"type": ["string", "null"]}, {"default": None, "type": ["string", "null"]}),
        ({"type": "integer", "minimum": 0, "maximum": 5}, {"maximum": 5.0, "type": "integer", "minimum": 0}),
        ({"type": "string", "pattern": "^a+$", "maxLength": 9}, {"maxLength": 9, "pattern": "^a+$", "type": "string"}),
        ({"type": "string", "format": "date"}, {"format": "date", "type": "string", "title": "day"}),
        ({"minLength": 2}, {"minLength": 2, "examples": [2]}),
        ({}, {"title": "anything"}),
    ],
)
def test_the_same_is_said(contents: Any, same: Any) -> None:
    found = leaf_of(contents)
    assert found is not None
    again = leaf_of(same)
    assert again is found or (again is not None and again.arms == found.arms and not contents)


@pytest.mark.parametrize(
    ("contents", "other"),
    [
        ({"type": "string"}, {"type": "integer"}),
        ({"type": "string", "minLength": 3}, {"type": "string", "maxLength": 3}),
        ({"type": "number", "minimum": 3}, {"type": "number", "exclusiveMinimum": 3}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "time"}),
        ({"type": "string", "format": "date"}, {"type": "string"}),
    ],
)
def test_something_else_is_said(contents: Any, other: Any) -> None:
    assert leaf_of(contents) is not leaf_of(other)


def test_drafts_and_options_say_something_else() -> None:
    assert leaf_of({"type": "integer"}) is not leaf_of({"type": "integer"}, DRAFT4)
    date = {"type": "string", "format": "date"}
    assert leaf_of(date) is not leaf_of(date, formats="annotate")


@pytest.mark.parametrize(
    "contents", [{"enum": ["a"]}, {"type": "array", "items": {"type": "null"}}, {"not": {"type": "null"}}, {"required": ["b"]}]
)
def test_what_is_no_leaf(contents: Any) -> None:
    assert leaf_of(contents) is None


def test_leaves_do_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "MAX_LEAVES", 3)
    for length in range(10):
        found = leaf_of({"type": "string", "minLength": length})
        assert found is not None
        assert found.node.strings[0].min_len == length
        assert len(leaves._leaves) <= 3


def test_references_to_one_place_have_one_target() -> None:
    part = {"type": "object", "properties": {"c": {"type": "string"}}, "required": ["c"]}
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/part"},
            "b": {"$ref": "#/$defs/again"},
            "c": {"$ref": "#"},
            "d": {"$ref": "#/$defs/any"},
            "e": {"type": "string"},
        },
        "$defs": {"part": part, "again": {"$ref": "#/$defs/part"}, "any": {}},
    }
    nodes, keys = members(schema)
    seen = {name: nodes.look(key) for name, key in keys.items()}
    part_key, again_key = seen["a"], seen["b"]
    assert isinstance(part_key, tuple)
    assert isinstance(again_key, tuple)
    assert nodes.look(again_key) == part_key
    assert nodes.document.subschema(part_key[0] - 1).pointer == "/$defs/part"
    assert list(nodes[part_key].objects[0].properties) == ["c"]
    assert seen["c"] == nodes.root
    assert seen["d"] == ()
    assert isinstance(seen["e"], Leaf)
