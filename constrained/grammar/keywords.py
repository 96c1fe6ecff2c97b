"""What each keyword means: one small function per keyword (or family), and the dispatch table.

A rule turns one subschema into a list of `Arm`s, of which a value must meet at least one; the rules of one subschema
are then met together. A keyword that asserts and has no rule is refused; one that no dialect knows is an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import isfinite
from types import MappingProxyType
from typing import Any, Protocol

from constrained.errors import SchemaError, UnsupportedKeywordError
from constrained.grammar import shapes
from constrained.grammar.formats import FORMATS, INEXACT, OLDER_FORMATS, Format, Strings
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import NOTHING as NO_STRING
from constrained.grammar.language import Language, PatternError, from_pattern
from constrained.grammar.schema import Subschema, escape
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
    Bound,
    Layer,
    NodeKey,
    NumberSet,
    ObjectShape,
    StringSet,
)


class Context(Protocol):
    """What a rule may ask of the compile that it is part of."""

    asserts_formats: bool

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, or not to."""

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> list[Arm]:
        """The arms of a subschema that applies to the same value, or of its complement."""

    def arms_of_reference(self, sub: Subschema, ref: Any, meets: bool = True) -> list[Arm]:
        """The arms of the subschema that a reference leads to, or of its complement."""

    def product(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part."""

    def are_disjoint(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets both."""


Rule = Callable[[Context, Subschema], list[Arm]]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword's rule, the rule of its complement, and the drafts that know it (first and last)."""

    rule: Rule
    complement: Rule
    since: int = 4
    until: int = 9999


def negation_refusal(sub: Subschema, keyword: str) -> UnsupportedKeywordError:
    """The error for an assertion whose complement is not built yet."""
    return UnsupportedKeywordError("this assertion cannot be negated yet (by not, oneOf or if)", sub.pointer, keyword)


def exact(value: Any, sub: Subschema, keyword: str) -> Fraction:
    """The exact value of a JSON number; floats stand for their shortest decimal."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not isfinite(value):
        raise SchemaError(f"{value!r} is not a number", sub.pointer, keyword)
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)


def _count(sub: Subschema, keyword: str, default: int) -> int:
    if keyword not in sub.contents:
        return default
    value = exact(sub.contents[keyword], sub, keyword)
    if value < 0 or value.denominator != 1:
        raise SchemaError(f"{sub.contents[keyword]!r} is not a non-negative whole number", sub.pointer, keyword)
    return min(int(value), shapes.UNBOUNDED)


def _expect(sub: Subschema, keyword: str, kind: type | tuple[type, ...], what: str) -> Any:
    value = sub.contents[keyword]
    if not isinstance(value, kind):
        raise SchemaError(f"{value!r} is not {what}", sub.pointer, keyword)
    return value


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
    kinds = frozenset().union(*(_TYPES[name].kinds for name in names))
    whole = "integer" in names and "number" not in names
    return [Arm(kinds, number=NumberSet(integer=whole))]


def not_type(context: Context, sub: Subschema) -> list[Arm]:
    """None of the types."""
    [arm] = type_(context, sub)
    rest = [Arm(ALL_KINDS - arm.kinds)]
    return [*rest, replace(ANY.only(NUMBER), number=NumberSet(fractional=True))] if arm.number.integer else rest


def enum(context: Context, sub: Subschema) -> list[Arm]:
    """`enum`: a list of values."""
    return _constants(context, sub, "enum", _expect(sub, "enum", list, "a list of values"))


def const(context: Context, sub: Subschema) -> list[Arm]:
    """`const`: one value."""
    return _constants(context, sub, "const", [sub.contents["const"]])


def _constants(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> list[Arm]:
    """Scalars share one arm; each container gets an arm of its own."""
    kinds: set[str] = set()
    strings: set[str] = set()
    numbers: set[Fraction] = set()
    arms: list[Arm] = []
    for value in values:
        if value is None or isinstance(value, bool):
            kinds.add(NULL if value is None else TRUE if value else FALSE)
        elif isinstance(value, str):
            if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
                raise SchemaError(f"{value!r} holds a lone surrogate, which no valid JSON text can say", sub.pointer, keyword)
            strings.add(value)
        elif isinstance(value, list):
            arms.append(_constant_array(context, sub, keyword, value))
        elif isinstance(value, Mapping):
            arms.append(_constant_object(context, sub, keyword, value))
        else:
            numbers.add(exact(value, sub, keyword))
    if strings:
        kinds.add(STRING)
    if numbers:
        kinds.add(NUMBER)
    if kinds or not arms:
        scalar = Arm(frozenset(kinds), number=NumberSet(values=frozenset(numbers)), string=StringSet(values=frozenset(strings)))
        arms.insert(0, scalar)
    return arms


def not_enum(context: Context, sub: Subschema) -> list[Arm]:
    """None of the values."""
    return _not_constants(context, sub, "enum", _expect(sub, "enum", list, "a list of values"))


def not_const(context: Context, sub: Subschema) -> list[Arm]:
    """Any other value."""
    return _not_constants(context, sub, "const", [sub.contents["const"]])


def _not_constants(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> list[Arm]:
    """Scalars are taken out of their kinds; each array may differ in length or in an item."""
    if any(isinstance(value, Mapping) for value in values):
        raise negation_refusal(sub, keyword)
    [scalars] = _constants(context, sub, keyword, [value for value in values if not isinstance(value, list)])
    arrays = [_not_array_value(context, sub, keyword, value) for value in values if isinstance(value, list)]
    return context.product(sub, [_not_scalars(scalars), *arrays])


def _not_scalars(arm: Arm) -> list[Arm]:
    numbers = sorted(arm.number.values or ())
    others = replace(
        ANY.only(*(ALL_KINDS - {NUMBER} - (arm.kinds & {NULL, TRUE, FALSE}))),
        string=StringSet(excluded=arm.string.values or frozenset()),
    )
    ends = [None, *(Bound(value, exclusive=True) for value in numbers), None]
    between = [NumberSet(low, high) for low, high in pairwise(ends)]
    return [others, *(replace(ANY.only(NUMBER), number=numbers) for numbers in between)]


def _not_array_value(context: Context, sub: Subschema, keyword: str, values: list[Any]) -> list[Arm]:
    different = [ArrayShape(min_items=len(values) + 1)]
    different += [ArrayShape(max_items=len(values) - 1)] if values else []
    for index, value in enumerate(values):
        differs = context.constant(sub, keyword, value, meets=False)
        different.append(ArrayShape((*[shapes.ANYTHING] * index, differs), min_items=index + 1))
    return [ANY.only(*(ALL_KINDS - {ARRAY})), *(replace(ANY.only(ARRAY), array=shape) for shape in different)]


def _constant_array(context: Context, sub: Subschema, keyword: str, value: list[Any]) -> Arm:
    items = tuple(context.constant(sub, keyword, item) for item in value)
    return replace(ANY.only(ARRAY), array=ArrayShape(items, min_items=len(items), max_items=len(items)))


def _constant_object(context: Context, sub: Subschema, keyword: str, value: Mapping[str, Any]) -> Arm:
    members = {name: context.constant(sub, keyword, member) for name, member in value.items()}
    nothing = context.child(sub, keyword, contents=False)
    return replace(
        ANY.only(OBJECT), object=ObjectShape(MappingProxyType(members), (Layer(additional=nothing),), frozenset(members))
    )


def object_(context: Context, sub: Subschema) -> list[Arm]:
    """`properties`, `patternProperties`, `required` and `additionalProperties` of one subschema, together."""
    contents = sub.contents
    layer = _layer(context, sub)
    members: dict[str, NodeKey] = {}
    if "properties" in contents:
        for name, value in _expect(sub, "properties", Mapping, "an object of schemas").items():
            matched = replace(layer, additional=shapes.ANYTHING).member(name)
            members[name] = shapes.join(context.child(sub, "properties", name, contents=value), matched)
    required: list[str] = []
    # Draft 3 put a boolean here; every later draft has a list.
    if "required" in contents:
        required = _expect(sub, "required", list, "a list of names")
        if not all(isinstance(name, str) for name in required):
            raise SchemaError(f"{required!r} is not a list of names", sub.pointer, "required")
    for name in required:
        members.setdefault(name, layer.member(name))
    layers = (layer,) if layer != Layer() else ()
    return [Arm(object=ObjectShape(MappingProxyType(members), layers, frozenset(required)))]


def _layer(context: Context, sub: Subschema) -> Layer:
    contents = sub.contents
    additional: NodeKey = shapes.ANYTHING
    if "additionalProperties" in contents:
        additional = context.child(sub, "additionalProperties", contents=contents["additionalProperties"])
    patterns: list[tuple[Language, NodeKey]] = []
    if "patternProperties" in contents:
        for source, value in _expect(sub, "patternProperties", Mapping, "an object of schemas").items():
            child = context.child(sub, "patternProperties", source, contents=value)
            patterns.append((_language(sub, "patternProperties", source), child))
    return Layer(tuple(patterns), additional)


def property_names(context: Context, sub: Subschema) -> list[Arm]:
    """`propertyNames`: the strings that keys may be."""
    arms = context.arms_of(sub, "propertyNames", contents=sub.contents["propertyNames"])
    names = NO_STRING
    for arm in arms:
        if STRING in arm.kinds:
            names |= arm.string.as_language()
    if names is ANY_STRING:
        return [ANY]
    nothing = context.child(sub, "propertyNames", contents=False)
    return [Arm(object=ObjectShape(layers=(Layer(((names, shapes.ANYTHING),), nothing),)))]


def not_property_names(context: Context, sub: Subschema) -> list[Arm]:
    """Some key is another string."""
    raise negation_refusal(sub, "propertyNames")


def not_object(context: Context, sub: Subschema) -> list[Arm]:
    """An object with a member that fails its schema, or without one that is required."""
    [arm] = object_(context, sub)
    nothing = context.child(sub, "required", contents=False)
    for keyword in ("additionalProperties", "patternProperties"):
        if arm.object.layers and keyword in sub.contents:
            raise negation_refusal(sub, keyword)
    wrong = []
    for name, value in sub.contents.get("properties", {}).items():
        if arm.object.properties[name] != shapes.ANYTHING:
            fails = context.child(sub, "properties", name, contents=value, meets=False)
            wrong.append(ObjectShape(MappingProxyType({name: fails}), required=frozenset((name,))))
    wrong += [ObjectShape(MappingProxyType({name: nothing})) for name in arm.object.properties if name in arm.object.required]
    return [replace(ANY.only(OBJECT), object=shape) for shape in wrong]


def array(context: Context, sub: Subschema) -> list[Arm]:
    """`prefixItems`, `items`, `additionalItems`, `minItems` and `maxItems` of one subschema, together."""
    contents = sub.contents
    prefix: tuple[NodeKey, ...] = ()
    rest_keyword = "items"
    if sub.draft >= 2020 and "prefixItems" in contents:
        prefix = _tuple(context, sub, "prefixItems")
    elif sub.draft < 2020 and isinstance(contents.get("items"), list):
        prefix, rest_keyword = _tuple(context, sub, "items"), "additionalItems"
    rest: NodeKey = shapes.ANYTHING
    if rest_keyword in contents:
        rest = context.child(sub, rest_keyword, contents=contents[rest_keyword])
    shape = ArrayShape(prefix, rest, _count(sub, "minItems", 0), _count(sub, "maxItems", shapes.UNBOUNDED))
    return [Arm(array=shape)]


def _tuple(context: Context, sub: Subschema, keyword: str) -> tuple[NodeKey, ...]:
    items = _expect(sub, keyword, list, "a list of schemas")
    return tuple(context.child(sub, keyword, index, contents=value) for index, value in enumerate(items))


def not_array(context: Context, sub: Subschema) -> list[Arm]:
    """An array of another length, or with an item that fails its schema."""
    [arm] = array(context, sub)
    shape, wrong = arm.array, []
    if shape.min_items > 0:
        wrong.append(ArrayShape(max_items=shape.min_items - 1))
    if shape.max_items < shapes.UNBOUNDED:
        wrong.append(ArrayShape(min_items=shape.max_items + 1))
    keyword = "prefixItems" if sub.draft >= 2020 else "items"
    for index, key in enumerate(shape.prefix):
        if key != shapes.ANYTHING:
            fails = context.child(sub, keyword, index, contents=sub.contents[keyword][index], meets=False)
            wrong.append(ArrayShape((*[shapes.ANYTHING] * index, fails), min_items=index + 1))
    if shape.rest != shapes.ANYTHING:
        rest_keyword = "additionalItems" if keyword == "items" and isinstance(sub.contents.get("items"), list) else "items"
        if sub.contents[rest_keyword] is not False:
            raise negation_refusal(sub, rest_keyword)
        wrong.append(ArrayShape(min_items=len(shape.prefix) + 1))
    return [replace(ANY.only(ARRAY), array=other) for other in wrong]


def string(context: Context, sub: Subschema) -> list[Arm]:
    """`minLength` and `maxLength`: code points of the decoded string."""
    return [Arm(string=StringSet(_count(sub, "minLength", 0), _count(sub, "maxLength", shapes.UNBOUNDED)))]


def not_string(context: Context, sub: Subschema) -> list[Arm]:
    """A string that is too short or too long."""
    [arm] = string(context, sub)
    wrong = [StringSet(max_len=arm.string.min_len - 1)] if arm.string.min_len else []
    wrong += [StringSet(min_len=arm.string.max_len + 1)] if arm.string.max_len < shapes.UNBOUNDED else []
    return [replace(ANY.only(STRING), string=other) for other in wrong]


def pattern(context: Context, sub: Subschema) -> list[Arm]:
    """`pattern`: an ECMA-262 regular expression that some part of the string matches."""
    return [Arm(string=StringSet(language=_pattern(sub)))]


def not_pattern(context: Context, sub: Subschema) -> list[Arm]:
    """A string with no part that matches."""
    return [replace(ANY.only(STRING), string=StringSet(language=~_pattern(sub)))]


def _pattern(sub: Subschema) -> Language:
    return _language(sub, "pattern", _expect(sub, "pattern", str, "a regular expression"))


def _language(sub: Subschema, keyword: str, source: str) -> Language:
    try:
        return from_pattern(source)
    except PatternError as error:
        raise UnsupportedKeywordError(f"{source!r}: {error}", sub.pointer, keyword) from error


def format_(context: Context, sub: Subschema) -> list[Arm]:
    """`format`: the strings that it surely holds."""
    form = _format(context, sub)
    return [Arm(string=StringSet(language=_strings(form)))] if form is not None else [ANY]


def not_format(context: Context, sub: Subschema) -> list[Arm]:
    """The strings that it surely does not hold."""
    form = _format(context, sub)
    if form is None:
        return []
    return [replace(ANY.only(STRING), string=StringSet(language=~_strings(form.wider or form)))]


def _format(context: Context, sub: Subschema) -> Format | None:
    name = sub.contents["format"]
    if not context.asserts_formats or not isinstance(name, str):
        return None
    return OLDER_FORMATS.get(f"draft{sub.draft}", FORMATS).get(name, FORMATS.get(name))


@cache
def _strings(form: Format | Strings) -> Language:
    language = ANY_STRING
    for source in form.all_of:
        language &= from_pattern(source, anchored=True)
    for source in form.none_of:
        language &= ~from_pattern(source, anchored=True)
    return language


def number(context: Context, sub: Subschema) -> list[Arm]:
    """`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` (draft 4: booleans beside the plain bounds)."""
    return [Arm(number=NumberSet(_bound(sub, "Minimum", 1), _bound(sub, "Maximum", -1)))]


def not_number(context: Context, sub: Subschema) -> list[Arm]:
    """A number beyond a bound."""
    [arm] = number(context, sub)
    low, high = arm.number.lower, arm.number.upper
    wrong = [NumberSet(upper=Bound(low.value, not low.exclusive))] if low is not None else []
    wrong += [NumberSet(lower=Bound(high.value, not high.exclusive))] if high is not None else []
    return [replace(ANY.only(NUMBER), number=other) for other in wrong]


def _bound(sub: Subschema, name: str, sign: int) -> Bound | None:
    plain, exclusive = name.lower(), f"exclusive{name}"
    bound = Bound(exact(sub.contents[plain], sub, plain)) if plain in sub.contents else None
    if exclusive not in sub.contents:
        return bound
    if sub.draft == 4:
        flag = _expect(sub, exclusive, bool, "a boolean (draft 4)")
        return replace(bound, exclusive=flag) if bound is not None else None
    value = exact(sub.contents[exclusive], sub, exclusive)
    if bound is None or (value - bound.value) * sign >= 0:
        return Bound(value, exclusive=True)
    return bound


def any_of(context: Context, sub: Subschema) -> list[Arm]:
    """`anyOf`: the arms of all members."""
    return [arm for arms in _members(context, sub, "anyOf") for arm in arms]


def not_any_of(context: Context, sub: Subschema) -> list[Arm]:
    """No member."""
    return context.product(sub, _members(context, sub, "anyOf", meets=False))


def all_of(context: Context, sub: Subschema) -> list[Arm]:
    """`allOf`: arms that meet one arm of every member."""
    return context.product(sub, _members(context, sub, "allOf"))


def not_all_of(context: Context, sub: Subschema) -> list[Arm]:
    """Some member fails."""
    return [arm for arms in _members(context, sub, "allOf", meets=False) for arm in arms]


def one_of(context: Context, sub: Subschema) -> list[Arm]:
    """`oneOf`: the arms of each member, without those of the members that it is not plainly disjoint from."""
    members = _members(context, sub, "oneOf")
    values = sub.contents["oneOf"]
    found: list[Arm] = []
    for index, arms in enumerate(members):
        parts = [arms]
        for other, others in enumerate(members):
            if other != index and not context.are_disjoint(arms, others):
                parts.append(context.arms_of(sub, "oneOf", other, contents=values[other], meets=False))
        found += context.product(sub, parts)
    return found


def not_one_of(context: Context, sub: Subschema) -> list[Arm]:
    """No member, or two."""
    members = _members(context, sub, "oneOf")
    none = context.product(sub, _members(context, sub, "oneOf", meets=False))
    pairs = [context.product(sub, [a, b]) for i, a in enumerate(members) for b in members[i + 1 :]]
    return none + [arm for pair in pairs for arm in pair]


def _members(context: Context, sub: Subschema, keyword: str, meets: bool = True) -> list[list[Arm]]:
    members: list[Any] = _expect(sub, keyword, list, "a list of schemas")
    if not members:
        raise SchemaError("the list of schemas is empty: at least one is needed", sub.pointer, keyword)
    return [context.arms_of(sub, keyword, index, contents=value, meets=meets) for index, value in enumerate(members)]


def not_(context: Context, sub: Subschema) -> list[Arm]:
    """`not`: the complement."""
    return context.arms_of(sub, "not", contents=sub.contents["not"], meets=False)


def not_not(context: Context, sub: Subschema) -> list[Arm]:
    """The schema itself."""
    return context.arms_of(sub, "not", contents=sub.contents["not"])


def if_(context: Context, sub: Subschema) -> list[Arm]:
    """`if`, `then` and `else`, together."""
    return _branches(context, sub, meets=True)


def not_if(context: Context, sub: Subschema) -> list[Arm]:
    """The branch that counts fails."""
    return _branches(context, sub, meets=False)


def _branches(context: Context, sub: Subschema, meets: bool) -> list[Arm]:
    found: list[Arm] = []
    if "then" not in sub.contents and "else" not in sub.contents:
        return [ANY] if meets else []
    for keyword, holds in (("then", True), ("else", False)):
        condition = context.arms_of(sub, "if", contents=sub.contents["if"], meets=holds)
        branch = context.arms_of(sub, keyword, contents=sub.contents.get(keyword, True), meets=meets)
        found += context.product(sub, [condition, branch])
    return found


def dependencies(context: Context, sub: Subschema) -> list[Arm]:
    """`dependentRequired`, `dependentSchemas` and, up to draft 7, `dependencies`: for each name, it is absent or all holds."""
    parts = []
    for keyword, name, value in _dependencies(sub):
        absent = Arm(object=ObjectShape(MappingProxyType({name: context.child(sub, keyword, contents=False)})))
        there = _with_keys((name,))
        if isinstance(value, list):
            parts.append([absent, _with_keys((name, *value))])
        else:
            schema = context.arms_of(sub, keyword, name, contents=value)
            parts.append([absent, *context.product(sub, [[there], schema])])
    return context.product(sub, parts)


def not_dependencies(context: Context, sub: Subschema) -> list[Arm]:
    """Some name is there and what it asks for does not hold."""
    found: list[Arm] = []
    for keyword, name, value in _dependencies(sub):
        there = [_with_keys((name,))]
        if isinstance(value, list):
            nothing = context.child(sub, keyword, contents=False)
            lacking = [Arm(object=ObjectShape(MappingProxyType({other: nothing}))) for other in value]
            found += context.product(sub, [there, lacking])
        else:
            found += context.product(sub, [there, context.arms_of(sub, keyword, name, contents=value, meets=False)])
    return found


def _with_keys(names: tuple[str, ...]) -> Arm:
    members = MappingProxyType(dict.fromkeys(names, shapes.ANYTHING))
    return replace(ANY.only(OBJECT), object=ObjectShape(members, required=frozenset(names)))


def _dependencies(sub: Subschema) -> list[tuple[str, str, Any]]:
    found = []
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        if not applies(sub, keyword) or keyword not in sub.contents:
            continue
        for name, value in _expect(sub, keyword, Mapping, "an object").items():
            names = isinstance(value, list) and all(isinstance(other, str) for other in value)
            if keyword == "dependentRequired" and not names:
                raise SchemaError(f"{value!r} is not a list of names", sub.pointer, keyword)
            if isinstance(value, list) and (keyword == "dependentSchemas" or not names):
                raise SchemaError(f"{value!r} is not a schema", sub.pointer, keyword)
            found.append((keyword, name, value))
    return found


def ref(context: Context, sub: Subschema) -> list[Arm]:
    """`$ref`: the arms of what it leads to."""
    return context.arms_of_reference(sub, sub.contents["$ref"])


def not_ref(context: Context, sub: Subschema) -> list[Arm]:
    """The complement of what it leads to."""
    return context.arms_of_reference(sub, sub.contents["$ref"], meets=False)


# In this order the rules of one subschema are met: its own members come before those of what it applies in place.
RULES: dict[str, Keyword] = {
    "type": Keyword(type_, not_type),
    "enum": Keyword(enum, not_enum),
    "const": Keyword(const, not_const, since=6),
    "properties": Keyword(object_, not_object),
    "patternProperties": Keyword(object_, not_object),
    "required": Keyword(object_, not_object),
    "additionalProperties": Keyword(object_, not_object),
    "propertyNames": Keyword(property_names, not_property_names, since=6),
    "prefixItems": Keyword(array, not_array, since=2020),
    "items": Keyword(array, not_array),
    "additionalItems": Keyword(array, not_array, until=2019),
    "minItems": Keyword(array, not_array),
    "maxItems": Keyword(array, not_array),
    "minLength": Keyword(string, not_string),
    "maxLength": Keyword(string, not_string),
    "pattern": Keyword(pattern, not_pattern),
    "format": Keyword(format_, not_format),
    "minimum": Keyword(number, not_number),
    "maximum": Keyword(number, not_number),
    "exclusiveMinimum": Keyword(number, not_number),
    "exclusiveMaximum": Keyword(number, not_number),
    "$ref": Keyword(ref, not_ref),
    "allOf": Keyword(all_of, not_all_of),
    "anyOf": Keyword(any_of, not_any_of),
    "oneOf": Keyword(one_of, not_one_of),
    "not": Keyword(not_, not_not),
    "if": Keyword(if_, not_if, since=7),
    "dependentRequired": Keyword(dependencies, not_dependencies, since=2019),
    "dependentSchemas": Keyword(dependencies, not_dependencies, since=2019),
    "dependencies": Keyword(dependencies, not_dependencies, until=7),
}

# Keywords that assert and have no rule yet: (first draft, last draft, the values with which they assert nothing).
REFUSED: dict[str, tuple[int, int, tuple[Any, ...]]] = {
    "multipleOf": (4, 9999, ()),
    "uniqueItems": (4, 9999, (False,)),
    "contains": (6, 9999, ()),
    "minProperties": (4, 9999, (0,)),
    "maxProperties": (4, 9999, ()),
    "unevaluatedItems": (2019, 9999, (True, {})),
    "unevaluatedProperties": (2019, 9999, (True, {})),
    "$recursiveRef": (2019, 2019, ()),
    "$dynamicRef": (2020, 9999, ()),
    "$vocabulary": (2019, 9999, ()),
}


class FormatChoice(Protocol):
    """Whether `format` asserts."""

    asserts_formats: bool


def refusal(context: FormatChoice, sub: Subschema, keyword: str) -> UnsupportedKeywordError | None:
    """Why `keyword` of `sub` cannot be enforced; None where it asserts nothing or has a rule."""
    value = sub.contents[keyword]
    if keyword in REFUSED:
        since, until, harmless = REFUSED[keyword]
        if since <= sub.draft <= until and not any(value == h and type(value) is type(h) for h in harmless):
            return UnsupportedKeywordError("this assertion is not supported yet", sub.pointer, keyword)
    if keyword == "format" and context.asserts_formats and isinstance(value, str) and value in INEXACT:
        return UnsupportedKeywordError(f"format {value!r} cannot be asserted exactly: {INEXACT[value]}", sub.pointer, keyword)
    return None


def applies(sub: Subschema, keyword: str) -> bool:
    """Whether the dialect of `sub` knows `keyword`, and there is a rule for it."""
    rule = RULES.get(keyword)
    return rule is not None and rule.since <= sub.draft <= rule.until


def ref_stands_alone(sub: Subschema) -> bool:
    """Up to draft 7 a reference stands alone, whatever is beside it."""
    return sub.draft <= 7 and "$ref" in sub.contents


def rules_of(sub: Subschema) -> list[Keyword]:
    """The keywords of `sub` with distinct rules, in the order of the table."""
    if ref_stands_alone(sub):
        return [RULES["$ref"]]
    found = {RULES[name].rule: RULES[name] for name in RULES if name in sub.contents and applies(sub, name)}
    return list(found.values())


def describe(sub: Subschema, keyword: str) -> str:
    """The JSON Pointer of a keyword of `sub`."""
    return f"{sub.pointer}/{escape(keyword)}"
