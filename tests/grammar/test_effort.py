"""How much is done to find out whether nodes are empty: counted, not timed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from constrained.errors import FuelError
from constrained.grammar.language import Language
from constrained.grammar.measuring import Measuring
from constrained.grammar.nodes import Nodes
from constrained.options import CompileOptions
from tests.grammars import check, grammar_of


def bindings(count: int) -> dict[str, Any]:
    """A `oneOf` of objects that differ in a type which may be left out, each in two directions."""
    arms: list[dict[str, Any]] = []
    for i in range(count):
        directions = [
            {"properties": {"type": {"enum": [f"{i} trigger"]}, "direction": {"enum": ["in"]}}},
            {"properties": {"type": {"enum": [f"{i}"]}, "direction": {"enum": ["out"]}, f"to {i}": {"type": "string"}}},
        ]
        arms.append({"properties": {f"name {i}": {"type": "string"}}, "oneOf": directions})
    base = {
        "properties": {"type": {"type": "string"}, "direction": {"enum": ["in", "out", "inout"]}},
        "required": ["direction"],
    }
    return {"allOf": [base], "oneOf": arms}


def kinds(count: int, *, required: bool) -> list[dict[str, Any]]:
    """Objects that differ in their kind, and have two sorts each."""
    sorts = [{"properties": {"sort": {"const": "a"}, "x": {"type": "null"}}}, {"properties": {"sort": {"enum": ["b", "c"]}}}]
    own = {"required": ["kind"]} if required else {}
    own["oneOf"] = sorts
    return [
        {"properties": {"kind": {"const": f"{i}"}, f"p{i}": {"type": "string"}}, "oneOf": sorts} | own for i in range(count)
    ]


NAMED = {"type": "object", "required": ["kind", "sort"]}


@pytest.mark.parametrize(
    "schema",
    [
        {**NAMED, "oneOf": kinds(20, required=False)},
        {"allOf": [{"oneOf": kinds(20, required=False)}, NAMED]},
        {"$ref": "#/$defs/named", "anyOf": [{"oneOf": kinds(20, required=False)}], "$defs": {"named": NAMED}},
        {"required": ["sort"], "type": "object", "oneOf": kinds(20, required=True)},
        {"allOf": [{"$ref": "#/$defs/kinds"}, NAMED], "$defs": {"kinds": {"oneOf": kinds(20, required=False)}}},
    ],
)
def test_members_that_differ_in_what_stands_beside_them_requires_need_no_complements(schema: dict[str, Any]) -> None:
    nodes = Nodes(schema, CompileOptions(), lazily=False)
    shapes = nodes[nodes.root].objects
    assert len(shapes) == 40
    assert not any(shape.clauses for shape in shapes)
    accepts = [{"kind": "0", "sort": "a"}, {"kind": "19", "sort": "c", "p19": "", "p3": 3}, {"kind": "3", "sort": "b", "x": 1}]
    rejects = [{"kind": "20", "sort": "a"}, {"kind": "1"}, {"sort": "a"}, {"kind": "3", "sort": "a", "x": 1}, "a", {}]
    check(schema, accepts, rejects, property_order="any")


def test_members_that_only_some_objects_tell_apart_exclude_each_other() -> None:
    """What a member requires by itself says nothing of its siblings, nor of what stands beside the `oneOf` in another place."""
    one, other = {"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}
    schemas = [
        {"type": "object", "oneOf": [one, other]},
        {"type": "object", "oneOf": [one, other], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "oneOf": [{**one, "required": ["b"]}, other]},
    ]
    for schema, both in zip(schemas, [[{}, {"b": 1}], [{"b": 1}], [{"b": 1}]], strict=True):
        check(schema, [{"a": 2}, {"a": 1, "b": 0}], [*both, {"a": 3, "b": 0}], property_order="any")
    shared = {"$defs": {"either": {"oneOf": [one, other]}}}
    either = {"$ref": "#/$defs/either"}
    twice = {"properties": {"p": {"allOf": [{"type": "object", "required": ["a"]}, either]}, "q": either}, **shared}
    check(twice, [{"p": {"a": 1}, "q": {"a": 2}}], [{"p": {}}, {"q": {}}, {"q": {"b": 1}}, {"q": 3}], property_order="any")
    no = {"properties": {"p": {"required": ["a"], "not": either}}, **shared}
    check(no, [{"p": {"a": 3}}], [{"p": {"a": 1}}, {"p": {}}], property_order="any")


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


def test_whether_two_languages_share_a_string_is_not_searched_for_long() -> None:
    """URIs that are host names too: there are none, which takes more than 20,000 states to find out."""
    schema = {"type": "string", "oneOf": [{"format": "uri"}, {"format": "hostname"}]}
    check(schema, ["http://a.b", "a.b"], ["a b", 3])


def listed_elsewhere(count: int) -> dict[str, Any]:
    """Members of which none may be there that a list beside them names."""
    names = [f"n{i}" for i in range(count)]
    properties: dict[str, Any] = {name: {"type": "string"} for name in names}
    properties["dynamic"] = {"type": "array", "items": {"enum": names}}
    apart = {
        name: {"not": {"required": ["dynamic"], "properties": {"dynamic": {"contains": {"const": name}}}}} for name in names
    }
    return {"type": "object", "properties": properties, "required": ["dynamic"], "dependentSchemas": apart}


def test_clauses_about_names_that_are_past_are_settled() -> None:
    schema = listed_elsewhere(14)
    nodes = Nodes(schema, CompileOptions(), lazily=False)
    assert nodes.min_len(nodes.root) == len('{"dynamic":[]}')
    (shape,) = nodes[nodes.root].objects
    plan = nodes.plan(shape)
    first = plan.choices(plan.start, 1)[0][1]
    assert [len(plan.choices(progress, 15)) for progress in (plan.start, first)] == [1, 1]
    accepts = [{"dynamic": ["n3", "n13"]}, {"n0": "", "n5": "", "dynamic": ["n1", "n13", "n1"]}]
    rejects = [{"n0": "", "dynamic": ["n1", "n0"]}, {"n13": "", "dynamic": ["n13"]}, {"n0": ""}]
    check(schema, accepts, rejects)


def test_alternatives_of_a_member_are_bounded() -> None:
    """In any order the list may come first, and each set of names that it leaves out is an alternative."""
    few = listed_elsewhere(4)
    check(few, [{"dynamic": ["n3"], "n0": ""}], [{"dynamic": ["n3", "n0"], "n0": ""}], property_order="any")
    matcher = grammar_of(listed_elsewhere(14), property_order="any").matcher()
    with pytest.raises(FuelError, match="more than 1000 alternatives of one member"):
        matcher.accept_bytes(b'{"dynamic"')
