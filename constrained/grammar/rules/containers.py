"""Rules for objects and arrays: members and items, how many, and which keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from constrained.errors import SchemaError
from constrained.grammar import shapes
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import NOTHING as NO_STRING
from constrained.grammar.language import Language, from_values
from constrained.grammar.rules.base import Context, count, expect, expect_text
from constrained.grammar.rules.scalars import pattern_language
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import (
    ANY,
    ARRAY,
    OBJECT,
    STRING,
    Arm,
    ArrayShape,
    Contains,
    Layer,
    MemberLiteral,
    NodeKey,
    ObjectShape,
)
from constrained.grammar.string_sets import UNBOUNDED

_NO_LAYER = Layer()


def object_(context: Context, sub: Subschema) -> list[Arm]:
    """`properties`, `patternProperties`, `required` and `additionalProperties` of one subschema, together."""
    contents = sub.contents
    layer = _layer(context, sub)
    named = replace(layer, additional=shapes.ANYTHING) if layer.patterns else None
    members: dict[str, NodeKey] = {}
    if "properties" in contents:
        members = context.children(sub, "properties", expect(sub, "properties", Mapping, "an object of schemas"))
        for name in members:
            expect_text(name, sub, "properties")
        if named is not None:
            members = {name: shapes.join(node, named.member(name)) for name, node in members.items()}
    required: list[str] = []
    # Draft 3 put a boolean here; every later draft has a list.
    if "required" in contents:
        required = expect(sub, "required", list, "a list of names")
        if not all(isinstance(name, str) for name in required):
            raise SchemaError(f"{required!r} is not a list of names", sub.pointer, "required")
        for name in required:
            if name not in members:
                members[expect_text(name, sub, "required")] = layer.member(name)
    layers = () if layer is _NO_LAYER else (layer,)
    return [Arm(object=ObjectShape(MappingProxyType(members), layers, frozenset(required)))]


def _layer(context: Context, sub: Subschema) -> Layer:
    contents = sub.contents
    additional: NodeKey = shapes.ANYTHING
    if "additionalProperties" in contents:
        additional = context.child(sub, "additionalProperties", contents=contents["additionalProperties"])
    patterns: list[tuple[Language, NodeKey]] = []
    if "patternProperties" in contents:
        for source, value in expect(sub, "patternProperties", Mapping, "an object of schemas").items():
            child = context.child(sub, "patternProperties", source, contents=value)
            patterns.append((pattern_language(sub, "patternProperties", source), child))
    return Layer(tuple(patterns), additional) if patterns or additional else _NO_LAYER


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
    arms = context.arms_of(sub, "propertyNames", contents=sub.contents["propertyNames"])
    names = NO_STRING
    for arm in arms:
        if STRING in arm.kinds:
            names |= arm.string.as_language()
    return [some_member(~names, shapes.ANYTHING)]


def some_member(keys: Language, node: NodeKey) -> Arm:
    """An object with a member whose key is in `keys` and whose value meets `node`."""
    return replace(ANY.only(OBJECT), object=ObjectShape(clauses=((MemberLiteral(keys, node),),)))


def members(context: Context, sub: Subschema) -> list[Arm]:
    """`minProperties` and `maxProperties`."""
    least, most = count(sub, "minProperties", 0), count(sub, "maxProperties", UNBOUNDED)
    return [Arm(object=ObjectShape(min_members=least, max_members=most))]


def not_members(context: Context, sub: Subschema) -> list[Arm]:
    """Too few members, or too many."""
    [arm] = members(context, sub)
    wrong = [ObjectShape(max_members=arm.object.min_members - 1)] if arm.object.min_members else []
    wrong += [ObjectShape(min_members=arm.object.max_members + 1)] if arm.object.max_members < UNBOUNDED else []
    return [replace(ANY.only(OBJECT), object=shape) for shape in wrong]


def not_object(context: Context, sub: Subschema) -> list[Arm]:
    """An object with a member that fails its schema, or without one that is required."""
    [arm] = object_(context, sub)
    nothing = context.child(sub, "required", contents=False)
    wrong = []
    for name, value in sub.contents.get("properties", {}).items():
        if arm.object.properties[name] != shapes.ANYTHING:
            fails = context.child(sub, "properties", name, contents=value, meets=False)
            wrong.append(ObjectShape(MappingProxyType({name: fails}), required=frozenset((name,))))
    wrong += [ObjectShape(MappingProxyType({name: nothing})) for name in arm.object.properties if name in arm.object.required]
    return [*(replace(ANY.only(OBJECT), object=shape) for shape in wrong), *_wrong_others(context, sub)]


def _wrong_others(context: Context, sub: Subschema) -> list[Arm]:
    """An object with a member that fails `patternProperties` or `additionalProperties`."""
    layer, found = _layer(context, sub), []
    for language, node in layer.patterns:
        if node != shapes.ANYTHING:
            found.append(some_member(language, context.negated(node)))
    if layer.additional != shapes.ANYTHING:
        others = ~from_values(sub.contents.get("properties", {}))
        for language, _ in layer.patterns:
            others &= ~language
        found.append(some_member(others, context.negated(layer.additional)))
    return found


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
    shape = ArrayShape(prefix, rest, count(sub, "minItems", 0), count(sub, "maxItems", UNBOUNDED))
    return [Arm(array=shape)]


def _tuple(context: Context, sub: Subschema, keyword: str) -> tuple[NodeKey, ...]:
    items = expect(sub, keyword, list, "a list of schemas")
    return tuple(context.child(sub, keyword, index, contents=value) for index, value in enumerate(items))


def not_array(context: Context, sub: Subschema) -> list[Arm]:
    """An array of another length, or with an item that fails its schema."""
    [arm] = array(context, sub)
    shape, wrong = arm.array, []
    if shape.min_items > 0:
        wrong.append(ArrayShape(max_items=shape.min_items - 1))
    if shape.max_items < UNBOUNDED:
        wrong.append(ArrayShape(min_items=shape.max_items + 1))
    keyword = "prefixItems" if sub.draft >= 2020 else "items"
    for index, key in enumerate(shape.prefix):
        if key != shapes.ANYTHING:
            fails = context.child(sub, keyword, index, contents=sub.contents[keyword][index], meets=False)
            wrong.append(ArrayShape((*[shapes.ANYTHING] * index, fails), min_items=index + 1))
    if shape.rest != shapes.ANYTHING:
        wrong.append(ArrayShape(contains=(Contains(context.negated(shape.rest), start=len(shape.prefix)),)))
    return [replace(ANY.only(ARRAY), array=other) for other in wrong]


def contains(context: Context, sub: Subschema) -> list[Arm]:
    """`contains`, with `minContains` and `maxContains`."""
    found = _contains(context, sub)
    return [Arm(array=ArrayShape(contains=(found,)))] if found.least > 0 or found.most < UNBOUNDED else [ANY]


def not_contains(context: Context, sub: Subschema) -> list[Arm]:
    """Too few such items, or too many."""
    found = _contains(context, sub)
    wrong = [replace(found, least=0, most=found.least - 1)] if found.least else []
    wrong += [replace(found, least=found.most + 1, most=UNBOUNDED)] if found.most < UNBOUNDED else []
    return [replace(ANY.only(ARRAY), array=ArrayShape(contains=(other,))) for other in wrong]


def _contains(context: Context, sub: Subschema) -> Contains:
    if "contains" not in sub.contents:
        return Contains(shapes.ANYTHING, least=0)
    node = context.child(sub, "contains", contents=sub.contents["contains"])
    if sub.draft < 2019:
        return Contains(node)
    return Contains(node, count(sub, "minContains", 1), count(sub, "maxContains", UNBOUNDED))


def unique_items(context: Context, sub: Subschema) -> list[Arm]:
    """`uniqueItems`: no two items are equal."""
    return [Arm(array=ArrayShape(distinct=True))] if expect(sub, "uniqueItems", bool, "a boolean") else [ANY]


def not_unique_items(context: Context, sub: Subschema) -> list[Arm]:
    """Some two items are equal."""
    unique = expect(sub, "uniqueItems", bool, "a boolean")
    return [replace(ANY.only(ARRAY), array=ArrayShape(repeats=True))] if unique else []
