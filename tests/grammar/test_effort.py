"""How much is done to find out whether nodes are empty: counted, not timed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from constrained.grammar.language import Language
from constrained.grammar.measuring import Measuring
from constrained.grammar.nodes import Nodes
from constrained.options import CompileOptions


def bindings(count: int) -> dict[str, Any]:
    """A `oneOf` of objects that differ in a type which only its siblings require, each in two directions."""
    arms: list[dict[str, Any]] = []
    for i in range(count):
        directions = [
            {"properties": {"type": {"enum": [f"{i} trigger"]}, "direction": {"enum": ["in"]}}},
            {"properties": {"type": {"enum": [f"{i}"]}, "direction": {"enum": ["out"]}, f"to {i}": {"type": "string"}}},
        ]
        arms.append({"properties": {f"name {i}": {"type": "string"}}, "oneOf": directions})
    base = {
        "properties": {"type": {"type": "string"}, "direction": {"enum": ["in", "out", "inout"]}},
        "required": ["type", "direction"],
    }
    return {"allOf": [base], "oneOf": arms}


@pytest.mark.parametrize("lazily", [True, False])
def test_a_search_is_not_repeated_for_each_node_that_it_meets(monkeypatch: pytest.MonkeyPatch, lazily: bool) -> None:
    measured: list[Any] = []
    measure = Measuring._measured

    def counting(self: Measuring, node: Any) -> int:
        measured.append(node.key)
        return measure(self, node)

    monkeypatch.setattr(Measuring, "_measured", counting)
    nodes = Nodes(bindings(8), CompileOptions(), lazily=lazily)
    assert nodes.min_len(nodes.root) < 60
    num_nodes = len(set(measured))
    assert num_nodes > 100, "the schema asks for little"
    assert len(measured) < 2 * num_nodes


def test_clauses_about_names_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    contains = Language.contains

    def counting(self: Language, text: str) -> bool:
        asked.append(text)
        return contains(self, text)

    monkeypatch.setattr(Language, "contains", counting)
    names = [f"name {i}" for i in range(80)]
    pairs = [{"anyOf": [{"required": [one]}, {"required": [two]}]} for one, two in itertools.pairwise(names)]
    nodes = Nodes({"properties": dict.fromkeys(names, True), "allOf": pairs}, CompileOptions())
    (shape,) = nodes[nodes.root].objects
    plan = nodes.plan(shape)
    assert plan.min_len() is not None
    assert len(asked) < 10 * len(names)
