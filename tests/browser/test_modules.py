"""The modules by themselves, in the browser that runs them: the client's decoder and fold, the form's reading of schemas."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.browser_page import open_page
from tests.browser.service_stub import ServiceStub

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(chromium: Browser, stub_service: ServiceStub) -> Iterator[Page]:
    """One page for all: the modules keep nothing between two tests."""
    with open_page(chromium, stub_service.url) as page:
        yield page


DECODE_IN_PIECES = """
async ([text, step]) => {
  const { EventDecoder } = await import("/static/constrained.js");
  const bytes = new TextEncoder().encode(text);
  const decode = (...cuts) => {
    const decoder = new EventDecoder();
    const edges = [0, ...cuts, bytes.length];
    return edges.slice(1).flatMap((edge, index) => decoder.feed(bytes.subarray(edges[index], edge)));
  };
  const seen = new Map();
  const note = (events) => seen.set(JSON.stringify(events), events);
  for (let first = 0; first <= bytes.length; first++)
    for (let second = first; second <= bytes.length; second += step) note(decode(first, second));
  note(decode(...bytes.keys()));
  return [...seen.values()];
}
"""


def event(data: str, name: str = "message", event_id: str = "") -> dict[str, str]:
    return {"event": name, "data": data, "id": event_id}


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("event: delta\ndata: {}\n\n", [event("{}", "delta")]),
        ("id: r:1\r\nevent: start\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [event("a", "start", "r:1"), event("b", event_id="r:1")]),
        ("data: a\rdata: b\r\rdata: c\r\r", [event("a\nb"), event("c")]),
        ("\ufeffdata: first\n\n", [event("first")]),
        ("data: zoë 🐚 \u2028 end\n\n", [event("zoë 🐚 \u2028 end")]),
        (": ping\ndata:no space\n: ping\n\n: ping\n\n", [event("no space")]),
        ("data\n\ndata:  two spaces\n\n", [event(""), event(" two spaces")]),
        ("event: lonely\n\nretry: 10\ndata: x\nother: y\n\n", [event("x")]),
        ("data: whole\n\ndata: cut", [event("whole")]),
        ("id: kept\nid: null\0\ndata: x\n\n", [event("x", event_id="kept")]),
    ],
)
def test_events_do_not_depend_on_how_the_bytes_are_cut(page: Page, text: str, events: list[dict[str, str]]) -> None:
    assert page.evaluate(DECODE_IN_PIECES, [text, 1]) == [events]


FOLD = """
async ([ops, stop]) => {
  const { Fold } = await import("/static/constrained.js");
  const fold = new Fold();
  for (const op of ops.slice(0, stop ?? ops.length)) fold.apply(op);
  const status = Object.fromEntries(fold.status);
  return { value: JSON.stringify(fold.value) ?? null, text: fold.text, status, open: fold.openPaths };
}
"""

RESTORE = """
async ([value, open, status, rest]) => {
  const { Fold } = await import("/static/constrained.js");
  const fold = new Fold();
  fold.restore({ value: JSON.parse(value), open, status });
  for (const op of rest) fold.apply(op);
  return { value: JSON.stringify(fold.value), text: fold.text, status: Object.fromEntries(fold.status) };
}
"""

KEYS = ["name", "a/b", "a~b", "", "__proto__", "é", "length"]


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.choice(["text", "number", "literal"] if depth > 3 else ["text", "number", "literal", "object", "array", "array"])
    if kind == "text":
        return "".join(rng.choice('ab \n"\\é🐚') for _ in range(rng.randrange(8)))
    if kind == "number":
        return rng.choice([0, -1, 2.5, 10**6])
    if kind == "literal":
        return rng.choice([None, True, False])
    if kind == "array":
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {key: random_value(rng, depth + 1) for key in rng.sample(KEYS, rng.randrange(4))}


def ops_of(value: Any, rng: random.Random, path: str = "") -> Iterator[dict[str, Any]]:
    """The ops of a run that writes `value`, its texts cut at random."""
    if isinstance(value, str):
        yield {"op": "open", "path": path, "type": "string"}
        while value:
            cut = rng.randrange(1, len(value) + 1)
            yield {"op": "text", "path": path, "add": value[:cut]}
            value = value[cut:]
        yield {"op": "close", "path": path}
    elif isinstance(value, dict | list):
        yield {"op": "open", "path": path, "type": "object" if isinstance(value, dict) else "array"}
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            place = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if rng.random() < 0.5:
                yield {"op": "field", "path": place, "types": ["string"]}
            yield from ops_of(below, rng, place)
        yield {"op": "close", "path": path}
    else:
        yield {"op": "set", "path": path, "value": value}


@pytest.mark.parametrize("seed", range(25))
def test_folding_gives_the_value_and_a_snapshot_at_any_point_is_as_good(page: Page, seed: int) -> None:
    rng = random.Random(seed)
    value = {"first": random_value(rng), "rest": [random_value(rng) for _ in range(3)]}
    ops = list(ops_of(value, rng))
    whole = page.evaluate(FOLD, [ops])
    assert json.loads(whole["value"]) == value
    assert json.loads(whole["text"]) == value
    assert set(whole["status"].values()) == {"complete"}
    stop = rng.randrange(1, len(ops))
    part = page.evaluate(FOLD, [ops, stop])
    resumed = page.evaluate(RESTORE, [part["value"], part["open"], part["status"], ops[stop:]])
    assert resumed == {name: whole[name] for name in ("value", "text", "status")}


OUTLINE = """
async ([schema, order]) => {
  const { SchemaTree } = await import("/static/form/schema.js");
  const outline = (field) => {
    const name = field.kind + (field.nullable ? "?" : "") + (field.collapsed ? "..." : "");
    if (field.collapsed) return name;
    if (field.kind === "object")
      return { [name]: Object.fromEntries(field.members.map((m) => [m.key + (m.required ? "" : "?"), outline(m.field)])) };
    if (field.kind === "array") return { [name]: outline(field.item(0)) };
    if (field.kind === "union") return { [name]: field.arms.map(outline) };
    return field.kind === "enum" ? { [name]: field.options } : name;
  };
  const root = new SchemaTree(schema, order).root;
  return JSON.stringify(outline(root));
}
"""

LINKED = {
    "$ref": "#/$defs/link",
    "$defs": {
        "link": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/link"}, {"type": "null"}]}},
            "required": ["value"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "outline"),
    [
        (True, "any"),
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string?"),
        ({"type": ["string", "integer"]}, {"union": ["string", "integer"]}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"const": 0}, {"enum": [0]}),
        ({"enum": [{"a": 1}]}, "any"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer?"),
        ({"anyOf": [{"type": "integer"}, {"enum": ["none"]}]}, {"union": ["integer", {"enum": ["none"]}]}),
        ({"properties": {"a": {"type": "null"}, "b": True}, "required": ["b"]}, {"object": {"a?": "null", "b": "any"}}),
        ({"type": "array", "prefixItems": [{"type": "boolean"}], "items": False}, {"array": "boolean"}),
        ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "number"}}}, "number"),
        ({"$ref": "#spot", "$defs": {"x": {"$anchor": "spot", "type": "boolean"}}}, "boolean"),
        ({"$ref": "#"}, "any"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"union?": ["union?..."]}),
        ({"$ref": "https://elsewhere.example/schema"}, "any"),
        (LINKED, {"object": {"value": "integer", "next?": {"union?": ["object..."]}}}),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"const": 1}}}]},
            {"object": {"b?": {"enum": [1]}, "a": "string"}},
        ),
    ],
)
def test_a_schema_becomes_fields(page: Page, schema: Any, outline: Any) -> None:
    assert json.loads(page.evaluate(OUTLINE, [schema, []])) == outline


def test_members_stand_in_the_order_of_the_generation(page: Page) -> None:
    inner = {"type": "object", "properties": {"1": True, "2": True}}
    schema = {"type": "object", "properties": {"10": True, "2": {"type": "array", "items": inner}, "extra": True}}
    text = page.evaluate(OUTLINE, [schema, ["/extra", "/2", "/2/*/2", "/2/*/1", "/10"]])
    assert text == '{"object":{"extra?":"any","2?":{"array":{"object":{"2?":"any","1?":"any"}}},"10?":"any"}}'


def test_a_union_of_tagged_objects_shares_its_tag(page: Page) -> None:
    tag_of = """
    async (schema) => {
      const { SchemaTree } = await import("/static/form/schema.js");
      const object = new SchemaTree(schema).root.as("object");
      return [object.kind, object.members.length, object.member("kind").options];
    }
    """
    arms = [{"type": "object", "properties": {"kind": {"const": name}}} for name in ("cat", "dog")]
    nested = {"anyOf": [arms[0], {"$ref": "#"}, {"oneOf": [arms[1], {"type": "string"}]}]}
    for union in {"anyOf": [*arms, {"type": "string"}]}, nested:
        assert page.evaluate(tag_of, union) == ["object", 0, ["cat", "dog"]]
