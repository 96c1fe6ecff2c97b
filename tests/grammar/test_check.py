"""The report on a schema: every keyword, with its pointer."""

from __future__ import annotations

import referencing
import referencing.jsonschema

from constrained import CompileOptions, check_json_schema


def test_each_keyword_is_reported() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "t",
        "type": "object",
        "properties": {"a/b": {"type": "string", "uniqueItems": True, "format": "idn-hostname", "x-mine": 1}},
        "anyOf": [{"required": ["a/b"]}],
    }
    report = check_json_schema(schema)
    found = {(one.pointer, one.status) for one in report.keywords}
    assert not report.supported
    assert report.error is not None
    assert found == {
        ("/$schema", "annotation"),
        ("/title", "annotation"),
        ("/type", "enforced"),
        ("/properties", "enforced"),
        ("/properties/a~1b/type", "enforced"),
        ("/properties/a~1b/uniqueItems", "enforced"),
        ("/properties/a~1b/format", "refused"),
        ("/properties/a~1b/x-mine", "annotation"),
        ("/anyOf", "enforced"),
        ("/anyOf/0/required", "enforced"),
    }
    assert all(one.reason for one in report.keywords if one.status == "refused")


def test_a_supported_schema_has_its_order_and_shortest_length() -> None:
    report = check_json_schema({"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a"]})
    assert report.supported
    assert report.error is None
    assert report.order == ("/b", "/a")
    assert report.min_bytes == len('{"a":0}')


def test_what_stands_beside_an_old_reference_is_said_to_do_nothing() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/a",
        "pattern": "x",
        "definitions": {"a": {}},
    }
    report = check_json_schema(schema)
    assert report.supported
    assert {one.status for one in report.keywords if one.keyword == "pattern"} == {"annotation"}


def test_formats_as_annotations() -> None:
    assert not check_json_schema({"format": "idn-hostname"}).supported
    assert check_json_schema({"format": "idn-hostname"}, CompileOptions(formats="annotate")).supported


def test_what_is_no_schema_is_reported_not_raised() -> None:
    report = check_json_schema({"properties": {"a": 3}})
    assert not report.supported
    assert report.error is not None
    assert report.error.pointer == "/properties/a"


def test_what_a_keyword_does_only_beside_another() -> None:
    report = check_json_schema({"then": False, "properties": {"a": {"if": True, "then": False}}})
    assert report.supported
    assert {one.pointer: one.status for one in report.keywords} == {
        "/then": "annotation",
        "/properties": "enforced",
        "/properties/a/if": "enforced",
        "/properties/a/then": "enforced",
    }


def test_keywords_of_vocabularies_that_are_not_in_use() -> None:
    vocabulary = {"https://json-schema.org/draft/2020-12/vocab/applicator": True}
    meta = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$vocabulary": vocabulary}
    resource = referencing.jsonschema.DRAFT202012.create_resource(meta)
    registry = referencing.Registry().with_resource("http://x.test/meta", resource)
    schema = {"$schema": "http://x.test/meta", "type": "null", "not": False}
    report = check_json_schema(schema, CompileOptions(registry=registry))
    assert {one.keyword: one.status for one in report.keywords} == {
        "$schema": "annotation",
        "type": "annotation",
        "not": "enforced",
    }


def test_what_the_compile_refuses_is_not_called_enforced() -> None:
    schema = {"properties": {"a/b": {"type": "string", "pattern": "(a)\\1"}}, "required": ["a/b"]}
    report = check_json_schema(schema)
    assert not report.supported
    assert {one.pointer: one.status for one in report.keywords} == {
        "/properties": "enforced",
        "/required": "enforced",
        "/properties/a~1b/type": "enforced",
        "/properties/a~1b/pattern": "refused",
    }
    [refused] = [one for one in report.keywords if one.status == "refused"]
    assert refused.reason is not None
    assert "backreferences" in refused.reason
