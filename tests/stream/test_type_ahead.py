"""What the schema adds to the stream: `field` before a value, `set` before its end, `variant` where a union is decided."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import StreamError
from constrained.stream import Close, DeltaStream, Field, Op, Open, Set, Text, Variant, coalesce
from schemas.events import OP

from .documents import check_protocol, chunks, fold_ops, same, single_bytes, spell, stream_ops, text
from .fake_schema import FakeLocation, types_of

names = st.sampled_from(["a", "b", "kind", "x/y", "~", "", "é", "name"])
enums = st.lists(
    st.sampled_from(
        ["red", "green", "grey", "gr", "", "é", "ée", "😀", "😁", 0, 1, 10, 12, -1, 2.5, 1e30, 2**60 + 1, True, False, None]
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda value: (isinstance(value, bool), value),
)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["null", "boolean", "integer", "number", "string"]).map(lambda name: {"type": name}),
    enums.map(lambda values: {"enum": values}),
    enums.map(lambda values: {"const": values[0]}),
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(names, inner, max_size=4).flatmap(
        lambda properties: st.sets(st.sampled_from(sorted(properties)) if properties else st.nothing()).map(
            lambda required: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
                "additionalProperties": False,
            }
        )
    )
    arrays = inner.map(lambda item: {"type": "array", "items": item})
    unions = st.lists(inner, min_size=2, max_size=3).map(lambda arms: {"anyOf": arms})
    return objects | arrays | unions


schemas = st.recursive(leaves, _containers, max_leaves=10)


def instances(schema: Any) -> st.SearchStrategy[Any]:
    """The values of a schema, members in its order."""
    if "anyOf" in schema:
        return st.one_of([instances(arm) for arm in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(instances(schema["items"]), max_size=3)
    if schema["type"] == "object":
        return _objects(schema)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(),
        "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        "string": text,
    }[schema["type"]]


@st.composite
def _objects(draw: st.DrawFn, schema: Any) -> dict[str, Any]:
    members = schema["properties"].items()
    return {name: draw(instances(member)) for name, member in members if name in schema["required"] or draw(st.booleans())}


def run(schema: Any, document: str) -> list[tuple[int, Op]]:
    """Every op with the number of bytes that had to come for it, fed byte by byte."""
    stream = DeltaStream(FakeLocation(schema))
    data = document.encode()
    ops = [(end + 1, op) for end, byte in enumerate(single_bytes(data)) for op in stream.feed(byte)]
    return ops + [(len(data), op) for op in stream.finish()]


def text_before(schema: Any, document: str, wanted: Op) -> str:
    """The part of the document after which `wanted` was given out."""
    ends = [end for end, op in run(schema, document) if op == wanted]
    assert len(ends) == 1, f"{wanted} is given once: {run(schema, document)}"
    return document.encode()[: ends[0]].decode()


@given(st.data())
def test_a_schema_changes_neither_value_nor_invariants(data: st.DataObject) -> None:
    schema = data.draw(schemas)
    document = spell(data.draw(instances(schema)), data.draw(st.randoms(use_true_random=False)))
    ops = stream_ops(data.draw(chunks(document)), FakeLocation(schema))
    fold = fold_ops(ops)
    assert fold.value == json.loads(document)
    assert fold.is_complete
    check_protocol(ops)
    assert same(coalesce(ops), coalesce(stream_ops([document.encode()], FakeLocation(schema))))
    for op in ops:
        OP.validate_python(json.loads(json.dumps(op.to_wire(), allow_nan=False)))


@given(st.data())
def test_each_known_location_is_announced_once_just_before_it_begins(data: st.DataObject) -> None:
    schema = data.draw(schemas)
    document = spell(data.draw(instances(schema)), data.draw(st.randoms(use_true_random=False)))
    ops = stream_ops(data.draw(chunks(document)), FakeLocation(schema))
    value = fold_ops(ops)
    announced: Field | None = None
    for op in ops:
        if isinstance(op, Field):
            assert announced is None
            announced = op
        elif isinstance(op, Open | Set) and op.path:
            assert announced is not None
            assert announced.path == op.path
            assert set(types_of(value.at(op.path))) & set(announced.types)
            assert announced.enum is None or value.at(op.path) in announced.enum
            announced = None
    assert announced is None


@given(enums, st.randoms(use_true_random=False), st.data())
def test_an_enum_is_set_once_and_no_later_than_one_value_is_left(
    values: list[Any], random: Random, data: st.DataObject
) -> None:
    document = "[" + spell(data.draw(st.sampled_from(values)), random) + "]"
    ops = run({"type": "array", "items": {"enum": values}}, document)
    [(end, op)] = [(end, op) for end, op in ops if isinstance(op, Set)]
    assert op.value == json.loads(document)[0]
    assert not any(isinstance(op, Text) for _, op in ops)
    assert end == _first_end_with_one_value(values, document)


def _first_end_with_one_value(values: list[Any], document: str) -> int:
    """By brute force: after how many bytes of `[value]` one value is left, else where the value is known to have ended.

    A number's digits and sign count, never its length: `1` may go on to be 10, or 0.1e1.
    """
    data = document.encode()
    start = len(document) - len(document[1:].lstrip())
    for end in range(start + 1, len(data)):
        if sum(_may_begin(value, data[start:end]) for value in values) == 1:
            return end
    is_number = document[start] in "-0123456789"
    return len(document[:-1].rstrip().encode()) + is_number


def _may_begin(value: Any, beginning: bytes) -> bool:
    if value is None or isinstance(value, bool):
        return json.dumps(value).encode().startswith(beginning)
    if isinstance(value, str):
        return beginning[:1] == b'"' and value.startswith(_decoded(beginning[1:]))
    if not beginning[:1].isdigit() and beginning[:1] != b"-":
        return False
    mantissa = beginning.decode().lower().partition("e")[0]
    digits = mantissa.lstrip("-").replace(".", "").lstrip("0")
    own = f"{abs(Decimal(repr(value))):.80e}".partition("e")[0].replace(".", "") if value else ""
    return (value == 0 or (value < 0) == mantissa.startswith("-")) and own.startswith(digits)


def _decoded(beginning: bytes) -> str:
    """As much of a cut string as whole characters were read of."""
    beginning = beginning.removesuffix(b'"') if not beginning.endswith(b'\\"') else beginning
    for end in range(len(beginning), -1, -1):
        try:
            decoded = json.loads(b'"' + beginning[:end] + b'"')
        except ValueError:
            continue
        if not any("\ud800" <= character <= "\udfff" for character in decoded):
            return str(decoded)
    raise AssertionError("the empty beginning decodes")


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "level": {"enum": ["beginner", "better", "expert"]},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "level"],
}


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        (Field("/name", ("string",), "/properties/name"), "{"),
        (Field("/level", ("string",), "/properties/level", ("beginner", "better", "expert")), '{"name": "Ann"'),
        (Field("/age", ("integer",), "/properties/age"), '{"name": "Ann", "level": "better", "age"'),
        (Field("/tags/0", ("string",), "/properties/tags/items"), '{"name": "Ann", "level": "better", "age": 7, "tags": [ "'),
        (
            Field("/tags/1", ("string",), "/properties/tags/items"),
            '{"name": "Ann", "level": "better", "age": 7, "tags": [ "a",',
        ),
        (Set("/level", "better"), '{"name": "Ann", "level": "bet'),
        (Set("/age", 7), '{"name": "Ann", "level": "better", "age": 7,'),
    ],
)
def test_when_ops_come(wanted: Op, after: str) -> None:
    assert text_before(PERSON, '{"name": "Ann", "level": "better", "age": 7, "tags": [ "a", "b"] }', wanted) == after


@pytest.mark.parametrize(("first", "text"), [("object", "{}"), ("array", "[]"), ("string", '""'), ("null", "null")])
def test_a_forced_key_is_announced_when_the_value_before_it_closes(first: str, text: str) -> None:
    properties = {"a": {"type": first}, "b": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"]}
    field = Field("/b", ("boolean",), "/properties/b")
    assert text_before(schema, f'{{"a": {text} , "b": true}}', field) == f'{{"a": {text}'


def test_a_const_is_set_at_its_first_byte() -> None:
    assert text_before({"const": "yes"}, ' "y\\u0065s"', Set("", "yes")) == ' "'
    assert text_before({"const": 15}, " 15 ", Set("", 15)) == " 1"
    assert text_before({"enum": [True, 1, "t"]}, "true", Set("", True)) == "t"


def test_an_escape_narrows_an_enum_when_it_is_whole() -> None:
    assert text_before({"enum": ["😀", "😁"]}, '"\\ud83d\\ude01"', Set("", "😁")) == '"\\ud83d\\ude01'


def test_numbers_of_an_enum_wait_while_an_exponent_could_change_them() -> None:
    assert text_before({"enum": [1, 10, 2]}, " 1 ", Set("", 1)) == " 1 "
    assert text_before({"enum": [1, 10, 2]}, " 2 ", Set("", 2)) == " 2"
    assert text_before({"enum": [0, -5, 5]}, "-5", Set("", -5)) == "-5"


def test_the_digits_of_an_exponent_are_not_significant() -> None:
    assert text_before({"enum": [10, 11]}, " 1e1 ", Set("", 10.0)) == " 1e1 "


def test_an_escaped_key_is_the_key_that_it_means() -> None:
    schema = {"type": "object", "properties": {"role": {"const": "user"}}, "required": ["role"]}
    ops = [op for _, op in run(schema, '{"\\u0072ole":"user"}')]
    assert ops[1:3] == [Field("/role", ("string",), "/properties/role", ("user",)), Set("/role", "user")]


def test_paths_escape_tilde_and_slash() -> None:
    assert Set("/a~1b~0c", 1) in stream_ops([b'{"a/b~c":1}'])
    assert Set("/", 1) in stream_ops([b'{"":1}'])


def test_the_root_has_no_field() -> None:
    assert [op for _, op in run({"type": "integer"}, "12")] == [Set("", 12)]


UNION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"],
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "square"}, "side": {"type": "integer"}},
            "required": ["kind", "side"],
        },
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
    ]
}


@pytest.mark.parametrize(
    ("document", "arm", "after"),
    [
        ('{"kind": "circle", "radius": 1.5}', 0, '{"kind": "c'),
        ('{"kind": "square", "side": 2}', 1, '{"kind": "s'),
        ('["a"]', 2, "["),
        ('"text"', 3, '"'),
    ],
)
def test_a_union_is_decided_by_type_or_discriminator(document: str, arm: int, after: str) -> None:
    assert text_before(UNION, document, Variant("", f"/anyOf/{arm}")) == after


def test_after_a_decision_the_arm_alone_speaks() -> None:
    field = Field("/side", ("integer",), "/anyOf/1/properties/side")
    assert text_before(UNION, '{"kind": "square", "side": 2}', field) == '{"kind": "square"'


def test_an_undecided_member_shows_what_all_arms_allow() -> None:
    kind = next(op for _, op in run(UNION, '{"kind": "square", "side": 2}') if isinstance(op, Field))
    assert kind == Field("/kind", ("string",), None, ("circle", "square"))


@pytest.mark.parametrize(
    ("arms", "document", "arm", "after"),
    [
        # by the type of a member
        ([{"id": {"type": "string"}}, {"id": {"type": "integer"}}], '{"id": 5}', 1, '{"id": 5'),
        # by the presence of a member
        ([{"a": {"type": "string"}}, {"b": {"type": "string"}}], '{"b": "x"}', 1, '{"b"'),
        # by a free string that the other arm's enum has not
        ([{"k": {"const": "a"}}, {"k": {"type": "string"}}], '{"k": "bc"}', 1, '{"k": "bc"'),
        # by a number
        ([{"k": {"const": 1}}, {"k": {"const": 2}}], '{"k": 2}', 1, '{"k": 2'),
        # by a number that is no integer
        ([{"k": {"type": "integer"}}, {"k": {"type": "number"}}], '{"k": 2.5}', 1, '{"k": 2.5}'),
        # by the second member
        (
            [{"k": {"enum": [1, 2]}, "v": {"const": 1}}, {"k": {"enum": [1, 2]}, "v": {"const": 2}}],
            '{"k": 1, "v": 2}',
            1,
            '{"k": 1, "v": 2',
        ),
    ],
)
def test_unions_of_objects(arms: list[Any], document: str, arm: int, after: str) -> None:
    objects = [{"type": "object", "properties": properties, "additionalProperties": False} for properties in arms]
    assert text_before({"anyOf": objects}, document, Variant("", f"/anyOf/{arm}")) == after


def test_a_member_that_decides_its_object_is_no_union_of_its_own() -> None:
    arms = [{"type": "object", "properties": {"id": {"type": name}}} for name in ("string", "integer")]
    assert [op for _, op in run({"anyOf": arms}, '{"id": 5}')] == [
        Open("", "object"),
        Field("/id", ("integer", "string"), None),
        Variant("", "/anyOf/1"),
        Set("/id", 5),
        Close(""),
    ]


def test_two_arms_of_three_keep_what_they_have_in_common() -> None:
    arms = [
        {"type": "object", "properties": {"k": {"const": k}, "v": {"const": v}}} for k, v in [(1, "ab"), (2, "ac"), (2, "ad")]
    ]
    ops = run({"anyOf": arms}, '{"k": 2, "v": "ad"}')
    assert [op for _, op in ops if isinstance(op, Field)][1] == Field("/v", ("string",), None, ("ac", "ad"))
    assert text_before({"anyOf": arms}, '{"k": 2, "v": "ad"}', Variant("", "/anyOf/2")) == '{"k": 2, "v": "ad'


def test_arrays_are_told_apart_by_their_items() -> None:
    arms = [{"type": "array", "items": {"type": name}} for name in ("string", "integer")]
    assert text_before({"anyOf": arms}, "[1]", Variant("", "/anyOf/1")) == "[1"


def test_a_union_inside_an_arm_is_decided_with_it() -> None:
    inner = {"anyOf": [{"const": "b"}, {"const": "c"}]}
    ops = [op for _, op in run({"anyOf": [{"const": "a"}, inner]}, '"c"')]
    assert ops == [Variant("", "/anyOf/1"), Variant("", "/anyOf/1/anyOf/1"), Set("", "c")]


def test_an_open_union_stays_undecided() -> None:
    ops = [op for _, op in run({"anyOf": [{"type": "string"}, {"type": "string", "minLength": 1}]}, '"a"')]
    assert ops == [Open("", "string"), Text("", "a"), Close("")]


class CountingLocation(FakeLocation):
    """Counts the keys that it was given by `forced_key`."""

    shown = 0

    def forced_key(self, seen: tuple[str, ...]) -> str | None:
        self.shown += len(seen)
        return super().forced_key(seen)


def test_a_map_of_free_keys_is_not_asked_for_ever_what_it_forces() -> None:
    shown = []
    for count in (1_000, 2_000):
        location = CountingLocation({"type": "object", "additionalProperties": {"type": "null"}})
        document = json.dumps(dict.fromkeys(map(str, range(count))))
        ops = stream_ops([document.encode()], location)
        assert sum(isinstance(op, Field) for op in ops) == count
        shown.append(location.shown)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("schema", "document", "offset", "message"),
    [
        ({"enum": ["red", "blue"]}, ' "green"', 1, "no value of its enum"),
        ({"enum": ["red", "reddish"]}, ' "re"', 1, "no value of its enum"),
        ({"const": "red"}, ' "rod"', 1, "no value of its enum"),
        ({"enum": [1, 2]}, " 3 ", 1, "no value of its enum"),
        ({"const": 12}, " 1 ", 1, "no value of its enum"),
        ({"enum": [True, None]}, " false", 1, "no value of its enum"),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, " 1", 1, "no arm of the union fits"),
        (PERSON, '{ "nome"', 2, "foretold 'name'"),
        (PERSON, "{ }", 0, "announced and has no value"),
    ],
)
def test_what_the_grammar_could_not_let_through(schema: Any, document: str, offset: int, message: str) -> None:
    stream = DeltaStream(FakeLocation(schema))
    with pytest.raises(StreamError, match=message) as caught:
        stream.feed(document.encode())
    assert caught.value.offset == offset
