"""References: where they lead, dynamic scopes, other documents, and what a dialect makes of a schema."""

from __future__ import annotations

from typing import Any

import pytest
import referencing
import referencing.jsonschema

from constrained.errors import SchemaError, UnresolvableReferenceError, UnsupportedKeywordError
from constrained.grammar.resources import Library, root_of
from tests.grammars import check, grammar_of


@pytest.mark.parametrize("ref", ["#/$defs/none", "https://example.com/s.json", "other.json", "#anchor", "#/%zz"])
def test_references_that_lead_nowhere(ref: str) -> None:
    with pytest.raises(UnresolvableReferenceError) as caught:
        grammar_of({"properties": {"a": {"$ref": ref}}})
    assert caught.value.pointer == "/properties/a"


def test_a_registry_is_reached_and_nothing_else() -> None:
    other = referencing.jsonschema.DRAFT202012.create_resource({"$defs": {"n": {"type": "integer"}}, "type": "string"})
    registry = referencing.Registry().with_resource("https://example.com/s.json", other)
    check({"$ref": "https://example.com/s.json"}, accepts=["a"], rejects=[1], registry=registry)
    check({"$ref": "https://example.com/s.json#/$defs/n"}, accepts=[1], rejects=["a"], registry=registry)


def test_ids_and_anchors() -> None:
    schema = {
        "$id": "https://example.com/root",
        "properties": {"a": {"$ref": "child#x"}, "b": {"$ref": "#top"}},
        "$defs": {
            "c": {"$id": "child", "$defs": {"x": {"$anchor": "x", "type": "integer"}}},
            "t": {"$anchor": "top", "type": "string"},
        },
    }
    check(schema, accepts=[{"a": 1, "b": "x"}], rejects=[{"a": "x"}, {"b": 1}])


DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        # Ids: relative to those around them, by folder, by URN; before a fragment; as an anchor of old.
        (
            {
                "$id": "http://x.test/a/",
                "items": {"$id": "b/", "$ref": "c"},
                "$defs": {"c": {"$id": "b/c", "type": "integer"}},
            },
            [[1]],
            [["a"]],
        ),
        (
            {"$id": "urn:uuid:1", "items": {"$ref": "urn:uuid:1#/$defs/a"}, "$defs": {"a": {"type": "null"}}},
            [[None]],
            [[1]],
        ),
        (
            {"$schema": DRAFT_7, "definitions": {"a": {"$id": "#s", "type": "string"}}, "items": {"$ref": "#s"}},
            [["a"]],
            [[1]],
        ),
        (
            {
                "$schema": DRAFT_4,
                "definitions": {"a": {"id": "http://x.test/i", "type": "string"}},
                "items": {"$ref": "http://x.test/i"},
            },
            [["a"]],
            [[1]],
        ),
        # Up to draft 7 what is beside a reference does not count, an id neither.
        (
            {
                "$schema": DRAFT_7,
                "$id": "http://x.test/root/",
                "definitions": {"a": {"$id": "http://y.test/", "$ref": "leaf"}, "leaf": {"$id": "leaf", "type": "string"}},
                "$ref": "#/definitions/a",
            },
            ["a"],
            [1],
        ),
        # What stands under a keyword that nobody knows is no resource, but a pointer may go there.
        ({"items": {"$ref": "#/mine/a"}, "mine": {"a": {"type": "string"}}}, [["a"]], [[1]]),
        (
            {
                "$id": "http://x.test/",
                "mine": {"$id": "leaf", "type": "null"},
                "$defs": {"a": {"$id": "leaf", "type": "string"}},
                "$ref": "leaf",
            },
            ["a"],
            [None],
        ),
        # An enum that looks like a schema with an id is a value.
        (
            {
                "$id": "http://x.test/",
                "$defs": {"no": {"enum": [{"$id": "leaf", "type": "null"}]}, "a": {"$id": "leaf", "type": "string"}},
                "$ref": "leaf",
            },
            ["a"],
            [None],
        ),
        # Pointers: escapes of both kinds, indices.
        ({"$ref": "#/$defs/a~1b~0c%25%22", "$defs": {'a/b~c%"': {"type": "null"}}}, [None], [1]),
        ({"items": {"$ref": "#/anyOf/1"}, "anyOf": [{"type": "array"}, {"type": "null"}]}, [[None]], [[1]]),
        # To a draft that has `$id`, the `id` of a part in draft 4 is none.
        (
            {
                "items": {"$ref": "#/$defs/old"},
                "$defs": {"old": {"$schema": DRAFT_4, "id": "old", "items": {"$ref": "#/$defs/a"}}, "a": {"type": "null"}},
            },
            [[[None]]],
            [[[1]]],
        ),
        # A part in another draft keeps it.
        (
            {
                "$defs": {
                    "old": {"$id": "http://x.test/old", "$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True, "const": 5}
                },
                "$ref": "#/$defs/old",
            },
            [2, "a"],
            [1],
        ),
    ],
)
def test_where_references_lead(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


TREE = {
    "$id": "http://x.test/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}


def test_a_dynamic_reference_takes_the_outermost_anchor() -> None:
    strict = {
        "$id": "http://x.test/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "required": ["data"],
        "$defs": {"tree": TREE},
    }
    check(strict, accepts=[{"data": 1, "children": [{"data": 1}]}], rejects=[{"data": 1, "children": [{}]}])
    check(TREE, accepts=[{"data": 1, "children": [{}]}], rejects=[{"children": [1]}])


def test_one_place_under_two_scopes_is_two_schemas() -> None:
    def list_of(name: str) -> dict[str, Any]:
        return {"$id": f"{name}s", "$ref": "list", "$defs": {"item": {"$dynamicAnchor": "item", "type": name}}}

    schema = {
        "$id": "http://x.test/main",
        "properties": {"n": {"$ref": "numbers"}, "s": {"$ref": "strings"}, "any": {"$ref": "list"}},
        "$defs": {
            "n": list_of("number"),
            "s": list_of("string"),
            "list": {
                "$id": "list",
                "items": {"anyOf": [{"$dynamicRef": "#item"}, {"$ref": "#"}]},
                "type": "array",
                "$defs": {"any": {"$dynamicAnchor": "item"}},
            },
        },
    }
    check(
        schema,
        accepts=[{"n": [1, [2]], "s": ["a", ["b"]], "any": [1, "a"]}],
        rejects=[{"n": ["a"]}, {"n": [["a"]]}, {"s": [1]}, {"s": [[[1]]]}],
    )


def test_the_complement_of_a_dynamic_reference() -> None:
    schema = {
        "$id": "http://x.test/main",
        "$ref": "inner",
        "$defs": {
            "mine": {"$dynamicAnchor": "t", "type": "string"},
            "inner": {"$id": "inner", "not": {"$dynamicRef": "#t"}, "$defs": {"t": {"$dynamicAnchor": "t", "type": "null"}}},
        },
    }
    check(schema, accepts=[1, None], rejects=["a"])


def test_a_recursive_reference_takes_the_outermost_anchor() -> None:
    tree = {
        "$id": "tree",
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"child": {"$recursiveRef": "#"}},
    }
    strict = {
        "$schema": DRAFT_2019,
        "$id": "http://x.test/strict",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "required": ["x"],
        "$defs": {"tree": tree},
    }
    check(strict, accepts=[{"x": 1, "child": {"x": 1}}], rejects=[{"x": 1, "child": {}}])
    loose = {**strict, "$recursiveAnchor": False}
    check(loose, accepts=[{"x": 1, "child": {}}], rejects=[{"x": 1, "child": 1}, {"child": {}}])


def test_a_recursive_reference_leads_to_the_root_alone() -> None:
    with pytest.raises(SchemaError) as caught:
        grammar_of({"$schema": DRAFT_2019, "items": {"$recursiveRef": "#/$defs/a"}})
    assert (caught.value.pointer, caught.value.keyword) == ("/items", "$recursiveRef")


def registry_of(**documents: Any) -> referencing.Registry[Any]:
    registry: referencing.Registry[Any] = referencing.Registry()
    for name, document in documents.items():
        resource = referencing.jsonschema.DRAFT202012.create_resource(document)
        registry = registry.with_resource(f"http://x.test/{name}", resource)
    return registry


def test_remote_documents_by_address_by_id_and_inside_each_other() -> None:
    registry = registry_of(
        one={
            "$id": "http://y.test/named",
            "items": {"$ref": "two"},
            "$defs": {"i": {"$id": "http://z.test/inside", "type": "null"}},
        },
        two={"$id": "http://y.test/two", "type": "string"},
    )
    check({"$ref": "http://x.test/one"}, accepts=[["a"]], rejects=[[1]], registry=registry)
    check({"$ref": "http://y.test/named"}, accepts=[["a"]], rejects=[[1]], registry=registry)
    check({"$ref": "http://z.test/inside"}, accepts=[None], rejects=[1], registry=registry)


def test_a_fault_in_a_remote_document_is_told_with_its_address() -> None:
    registry = registry_of(one={"properties": {"a": {"type": "text"}}}, unrelated={"$schema": "http://x.test/nowhere"})
    with pytest.raises(SchemaError) as caught:
        grammar_of({"$ref": "http://x.test/one"}, registry=registry)
    assert caught.value.pointer == "http://x.test/one#/properties/a"


def test_a_registry_that_retrieves() -> None:
    def retrieve(uri: str) -> referencing.Resource[Any]:
        if uri != "http://x.test/there":
            raise referencing.exceptions.NoSuchResource(ref=uri)  # type: ignore[call-arg]
        return referencing.jsonschema.DRAFT202012.create_resource({"type": "string"})

    registry: referencing.Registry[Any] = referencing.Registry(retrieve=retrieve)  # type: ignore[call-arg]
    check({"$ref": "http://x.test/there"}, accepts=["a"], rejects=[1], registry=registry)
    with pytest.raises(UnresolvableReferenceError):
        grammar_of({"$ref": "http://x.test/elsewhere"}, registry=registry)


def test_vocabularies_that_a_metaschema_leaves_out_assert_nothing() -> None:
    vocabularies = {f"https://json-schema.org/draft/2020-12/vocab/{name}": True for name in ("core", "applicator")}
    registry = registry_of(meta={"$schema": DRAFT_2020, "$vocabulary": vocabularies})
    schema = {"$schema": "http://x.test/meta", "properties": {"a": {"minimum": 5, "not": False}, "b": False}, "type": "null"}
    check(schema, accepts=[{"a": 1}, 3], rejects=[{"b": 1}], registry=registry)


def test_a_metaschema_that_describes_itself() -> None:
    vocabularies = {f"https://json-schema.org/draft/2019-09/vocab/{name}": True for name in ("core", "validation")}
    registry = registry_of(meta={"$schema": "http://x.test/meta", "$vocabulary": vocabularies})
    schema = {"$schema": "http://x.test/meta", "type": "array", "items": False}
    check(schema, accepts=[[1]], rejects=[1], registry=registry)


def test_vocabularies_that_nobody_knows() -> None:
    unknown = "http://x.test/vocabulary"
    core = {"https://json-schema.org/draft/2020-12/vocab/validation": True}
    required = registry_of(meta={"$schema": DRAFT_2020, "$vocabulary": {**core, unknown: True}})
    with pytest.raises(UnsupportedKeywordError, match=unknown):
        grammar_of({"$schema": "http://x.test/meta"}, registry=required)
    optional = registry_of(meta={"$schema": DRAFT_2020, "$vocabulary": {**core, unknown: False}})
    check({"$schema": "http://x.test/meta", "type": "null"}, accepts=[None], rejects=[1], registry=optional)


@pytest.mark.parametrize("dialect", ["http://x.test/none", 5, ""])
def test_dialects_that_nobody_knows(dialect: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        grammar_of({"properties": {"a": {"$schema": dialect}}})
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/a", "$schema")


def test_an_id_that_is_no_uri() -> None:
    with pytest.raises(SchemaError) as caught:
        grammar_of({"properties": {"a": {"$id": 5}}})
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/a", "$id")


@pytest.mark.parametrize(
    ("schema", "is_seen"),
    [
        ({}, True),
        ({"$id": "https://example.com/root", "id": 1}, True),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "root.json", "$id": 1}, True),
        ({"$id": "https://example.com/root#"}, False),
        ({"$id": 1}, False),
        ({"$schema": "odd"}, False),
        ({"$id": "x", "$ref": "#/a", "$schema": "http://json-schema.org/draft-07/schema"}, False),
        (True, False),
    ],
)
def test_the_root_is_seen_without_a_library(schema: Any, is_seen: bool) -> None:
    found = root_of(schema)
    assert (found is not None) == is_seen
    if found is not None:
        assert found == Library(schema, referencing.Registry()).root
