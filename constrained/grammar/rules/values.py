"""Rules for a value as such: `type`, `enum` and `const`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from constrained.errors import SchemaError
from constrained.grammar import shapes
from constrained.grammar.language import from_values
from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.rules.base import Context, exact, expect, expect_text
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import (
    ALL_KINDS,
    ANY,
    ARRAY,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Arm,
    ArrayShape,
    ItemLiteral,
    Layer,
    MemberLiteral,
    ObjectShape,
)
from constrained.grammar.string_sets import StringSet

_TYPES: dict[str, Arm] = {
    "null": ANY.only(NULL),
    "boolean": ANY.only(TRUE, FALSE),
    "string": ANY.only(STRING),
    "number": ANY.only(NUMBER),
    "integer": replace(ANY.only(NUMBER), number=NumberSet(integer=True)),
    "array": ANY.only(ARRAY),
    "object": ANY.only(OBJECT),
}


def type_(context: Context, sub: Subschema) -> list[Arm]:
    """`type`: one name or a list of names."""
    value = sub.contents["type"]
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise SchemaError(f"{value!r} is neither a type name nor a list of them", sub.pointer, "type")
    for name in names:
        if not isinstance(name, str) or name not in _TYPES:
            raise SchemaError(f"unknown type {name!r}; known: {', '.join(_TYPES)}", sub.pointer, "type")
    return _of_types(tuple(names), sub.draft)


@lru_cache(maxsize=1024)
def _of_types(names: tuple[str, ...], draft: int) -> list[Arm]:
    kinds = frozenset().union(*(_TYPES[name].kinds for name in names))
    whole = "integer" in names and "number" not in names
    # To draft 4 an integer is a matter of how it is written: 1.0 is none.
    return [Arm(kinds, number=NumberSet(integer=whole, plain=whole and draft == 4))]


def not_type(context: Context, sub: Subschema) -> list[Arm]:
    """None of the types."""
    [arm] = type_(context, sub)
    rest = [Arm(ALL_KINDS - arm.kinds)]
    fractional = NumberSet(not_multiple_of=frozenset((Fraction(1),)))
    return [*rest, replace(ANY.only(NUMBER), number=fractional)] if arm.number.integer else rest


def enum(context: Context, sub: Subschema) -> list[Arm]:
    """`enum`: a list of values."""
    return _constants(context, sub, "enum", expect(sub, "enum", list, "a list of values"))


def const(context: Context, sub: Subschema) -> list[Arm]:
    """`const`: one value."""
    return _constants(context, sub, "const", [sub.contents["const"]])


def listed(sub: Subschema) -> list[Arm]:
    """`enum` or `const` of scalars, legal and beside `type` at most: what the rules come to together."""
    contents = sub.contents
    keyword = "enum" if "enum" in contents else "const"
    scalars = _scalars(sub, keyword, contents["enum"] if keyword == "enum" else [contents["const"]])
    if "type" not in contents:
        return [scalars]
    names = contents["type"]
    [arm] = _of_types((names,) if isinstance(names, str) else tuple(names), sub.draft)
    met = arm.meet(scalars)
    return [met] if met.kinds else []


def _constants(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> list[Arm]:
    """Scalars share one arm; each container gets an arm of its own."""
    scalars: list[Any] = []
    arms: list[Arm] = []
    for value in values:
        if isinstance(value, list):
            arms.append(_constant_array(context, sub, keyword, value))
        elif isinstance(value, Mapping):
            arms.append(_constant_object(context, sub, keyword, value))
        else:
            scalars.append(value)
    return [_scalars(sub, keyword, scalars), *arms] if scalars or not arms else arms


def _scalars(sub: Subschema, keyword: str, values: list[Any]) -> Arm:
    """The arm that is these scalars."""
    kinds: set[str] = set()
    strings: set[str] = set()
    numbers: set[Fraction] = set()
    for value in values:
        if isinstance(value, str):
            strings.add(expect_text(value, sub, keyword))
        elif value is None or isinstance(value, bool):
            kinds.add(NULL if value is None else TRUE if value else FALSE)
        else:
            numbers.add(exact(value, sub, keyword))
    if strings:
        kinds.add(STRING)
    if numbers:
        kinds.add(NUMBER)
    return Arm(frozenset(kinds), number=NumberSet(values=frozenset(numbers)), string=StringSet(values=frozenset(strings)))


def not_enum(context: Context, sub: Subschema) -> list[Arm]:
    """None of the values."""
    return _not_constants(context, sub, "enum", expect(sub, "enum", list, "a list of values"))


def not_const(context: Context, sub: Subschema) -> list[Arm]:
    """Any other value."""
    return _not_constants(context, sub, "const", [sub.contents["const"]])


def _not_constants(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> list[Arm]:
    """Scalars are taken out of their kinds; each array may differ in length or in an item."""
    listed = [value for value in values if not isinstance(value, (list, Mapping))]
    [scalars] = _constants(context, sub, keyword, listed)
    arrays = [_not_array_value(context, sub, keyword, value) for value in values if isinstance(value, list)]
    objects = [_not_object_value(context, sub, keyword, value) for value in values if isinstance(value, Mapping)]
    apart = Arm(array=ArrayShape(clauses=tuple(arrays)), object=ObjectShape(clauses=tuple(objects)))
    return context.product(sub, [_not_scalars(scalars), [apart]])


def _not_scalars(arm: Arm) -> list[Arm]:
    numbers = sorted(arm.number.values or ())
    others = replace(
        ANY.only(*(ALL_KINDS - {NUMBER} - (arm.kinds & {NULL, TRUE, FALSE}))),
        string=StringSet(excluded=arm.string.values or frozenset()),
    )
    ends = [None, *(Bound(value, exclusive=True) for value in numbers), None]
    between = [NumberSet(low, high) for low, high in pairwise(ends)]
    return [others, *(replace(ANY.only(NUMBER), number=numbers) for numbers in between)]


def _not_array_value(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> tuple[ItemLiteral, ...]:
    """An array of another length, or with another item somewhere."""
    nothing = context.child(sub, keyword, contents=False)
    shorter = [ItemLiteral(len(values) - 1, nothing, some=False)] if values else []
    others = [ItemLiteral(i, context.constant(sub, keyword, value, meets=False)) for i, value in enumerate(values)]
    return (*shorter, *others, ItemLiteral(len(values), shapes.ANYTHING))


def _not_object_value(context: Context, sub: Subschema, keyword: str, values: Mapping[str, Any]) -> tuple[MemberLiteral, ...]:
    """An object without one of the members, with another value of one, or with one more."""
    nothing = context.child(sub, keyword, contents=False)
    found = []
    for name, value in values.items():
        key = from_values((name,))
        found.append(MemberLiteral(key, context.constant(sub, keyword, value, meets=False)))
        found.append(MemberLiteral(key, nothing, some=False))
    return (*found, MemberLiteral(~from_values(values), shapes.ANYTHING))


def _constant_array(context: Context, sub: Subschema, keyword: str, value: list[Any]) -> Arm:
    items = tuple(context.constant(sub, keyword, item) for item in value)
    return replace(ANY.only(ARRAY), array=ArrayShape(items, min_items=len(items), max_items=len(items)))


def _constant_object(context: Context, sub: Subschema, keyword: str, value: Mapping[str, Any]) -> Arm:
    members = {expect_text(name, sub, keyword): context.constant(sub, keyword, member) for name, member in value.items()}
    nothing = context.child(sub, keyword, contents=False)
    return replace(
        ANY.only(OBJECT), object=ObjectShape(MappingProxyType(members), (Layer(additional=nothing),), frozenset(members))
    )
