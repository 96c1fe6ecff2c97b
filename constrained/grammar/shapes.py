"""The sets of values that one alternative of a node allows, by JSON type, and their intersections.

Everything here is immutable and knows no bytes. Children are named by `NodeKey`: the sorted tuple of all obligations that
the child value must meet together (the empty tuple is "anything").
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from constrained.grammar.evaluated import NOTHING, Evaluated
from constrained.grammar.language import Language
from constrained.grammar.number_sets import ALL_NUMBERS, NumberSet
from constrained.grammar.string_sets import ALL_STRINGS, UNBOUNDED, StringSet

# Obligations are signed: i + 1 is "meets subschema i", -(i + 1) is "does not".
NodeKey = tuple[int, ...]
ANYTHING: NodeKey = ()

NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT = "null", "true", "false", "number", "string", "array", "object"
ALL_KINDS = frozenset((NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT))


def join(a: NodeKey, b: NodeKey) -> NodeKey:
    """Both obligations together."""
    if not a or a == b:
        return b
    if not b:
        return a
    return tuple(sorted({*a, *b}, key=_rank))


def _rank(obligation: int) -> tuple[bool, int]:
    """What is to be met comes first: its members' order is that of the value."""
    return obligation < 0, abs(obligation)


@dataclass(frozen=True, slots=True)
class Contains:
    """Of the items from index `start` on, at least `least` and at most `most` meet `node`."""

    node: NodeKey
    least: int = 1
    most: int = UNBOUNDED
    start: int = 0


@dataclass(frozen=True, slots=True)
class ItemLiteral:
    """There is an item at `index` and it meets `node`; or, where not `some`, it meets `node` if it is there."""

    index: int
    node: NodeKey
    some: bool = True


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Arrays of `min_items` to `max_items` elements: `prefix` one by one, then `rest` for each further element.

    `distinct`: no two items are equal; `repeats`: some two are. Of each of `clauses` one literal holds.
    """

    prefix: tuple[NodeKey, ...] = ()
    rest: NodeKey = ANYTHING
    min_items: int = 0
    max_items: int = UNBOUNDED
    contains: tuple[Contains, ...] = ()
    distinct: bool = False
    repeats: bool = False
    clauses: tuple[tuple[ItemLiteral, ...], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether each element is a matter of its own."""
        return not (self.contains or self.clauses or self.distinct or self.repeats)

    def item(self, index: int) -> NodeKey:
        """The obligations on the element at `index`."""
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def meet(self, other: ArrayShape) -> ArrayShape:
        """The intersection, element by element."""
        if other is ALL_ARRAYS or self is ALL_ARRAYS:
            return self if other is ALL_ARRAYS else other
        length = max(len(self.prefix), len(other.prefix))
        return ArrayShape(
            tuple(join(self.item(i), other.item(i)) for i in range(length)),
            join(self.rest, other.rest),
            max(self.min_items, other.min_items),
            min(self.max_items, other.max_items),
            tuple(dict.fromkeys((*self.contains, *other.contains))),
            self.distinct or other.distinct,
            self.repeats or other.repeats,
            tuple(dict.fromkeys((*self.clauses, *other.clauses))),
        )


class MemberLiteral(NamedTuple):
    """Some member whose key is in `keys` meets `node`; or, where not `some`, every such member does."""

    keys: Language
    node: NodeKey
    some: bool = True


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
        if not self.patterns:
            return self.additional
        found = [node for language, node in self.patterns if language in matching]
        return reduce(join, found) if found else self.additional


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """Objects with known `properties` (in declared order), `layers` for every other key, and `required` keys.

    They have `min_members` to `max_members` members. Of each of `clauses` one literal holds.
    """

    properties: Mapping[str, NodeKey] = field(default_factory=lambda: MappingProxyType({}))
    layers: tuple[Layer, ...] = ()
    required: frozenset[str] = frozenset()
    min_members: int = 0
    max_members: int = UNBOUNDED
    clauses: tuple[tuple[MemberLiteral, ...], ...] = ()

    def member(self, key: str) -> NodeKey:
        """The obligations on the member `key`."""
        if key in self.properties:
            return self.properties[key]
        return reduce(join, (layer.member(key) for layer in self.layers), ANYTHING)

    @property
    def is_plain(self) -> bool:
        """Whether each member is a matter of its own, and nothing but `required` asks for any."""
        return not self.clauses and self.max_members >= UNBOUNDED and self.min_members <= len(self.required)

    @property
    def has_classes(self) -> bool:
        """Whether keys that no property names may ask different things."""
        return bool(self.clauses or (self.layers and any(layer.patterns for layer in self.layers)))

    @property
    def languages(self) -> tuple[Language, ...]:
        """The distinct languages of all layers and literals."""
        layers = (language for layer in self.layers for language, _ in layer.patterns)
        return tuple(dict.fromkeys((*layers, *(literal.keys for literal in self.literals))))

    @property
    def literals(self) -> tuple[MemberLiteral, ...]:
        """The distinct literals of all clauses."""
        return tuple(dict.fromkeys(literal for clause in self.clauses for literal in clause))

    def of(self, matching: Set[Language]) -> NodeKey:
        """The obligations on a member that no property names and whose key is in exactly the languages `matching`."""
        if len(self.layers) < 2:
            return self.layers[0].of(matching) if self.layers else ANYTHING
        return reduce(join, (layer.of(matching) for layer in self.layers), ANYTHING)

    def meet(self, other: ObjectShape) -> ObjectShape:
        """The intersection; the order is this shape's properties, then the other's further ones."""
        if other is ALL_OBJECTS or self is ALL_OBJECTS:
            return self if other is ALL_OBJECTS else other
        mine, others = self.properties, other.properties
        properties = {
            name: join(node, others[name] if name in others else other.member(name) if other.layers else ANYTHING)
            for name, node in mine.items()
        }
        for name, node in others.items():
            if name not in mine:
                properties[name] = join(self.member(name), node) if self.layers else node
        return ObjectShape(
            MappingProxyType(properties),
            tuple(dict.fromkeys((*self.layers, *other.layers))),
            self.required | other.required,
            max(self.min_members, other.min_members),
            min(self.max_members, other.max_members),
            tuple(dict.fromkeys((*self.clauses, *other.clauses))),
        )

    @property
    def identity(self) -> tuple[object, ...]:
        """A hashable value that is equal for equal shapes (order of properties included)."""
        limits = (self.min_members, self.max_members)
        return (tuple(self.properties.items()), self.layers, self.required, limits, self.clauses)


ALL_ARRAYS, ALL_OBJECTS = ArrayShape(), ObjectShape()


@dataclass(frozen=True, slots=True)
class Arm:
    """One alternative: the kinds of value that are left, and for each kind its set.

    `origin` is the id of the union member that this arm came from, where there was a union; -1 otherwise. `evaluated` is
    known where `Tracking` says so.
    """

    kinds: frozenset[str] = ALL_KINDS
    number: NumberSet = ALL_NUMBERS
    string: StringSet = ALL_STRINGS
    array: ArrayShape = ALL_ARRAYS
    object: ObjectShape = ALL_OBJECTS
    origin: int = -1
    evaluated: Evaluated = NOTHING

    def meet(self, other: Arm) -> Arm:
        """The intersection, kind by kind."""
        if self is ANY:
            return other
        if other is ANY:
            return self
        kinds = self.kinds & other.kinds
        return Arm(
            kinds,
            self.number.meet(other.number) if NUMBER in kinds else ALL_NUMBERS,
            self.string.meet(other.string) if STRING in kinds else ALL_STRINGS,
            self.array.meet(other.array) if ARRAY in kinds else ALL_ARRAYS,
            self.object.meet(other.object) if OBJECT in kinds else ALL_OBJECTS,
            other.origin if other.origin >= 0 else self.origin,
            self.evaluated.join(other.evaluated),
        )

    def only(self, *kinds: str) -> Arm:
        """This arm with no kinds but `kinds`."""
        return replace(self, kinds=self.kinds & frozenset(kinds))


ANY = Arm()


def whole_kinds(arm: Arm) -> frozenset[str]:
    """The kinds of which every value meets an arm."""
    bounded = {
        kind
        for kind, own, every in (
            (NUMBER, arm.number, ALL_NUMBERS),
            (STRING, arm.string, ALL_STRINGS),
            (ARRAY, arm.array, ALL_ARRAYS),
            (OBJECT, arm.object, ALL_OBJECTS),
        )
        if own is not every and own != every
    }
    return arm.kinds - bounded
