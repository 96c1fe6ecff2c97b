"""What the compile takes for granted of plain subschemas agrees with the measure of every node."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import referencing
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import CompileOptions
from constrained.errors import SchemaError
from constrained.grammar.language import from_pattern, of_length
from constrained.grammar.leaves import Leaf
from constrained.grammar.node import node_of
from constrained.grammar.nodes import Node, Nodes
from constrained.grammar.plain_patterns import fits, is_plain, prefix
from constrained.grammar.shapes import NodeKey
from tests.conformance.making import made
from tests.conformance.test_suite import DRAFTS, groups, remotes
from tests.grammars import PATIENT

SAMPLE = 150


def compiled(schema: Any, options: CompileOptions, *, lazily: bool) -> tuple[Nodes | None, tuple[Any, ...]]:
    """The nodes, or what is said of a refusal."""
    try:
        return Nodes(schema, options, lazily=lazily), ()
    except SchemaError as error:
        return None, (type(error), error.pointer, error.keyword, error.message)


def described(nodes: Nodes) -> dict[Any, Any]:
    """What each node that the root leads to may be, by the places of its obligations."""
    found: dict[Any, Any] = {}
    pending = [nodes.root]
    while pending:
        key = pending.pop()
        name = name_of(nodes, key)
        if name in found:
            continue
        node = nodes[key]
        found[name] = nodes.is_empty(key), *parts(nodes, node), scalars(node)
        assert_seen(nodes, key)
        pending += nodes.children(node)
    return found


def parts(nodes: Nodes, node: Node) -> tuple[Any, ...]:
    """What a node may be, its children by the places of their obligations."""
    arrays = [(name_of(nodes, one.rest), one.min_items, one.max_items, one.distinct) for one in node.arrays]
    members = [[(name, name_of(nodes, key)) for name, key in one.properties.items()] for one in node.objects]
    return node.literals, node.numbers, node.strings, arrays, members, [one.required for one in node.objects]


def scalars(node: Node) -> list[tuple[Any, ...]]:
    """What each arm says of scalars, where there are no others."""
    is_scalar = not (node.arrays or node.objects)
    return [(arm.kinds, arm.number, arm.string) for arm in node.arms] if is_scalar else []


def assert_seen(nodes: Nodes, key: NodeKey) -> None:
    """What is known of a node at sight is the node."""
    node, seen = nodes[key], nodes.look(key)
    if isinstance(seen, Leaf):
        assert parts(nodes, seen.node) == parts(nodes, node)
        assert seen.arms == list(node.arms)
    elif isinstance(seen, tuple):
        assert parts(nodes, nodes[seen]) == parts(nodes, node)
    elif seen is not None:
        again = node_of(key, seen)
        again.arrays = tuple(map(nodes.trimmed, again.arrays))
        assert parts(nodes, again) == parts(nodes, node)


def name_of(nodes: Nodes, key: NodeKey) -> tuple[Any, ...]:
    """A node's obligations: each by its contents and, where it is to be met, its place."""
    return tuple(sorted(obligation(nodes, signed) for signed in key))


def obligation(nodes: Nodes, signed: int) -> tuple[Any, ...]:
    sub, meets = nodes.document.obligation(signed)
    contents = sub.contents
    if isinstance(contents, dict) and isinstance(contents.get("anyOf"), tuple):  # one that the compile made, of nodes
        contents = sorted(name_of(nodes, key) for key in contents["anyOf"])
    return meets, sub.pointer if meets else "", repr(contents)


def assert_agree(schema: Any, options: CompileOptions | None = None) -> Nodes | None:
    """Lazy and exact compiles refuse the same for the same reason, or their nodes are the same."""
    chosen = options or CompileOptions(limits=PATIENT)
    lazy, refusal = compiled(schema, chosen, lazily=True)
    exact, reason = compiled(schema, chosen, lazily=False)
    assert refusal == reason
    if lazy is not None and exact is not None:
        assert described(lazy) == described(exact)
        assert lazy.min_len(lazy.root) == exact.min_len(exact.root)
    return lazy


def test_real_schemas(shared_data: Path) -> None:
    with gzip.open(shared_data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = file.read().strip().split("\n")
    num_unexpanded = 0
    for line in random.Random(31).sample(lines, SAMPLE):
        schema = json.loads(line)["schema"]
        assert_agree(schema)
        nodes, _ = compiled(schema, CompileOptions(limits=PATIENT), lazily=True)
        num_unexpanded += nodes is not None and not nodes.is_expanded(nodes.root)
    assert num_unexpanded > SAMPLE // 2


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite(draft: str, shared_data: Path) -> None:
    registry: referencing.Registry[Any] = remotes(shared_data, draft)
    for _, group in groups(shared_data, draft):
        schema = group["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": DRAFTS[draft][0], **schema}
        assert_agree(schema, CompileOptions(registry=registry, limits=PATIENT))
        assert_agree({"properties": {"a": schema}, "required": ["a"], "$schema": DRAFTS[draft][0]})


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("member", [{"type": "string", 1: 2}, {"$ref": "#/properties/b", 1: 2}, {"x": 1, None: 2}])
def test_names_that_are_no_strings(draft: str, member: Any) -> None:
    schema = {"$schema": DRAFTS[draft][0], "properties": {"a": member, "b": {"type": "string"}}}
    assert_agree(schema)
    _, refusal = compiled(schema, CompileOptions(limits=PATIENT), lazily=True)
    assert refusal[:2] == (SchemaError, "/properties/a")


@pytest.mark.parametrize("seed", range(8))
def test_schemas_at_random(seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(150):
        schema = made(pick)
        assert_agree(schema)
        assert_agree(
            {"type": "object", "properties": {"a": schema, "b": {"type": "array", "items": schema}}, "required": ["b"]}
        )


def names() -> st.SearchStrategy[str]:
    return st.sampled_from(["a", "b", "c", "id", "$id"])


def mostly_plain() -> st.SearchStrategy[Any]:
    """Subschemas of the keywords that proofs know, right and wrong ones."""
    counts = st.one_of(st.integers(0, 3), st.sampled_from([-1, 1.0, 1.5, True, "1", 5000]))
    bounds = st.one_of(st.integers(-2, 2), st.sampled_from([0.5, -1e300, 10**15, 10**70, True, "1"]))
    types = ["object", "array", "string", "integer", "number", "boolean", "null", "any", None]
    values = st.lists(st.sampled_from([1, 2, "a", "é", "\ud800", None, True, 0.5, 10**80, [1], {"a": 1}]), max_size=3)
    inner_refs = ["#/properties/a", "#/properties/id", "#/$defs/one/properties/id", "#/$defs/one/items", "#/$defs/two/enum"]
    refs = st.sampled_from(["#", "#/$defs/one", "#/$defs/two", "#/$defs/three", *inner_refs, "#one", "other.json", 1])
    scalars = {
        "type": st.one_of(st.sampled_from(types), st.lists(st.sampled_from(types[:7]), max_size=2)),
        "minLength": counts,
        "maxLength": counts,
        "minItems": counts,
        "maxItems": counts,
        "uniqueItems": st.sampled_from([True, False, 1]),
        "minimum": bounds,
        "maximum": bounds,
        "exclusiveMinimum": bounds,
        "exclusiveMaximum": bounds,
        "format": st.sampled_from(["date", "uuid", "idn-hostname", "odd", 1]),
        "multipleOf": st.sampled_from([1, 0.5, 1e-9, 0, -1, "1"]),
        "pattern": st.sampled_from(["^a", "(", "a(?<=b)"]),
        "enum": st.one_of(values, st.just("a")),
        "const": st.sampled_from([1, "a", None, [1]]),
        "required": st.one_of(st.lists(st.sampled_from(["a", "b", "c"]), max_size=2), st.sampled_from([True, [1]])),
        "$ref": refs,
        "$id": st.sampled_from(["#one", "http://localhost/x", 1]),
        "id": st.just("http://localhost/y"),
        "$schema": st.sampled_from([DRAFTS["draft4"][0], DRAFTS["draft2020-12"][0] + "#", "odd", 1]),
        "title": st.just("t"),
    }
    leaves = st.one_of(st.booleans(), optional(scalars))

    def applied(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return optional(
            {
                **{name: scalars[name] for name in ("type", "required", "minItems", "uniqueItems", "$ref", "$id", "enum")},
                "properties": st.dictionaries(names(), inner, max_size=3),
                "patternProperties": st.dictionaries(st.sampled_from(["^x-", "^a", "b", "^(?!a)"]), inner, max_size=2),
                "additionalProperties": inner,
                "items": st.one_of(inner, st.lists(inner, max_size=2)),
                "additionalItems": inner,
                "anyOf": st.lists(inner, max_size=2),
                "oneOf": st.lists(inner, max_size=2),
                "allOf": st.lists(inner, max_size=2),
                "not": inner,
                "minProperties": counts,
                "contains": inner,
            }
        )

    return st.recursive(leaves, applied, max_leaves=8)


def optional(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Some of the keywords: four at most."""

    def some(chosen: list[str]) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries({name: keywords[name] for name in chosen})

    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(some)


@settings(max_examples=600, deadline=None)
@given(mostly_plain(), st.dictionaries(st.sampled_from(["one", "two"]), mostly_plain()), st.sampled_from(sorted(DRAFTS)))
def test_schemas_of_the_keywords_that_proofs_know(schema: Any, parts: dict[str, Any], draft: str) -> None:
    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[draft][0], **schema, "$defs": parts}
    assert_agree(schema)


def test_what_is_read_later_is_a_copy() -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"enum": ["x"]}}}}}
    nodes = Nodes(schema, CompileOptions(limits=PATIENT))
    schema["properties"]["a"]["properties"]["b"]["enum"] = [1]
    [a] = nodes[nodes.root].objects[0].properties.values()
    [b] = nodes[a].objects[0].properties.values()
    assert nodes[b].strings[0].values == frozenset(("x",))


def test_deep_schemas() -> None:
    leaf: Any = {"type": "string", "pattern": "a(?=b)"}
    for required in ([], ["a"]):
        schema = leaf
        for _ in range(900):
            schema = {"type": "object", "properties": {"a": schema}, "required": required}
        nodes = Nodes(schema, CompileOptions(limits=PATIENT))
        key = nodes.root
        for _ in range(900):
            [key] = nodes[key].objects[0].properties.values()
        sub = nodes.subschema(key)
        assert sub is not None
        assert sub.pointer == "/properties/a" * 900
        assert nodes.min_len(nodes.root) == (2 if not required else 4 + 900 * 6)


def test_a_plain_schema_is_not_measured_before_somebody_asks() -> None:
    nodes = Nodes({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, CompileOptions())
    assert not nodes.is_expanded(nodes.root)
    assert nodes.min_len(nodes.root) == len('{"a":""}')
    assert nodes.has(nodes.root)


TAGGED = [
    {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"enum": [2, 3]}}, "required": ["a"]},
]
CLOSED = {"type": "object", "properties": {"b": {}}, "additionalProperties": False}
PARTS = {"base": {"type": "object", "properties": {"b": {}}}, "odd": {"type": "string", "pattern": "a(?=b)"}}


@pytest.mark.parametrize(
    ("schema", "is_expanded"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, False),
        ({"type": "array", "items": {"$ref": "#"}}, False),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/odd"}}, "required": ["a"], "$defs": PARTS}, False),
        ({"type": "object", "patternProperties": {"^x-": {}}, "properties": {"y": {}}}, False),
        ({"type": "object", "patternProperties": {"^x-": {}}, "properties": {"x-1": {}}}, True),
        ({"type": "string", "pattern": "^a[b-d]{2,3}$", "maxLength": 100}, False),
        ({"type": "string", "pattern": "^a[b-d]{2,3}$", "maxLength": 4}, True),
        ({"type": "string", "pattern": "a(?=b)"}, True),
        ({"oneOf": TAGGED, "type": "object"}, False),
        ({"oneOf": [TAGGED[0], CLOSED]}, False),
        ({"oneOf": [TAGGED[0], {"type": "object"}]}, True),
        ({"allOf": [{"$ref": "#/$defs/base"}, TAGGED[0]], "$defs": PARTS}, False),
        ({"allOf": [{"$ref": "#/$defs/base"}, CLOSED], "$defs": PARTS}, True),
        ({"type": "object", "minProperties": 1}, True),
        ({"$ref": "#/$defs/odd/properties/id", "$defs": {"odd": {"properties": {"id": {"type": "string"}}}}}, False),
        ({"$ref": "#/$defs/odd/properties/a", "$defs": {"odd": {"$id": "x:y", "properties": {"a": {"type": "string"}}}}}, True),
        ({"anyOf": [{"$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "null"}]}, False),
        ({"anyOf": [{"$schema": "http://json-schema.org/draft-04/schema#", "type": "null"}]}, True),
        ({"type": "string", "format": "date", "maxLength": 10}, False),
        ({"type": "string", "format": "date", "maxLength": 9, "$schema": "http://json-schema.org/draft-07/schema"}, True),
        ({"type": "number", "minimum": 1, "maximum": 5, "multipleOf": 2.0}, False),
        ({"type": "number", "minimum": 5, "maximum": 7, "multipleOf": 4}, True),
        ({"type": "number", "minimum": 1, "maximum": 5, "multipleOf": 0.5}, True),
    ],
)
def test_which_roots_are_expanded(schema: Any, is_expanded: bool) -> None:
    assert_agree(schema)
    nodes, _ = compiled(schema, CompileOptions(limits=PATIENT), lazily=True)
    if nodes is None:
        assert is_expanded  # and empty
    else:
        assert nodes.is_expanded(nodes.root) == is_expanded


@pytest.mark.parametrize(
    ("kept", "is_expanded"),
    [
        ({"type": "object", "properties": {"c": {"type": "string"}}, "required": ["c"]}, False),
        ({"$ref": "#/$defs/base"}, False),
        ({"type": "array", "items": {"$ref": "#"}}, False),
        ({"type": "array", "items": {"$ref": "#/$defs/odd"}, "minItems": 1}, True),
        ({"type": "array", "items": {"$ref": "#/$defs/odd"}}, False),
        ({"type": "object", "properties": {"c": {"$ref": "#/$defs/odd"}}, "required": ["c"]}, True),
        ({"not": {"type": "string"}}, True),
    ],
)
@pytest.mark.parametrize("required", [[], ["a"]])
def test_which_members_of_an_expanded_root_are_expanded(kept: Any, is_expanded: bool, required: list[str]) -> None:
    schema = {"type": "object", "minProperties": 1, "properties": {"a": kept}, "required": required, "$defs": PARTS}
    assert_agree(schema)
    nodes, _ = compiled(schema, CompileOptions(limits=PATIENT), lazily=True)
    assert nodes is not None
    [a] = nodes[nodes.root].objects[0].properties.values()
    assert nodes.is_expanded(nodes.root)
    assert nodes.is_expanded(a) == is_expanded
    assert not nodes.is_empty(a)


def test_the_parts_of_what_is_expanded_are_legal() -> None:
    schema: Any = {"minProperties": 1, "properties": {"a": {"type": "object", "properties": {"b": {"minLength": -1}}}}}
    with pytest.raises(SchemaError, match="minLength") as raised:
        Nodes(schema, CompileOptions(limits=PATIENT))
    assert raised.value.pointer == "/properties/a/properties/b"


@pytest.mark.parametrize(
    "pattern",
    [
        "^$",
        "^a{0}$",
        "^a{2}$",
        "a{2}",
        "^a",
        "a$",
        "^(a|b{3})$",
        "^a\\\\$",
        "^[^\\s]?$",
        "",
        "^(?:)+$",
        "^[a-z-_.]$",
        "^[0-9-a-z-]$",
    ],
)
def test_plain_patterns_have_strings_of_the_lengths_that_they_claim(pattern: str) -> None:
    assert is_plain(pattern)
    language = from_pattern(pattern)
    assert not language.is_empty
    for least in range(5):
        for most in range(least, 40, 3):
            assert not fits(pattern, least, most) or not (language & of_length(least, most)).is_empty


@pytest.mark.parametrize(
    "pattern",
    ["(", "[b-a]", "a{2,1}", "[^\\d\\D]", "a^b", "a$b", "(?=a)", "\\1", "*", "[a-\\d]", "a{9999}", "[a-z--]", "[a-z-+-9]"],
)
def test_other_patterns_are_not_plain(pattern: str) -> None:
    assert not is_plain(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"), [("^x-", "x-"), ("^ab*", "a"), ("^ab+", "a"), ("^a|b", ""), ("ab", ""), ("^ab.", "ab")]
)
def test_the_prefix_of_a_pattern(pattern: str, found: str) -> None:
    assert prefix(pattern) == found
