"""What each keyword means: one small function per keyword (or family), and the dispatch table.

A rule turns one subschema into a list of `Arm`s, of which a value must meet at least one; the rules of one subschema
are then met together. A keyword that asserts and has no rule is refused; one that no dialect knows is an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from types import MappingProxyType
from typing import Any, Protocol

from constrained.errors import SchemaError, UnsupportedKeywordError
from constrained.grammar import shapes
from constrained.grammar.schema import Subschema, escape
from constrained.grammar.shapes import (
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
    NodeKey,
    NumberSet,
    ObjectShape,
    StringSet,
)


class Context(Protocol):
    """What a rule may ask of the compile that it is part of."""

    asserts_formats: bool

    def child(self, sub: Subschema, *path: str | int, contents: Any) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`."""

    def constant(self, sub: Subschema, keyword: str, value: Any) -> NodeKey:
        """The obligation to equal `value`."""

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any) -> list[Arm]:
        """The arms of a subschema that applies to the same value."""

    def arms_of_reference(self, sub: Subschema, ref: Any) -> list[Arm]:
        """The arms of the subschema that a reference leads to."""

    def product(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part."""


Rule = Callable[[Context, Subschema], list[Arm]]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword with a rule, and the drafts that know it (first and last year or number)."""

    rule: Rule
    since: int = 4
    until: int = 9999


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


def _constant_array(context: Context, sub: Subschema, keyword: str, value: list[Any]) -> Arm:
    items = tuple(context.constant(sub, keyword, item) for item in value)
    return replace(ANY.only(ARRAY), array=ArrayShape(items, min_items=len(items), max_items=len(items)))


def _constant_object(context: Context, sub: Subschema, keyword: str, value: Mapping[str, Any]) -> Arm:
    members = {name: context.constant(sub, keyword, member) for name, member in value.items()}
    nothing = context.child(sub, keyword, contents=False)
    return replace(ANY.only(OBJECT), object=ObjectShape(MappingProxyType(members), nothing, frozenset(members)))


def object_(context: Context, sub: Subschema) -> list[Arm]:
    """`properties`, `required` and `additionalProperties` of one subschema, together."""
    contents = sub.contents
    members: dict[str, NodeKey] = {}
    if "properties" in contents:
        for name, value in _expect(sub, "properties", Mapping, "an object of schemas").items():
            members[name] = context.child(sub, "properties", name, contents=value)
    additional: NodeKey = shapes.ANYTHING
    if "additionalProperties" in contents:
        additional = context.child(sub, "additionalProperties", contents=contents["additionalProperties"])
    required: list[str] = []
    # Draft 3 put a boolean here; every later draft has a list.
    if "required" in contents:
        required = _expect(sub, "required", list, "a list of names")
        if not all(isinstance(name, str) for name in required):
            raise SchemaError(f"{required!r} is not a list of names", sub.pointer, "required")
    for name in required:
        members.setdefault(name, additional)
    return [Arm(object=ObjectShape(MappingProxyType(members), additional, frozenset(required)))]


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


def string(context: Context, sub: Subschema) -> list[Arm]:
    """`minLength` and `maxLength`: code points of the decoded string."""
    return [Arm(string=StringSet(_count(sub, "minLength", 0), _count(sub, "maxLength", shapes.UNBOUNDED)))]


def number(context: Context, sub: Subschema) -> list[Arm]:
    """`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` (draft 4: booleans beside the plain bounds)."""
    return [Arm(number=NumberSet(_bound(sub, "Minimum", 1), _bound(sub, "Maximum", -1)))]


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
    arms: list[Arm] = []
    for index, value in enumerate(_schemas(sub, "anyOf")):
        arms += context.arms_of(sub, "anyOf", index, contents=value)
    return arms


def all_of(context: Context, sub: Subschema) -> list[Arm]:
    """`allOf`: arms that meet one arm of every member."""
    members = _schemas(sub, "allOf")
    return context.product(sub, [context.arms_of(sub, "allOf", i, contents=v) for i, v in enumerate(members)])


def _schemas(sub: Subschema, keyword: str) -> list[Any]:
    members: list[Any] = _expect(sub, keyword, list, "a list of schemas")
    if not members:
        raise SchemaError("the list of schemas is empty: at least one is needed", sub.pointer, keyword)
    return members


def ref(context: Context, sub: Subschema) -> list[Arm]:
    """`$ref`: the arms of what it leads to."""
    return context.arms_of_reference(sub, sub.contents["$ref"])


RULES: dict[str, Keyword] = {
    "$ref": Keyword(ref),
    "type": Keyword(type_),
    "enum": Keyword(enum),
    "const": Keyword(const, since=6),
    "properties": Keyword(object_),
    "required": Keyword(object_),
    "additionalProperties": Keyword(object_),
    "prefixItems": Keyword(array, since=2020),
    "items": Keyword(array),
    "additionalItems": Keyword(array, until=2019),
    "minItems": Keyword(array),
    "maxItems": Keyword(array),
    "minLength": Keyword(string),
    "maxLength": Keyword(string),
    "minimum": Keyword(number),
    "maximum": Keyword(number),
    "exclusiveMinimum": Keyword(number),
    "exclusiveMaximum": Keyword(number),
    "anyOf": Keyword(any_of),
    "allOf": Keyword(all_of),
}

# Keywords that assert and have no rule yet: (first draft, last draft, the values with which they assert nothing).
REFUSED: dict[str, tuple[int, int, tuple[Any, ...]]] = {
    "pattern": (4, 9999, ()),
    "multipleOf": (4, 9999, ()),
    "uniqueItems": (4, 9999, (False,)),
    "contains": (6, 9999, ()),
    "patternProperties": (4, 9999, ({},)),
    "propertyNames": (6, 9999, (True, {})),
    "minProperties": (4, 9999, (0,)),
    "maxProperties": (4, 9999, ()),
    "dependencies": (4, 7, ({},)),
    "dependentRequired": (2019, 9999, ({},)),
    "dependentSchemas": (2019, 9999, ({},)),
    "oneOf": (4, 9999, ()),
    "not": (4, 9999, ()),
    "if": (7, 9999, ()),
    "unevaluatedItems": (2019, 9999, (True, {})),
    "unevaluatedProperties": (2019, 9999, (True, {})),
    "$recursiveRef": (2019, 2019, ()),
    "$dynamicRef": (2020, 9999, ()),
    "$vocabulary": (2019, 9999, ()),
}

KNOWN_FORMATS = frozenset(
    [
        "date-time",
        "date",
        "time",
        "duration",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "iri",
        "iri-reference",
        "uuid",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
        "regex",
    ]
)


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
    if keyword == "format" and context.asserts_formats and isinstance(value, str) and value in KNOWN_FORMATS:
        return UnsupportedKeywordError(
            f"format {value!r} is not supported as an assertion yet; formats='annotate' takes it as a remark",
            sub.pointer,
            keyword,
        )
    return None


def applies(sub: Subschema, keyword: str) -> bool:
    """Whether the dialect of `sub` knows `keyword`, and there is a rule for it."""
    rule = RULES.get(keyword)
    return rule is not None and rule.since <= sub.draft <= rule.until


def ref_stands_alone(sub: Subschema) -> bool:
    """Up to draft 7 a reference stands alone, whatever is beside it."""
    return sub.draft <= 7 and "$ref" in sub.contents


def rules_of(sub: Subschema) -> list[Rule]:
    """The distinct rules that apply to the keywords of `sub`, in the order of its keywords."""
    if ref_stands_alone(sub):
        return [ref]
    return list(dict.fromkeys(RULES[name].rule for name in sub.contents if applies(sub, name)))


def describe(sub: Subschema, keyword: str) -> str:
    """The JSON Pointer of a keyword of `sub`."""
    return f"{sub.pointer}/{escape(keyword)}"
