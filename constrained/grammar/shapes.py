"""The sets of values that one alternative of a node allows, by JSON type, and their intersections.

Everything here is immutable and knows no bytes. Children are named by `NodeKey`: the sorted tuple of all obligations that
the child value must meet together (the empty tuple is "anything").
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from types import MappingProxyType

from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values, of_length

# Obligations are signed: i + 1 is "meets subschema i", -(i + 1) is "does not".
NodeKey = tuple[int, ...]
ANYTHING: NodeKey = ()
UNBOUNDED = 1 << 30

NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT = "null", "true", "false", "number", "string", "array", "object"
ALL_KINDS = frozenset((NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT))


def join(a: NodeKey, b: NodeKey) -> NodeKey:
    """Both obligations together."""
    if not a or a == b:
        return b
    if not b:
        return a
    return tuple(sorted({*a, *b}, key=abs))


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval of numbers; the value is exact."""

    value: Fraction
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Numbers between two bounds: whole ones only where `integer`, none of those where `fractional`.

    One of `values` only where that is not None.
    """

    lower: Bound | None = None
    upper: Bound | None = None
    integer: bool = False
    fractional: bool = False
    values: frozenset[Fraction] | None = None

    def __contains__(self, value: Fraction) -> bool:
        if (self.integer and value.denominator != 1) or (self.fractional and value.denominator == 1):
            return False
        if self.values is not None and value not in self.values:
            return False
        low, up = self.lower, self.upper
        if low is not None and (value < low.value or (low.exclusive and value == low.value)):
            return False
        return up is None or value < up.value or (value == up.value and not up.exclusive)

    def meet(self, other: NumberSet) -> NumberSet:
        """The intersection; finite sets are filtered at once."""
        both = NumberSet(
            _tighter(self.lower, other.lower, 1),
            _tighter(self.upper, other.upper, -1),
            self.integer or other.integer,
            self.fractional or other.fractional,
        )
        if self.values is None and other.values is None:
            return both
        candidates = self.values if self.values is not None else other.values
        assert candidates is not None
        return NumberSet(values=frozenset(v for v in candidates if v in both and v in self and v in other))


def _tighter(a: Bound | None, b: Bound | None, sign: int) -> Bound | None:
    if a is None or b is None:
        return a or b
    if a.value == b.value:
        return a if a.exclusive else b
    return a if (a.value - b.value) * sign > 0 else b


@dataclass(frozen=True, slots=True)
class StringSet:
    """Strings of `min_len` to `max_len` code points, none of `excluded`, all of `language` where there is one.

    One of `values` only where that is not None. Beside a language, lengths and exclusions are part of it.
    """

    min_len: int = 0
    max_len: int = UNBOUNDED
    values: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    language: Language | None = None

    def __contains__(self, text: str) -> bool:
        fits = self.min_len <= len(text) <= self.max_len and text not in self.excluded
        inside = self.language is None or self.language.contains(text)
        return fits and inside and (self.values is None or text in self.values)

    def meet(self, other: StringSet) -> StringSet:
        """The intersection; finite sets are filtered at once."""
        if self.values is not None or other.values is not None:
            candidates = self.values if self.values is not None else other.values
            assert candidates is not None
            return StringSet(values=frozenset(v for v in candidates if v in self and v in other))
        if self.language is not None or other.language is not None:
            return StringSet(language=self.as_language() & other.as_language())
        least, most = max(self.min_len, other.min_len), min(self.max_len, other.max_len)
        excluded = frozenset(v for v in self.excluded | other.excluded if least <= len(v) <= most)
        return StringSet(least, most, excluded=excluded)

    def as_language(self) -> Language:
        """The same set as one language."""
        if self.values is not None:
            return from_values(self.values)
        language = self.language if self.language is not None else ANY_STRING
        if self.min_len > 0 or self.max_len < UNBOUNDED:
            language &= of_length(self.min_len, self.max_len if self.max_len < UNBOUNDED else None)
        return language & ~from_values(self.excluded) if self.excluded else language


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Arrays of `min_items` to `max_items` elements: `prefix` one by one, then `rest` for each further element."""

    prefix: tuple[NodeKey, ...] = ()
    rest: NodeKey = ANYTHING
    min_items: int = 0
    max_items: int = UNBOUNDED

    def item(self, index: int) -> NodeKey:
        """The obligations on the element at `index`."""
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def meet(self, other: ArrayShape) -> ArrayShape:
        """The intersection, element by element."""
        length = max(len(self.prefix), len(other.prefix))
        return ArrayShape(
            tuple(join(self.item(i), other.item(i)) for i in range(length)),
            join(self.rest, other.rest),
            max(self.min_items, other.min_items),
            min(self.max_items, other.max_items),
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """What one subschema asks of keys that no property names: of those that match `patterns`, and of all others."""

    patterns: tuple[tuple[Language, NodeKey], ...] = ()
    additional: NodeKey = ANYTHING

    def member(self, key: str) -> NodeKey:
        """The obligations on the member `key`."""
        return self.of({language for language, _ in self.patterns if language.contains(key)})

    def of(self, matching: Set[Language]) -> NodeKey:
        """The obligations on a member whose key is in exactly the languages `matching`."""
        found = [node for language, node in self.patterns if language in matching]
        return reduce(join, found) if found else self.additional


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """Objects with known `properties` (in declared order), `layers` for every other key, and `required` keys."""

    properties: Mapping[str, NodeKey] = field(default_factory=lambda: MappingProxyType({}))
    layers: tuple[Layer, ...] = ()
    required: frozenset[str] = frozenset()

    def member(self, key: str) -> NodeKey:
        """The obligations on the member `key`."""
        if key in self.properties:
            return self.properties[key]
        return reduce(join, (layer.member(key) for layer in self.layers), ANYTHING)

    @property
    def languages(self) -> tuple[Language, ...]:
        """The distinct languages of all layers."""
        return tuple(dict.fromkeys(language for layer in self.layers for language, _ in layer.patterns))

    def of(self, matching: Set[Language]) -> NodeKey:
        """The obligations on a member that no property names and whose key is in exactly the languages `matching`."""
        return reduce(join, (layer.of(matching) for layer in self.layers), ANYTHING)

    def meet(self, other: ObjectShape) -> ObjectShape:
        """The intersection; the order is this shape's properties, then the other's further ones."""
        names = dict.fromkeys((*self.properties, *other.properties))
        return ObjectShape(
            MappingProxyType({name: join(self.member(name), other.member(name)) for name in names}),
            tuple(dict.fromkeys((*self.layers, *other.layers))),
            self.required | other.required,
        )

    @property
    def identity(self) -> tuple[object, ...]:
        """A hashable value that is equal for equal shapes (order of properties included)."""
        return (tuple(self.properties.items()), self.layers, self.required)


_NUMBERS, _STRINGS, _ARRAYS, _OBJECTS = NumberSet(), StringSet(), ArrayShape(), ObjectShape()


@dataclass(frozen=True, slots=True)
class Arm:
    """One alternative: the kinds of value that are left, and for each kind its set.

    `origin` is the id of the union member that this arm came from, where there was a union; -1 otherwise.
    """

    kinds: frozenset[str] = ALL_KINDS
    number: NumberSet = _NUMBERS
    string: StringSet = _STRINGS
    array: ArrayShape = _ARRAYS
    object: ObjectShape = _OBJECTS
    origin: int = -1

    def meet(self, other: Arm) -> Arm:
        """The intersection, kind by kind."""
        if self is ANY:
            return other
        if other is ANY:
            return self
        return Arm(
            self.kinds & other.kinds,
            other.number if self.number is _NUMBERS else self.number.meet(other.number),
            other.string if self.string is _STRINGS else self.string.meet(other.string),
            other.array if self.array is _ARRAYS else self.array.meet(other.array),
            other.object if self.object is _OBJECTS else self.object.meet(other.object),
            other.origin if other.origin >= 0 else self.origin,
        )

    def only(self, *kinds: str) -> Arm:
        """This arm with no kinds but `kinds`."""
        return replace(self, kinds=self.kinds & frozenset(kinds))


ANY = Arm()
