"""What a grammar says of the places in a document."""

from __future__ import annotations

from constrained.grammar.location import NodeLocation
from tests.grammars import grammar_of

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "size": {"enum": ["small", "large", "middle", 3, None]},
        "flag": {"enum": [True, 1]},
        "kids": {"type": "array", "prefixItems": [{"const": "x"}], "items": {"$ref": "#"}, "maxItems": 3},
        "shape": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                    "required": ["kind", "r"],
                },
                {"$ref": "#/$defs/square"},
                {"type": "null"},
            ]
        },
        "never": False,
    },
    "required": ["id", "kids"],
    "additionalProperties": {"type": "boolean"},
    "$defs": {"square": {"type": "object", "properties": {"kind": {"const": "square"}}, "required": ["kind"]}},
}


def place(*path: str | int) -> NodeLocation | None:
    here: NodeLocation | None = grammar_of(SCHEMA).root
    for part in path:
        assert here is not None
        here = here.property(part) if isinstance(part, str) else here.item(part)
    return here


def test_types_and_pointers() -> None:
    root, number, extra = place(), place("id"), place("other")
    assert root is not None
    assert number is not None
    assert extra is not None
    assert (root.types, root.schema_pointer) == (("object",), "")
    assert (number.types, number.schema_pointer, number.enum) == (("integer",), "/properties/id", None)
    assert (extra.types, extra.schema_pointer, extra.enum) == (("boolean",), "/additionalProperties", None)
    assert place("never") is None


def test_enums_keep_their_order_and_tell_true_from_one() -> None:
    size, flag = place("size"), place("flag")
    assert size is not None
    assert flag is not None
    assert size.enum == ("small", "large", "middle", 3, None)
    assert flag.enum is not None
    assert [(type(value), value) for value in flag.enum] == [(bool, True), (int, 1)]


def test_items_and_recursion() -> None:
    first, second = place("kids", 0), place("kids", 1)
    assert first is not None
    assert second is not None
    assert first.enum == ("x",)
    assert (second.types, second.schema_pointer) == (("object",), "")
    deep = place("kids", 2, "kids", 1, "size")
    assert deep is not None
    assert deep.schema_pointer == "/properties/size"
    assert place("kids", 3) is None


def test_variants() -> None:
    shape = place("shape")
    assert shape is not None
    assert shape.types == ("null", "object")
    arms = dict(shape.variants)
    assert list(arms) == ["/properties/shape/anyOf/0", "/properties/shape/anyOf/1", "/properties/shape/anyOf/2"]
    assert shape.variants is shape.variants
    kind = shape.property("kind")
    assert kind is not None
    assert kind.enum is not None
    assert set(kind.enum) == {"circle", "square"}
    square = arms["/properties/shape/anyOf/1"].property("kind")
    assert square is not None
    assert square.enum == ("square",)
    assert arms["/properties/shape/anyOf/0"].forced_key(()) == "kind"
    assert arms["/properties/shape/anyOf/0"].forced_key(("kind",)) == "r"
    assert shape.forced_key(()) is None


def test_forced_keys() -> None:
    root = place()
    assert root is not None
    assert root.forced_key(()) == "id"
    assert root.forced_key(("id",)) is None
    assert root.forced_key(("id", "shape")) is None
    assert root.forced_key(("id", "kids", "extra")) is None


def test_no_key_is_forced_where_any_order_is_allowed() -> None:
    root = grammar_of(SCHEMA, property_order="any").root
    assert root is not None
    assert root.forced_key(()) is None


def test_order_and_shortest() -> None:
    grammar = grammar_of(SCHEMA)
    assert grammar.property_order[:5] == ("/id", "/size", "/flag", "/kids", "/kids/0")
    assert "/kids/*" in grammar.property_order
    assert "/never" not in grammar.property_order
    assert grammar.min_bytes == len('{"id":0,"kids":[]}')
