"""Whether it is plain that two alternatives share no value: what spares a `oneOf` the complements of its other members."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from constrained.errors import SchemaError
from constrained.grammar import numerals, texts
from constrained.grammar.glimpses import Glimpses
from constrained.grammar.language import LanguageFuelError, state_limit
from constrained.grammar.shapes import (
    ALL_OBJECTS,
    ARRAY,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Arm,
    NodeKey,
    ObjectShape,
    join,
)
from constrained.grammar.string_sets import StringSet

_GLANCE = 3  # how deep required members are looked into
_GLANCE_STATES = 200  # of a language's automaton


class Arms(Protocol):
    """Where arms come from."""

    def arms(self, key: NodeKey) -> list[Arm]:
        """The arms of a node."""


class Disjointness:
    """Kinds, finite sets, bounds, and required members that show it; what needs more thought counts as overlapping."""

    def __init__(self, source: Arms, glimpses: Glimpses, notation: numerals.Notation) -> None:
        self._source = source
        self._glimpses = glimpses
        self._notation = notation
        self._none: dict[tuple[NodeKey, int], bool] = {}

    def holds(self, some: list[Arm], others: list[Arm], there: frozenset[str]) -> bool:
        """Whether it is plain that no value meets an arm of both; every object has the members `there`."""
        return all(self._are_disjoint(a, b, there) for a in some for b in others)

    def _are_disjoint(self, a: Arm, b: Arm, there: frozenset[str]) -> bool:
        kinds = a.kinds & b.kinds
        if kinds & {NULL, TRUE, FALSE}:
            return False
        if OBJECT in kinds and not self._objects_differ(a.object, b.object, there):
            return False
        if kinds <= {OBJECT}:
            return True
        return self.is_plainly_empty(replace(a, kinds=kinds - {OBJECT}).meet(b), _GLANCE)

    def _objects_differ(self, a: ObjectShape, b: ObjectShape, there: frozenset[str]) -> bool:
        """Whether some member that must be there can be nothing for both; a glimpse at each first."""
        keys = {join(a.member(name), b.member(name)) for name in a.required | b.required | there}
        return any(map(self._glimpses.show_nothing, keys)) or any(self._has_plainly_none(key, _GLANCE) for key in keys)

    def is_plainly_empty(self, arm: Arm, depth: int) -> bool:
        """Whether a glance shows that no value meets an arm."""
        if arm.kinds & {NULL, TRUE, FALSE}:
            return False
        if NUMBER in arm.kinds and numerals.min_number_len(arm.number, self._notation) is not None:
            return False
        if STRING in arm.kinds and _may_hold_a_string(arm.string):
            return False
        if ARRAY in arm.kinds:
            items = [arm.array.item(i) for i in range(min(arm.array.min_items, len(arm.array.prefix)))]
            if arm.array.min_items <= arm.array.max_items and not any(self._has_plainly_none(item, depth) for item in items):
                return False
        if OBJECT in arm.kinds:
            return any(self._has_plainly_none(arm.object.member(name), depth) for name in arm.object.required)
        return True

    def has_dead_member(self, met: ObjectShape, a: ObjectShape, b: ObjectShape) -> bool:
        """Whether a glimpse shows that a member which the intersection of two shapes requires can be nothing."""
        if a is ALL_OBJECTS or b is ALL_OBJECTS:
            return False
        properties, mine, others = met.properties, a.properties, b.properties
        for name in met.required:
            key = properties[name]
            if len(key) > 1 and key != mine.get(name) and key != others.get(name) and self._glimpses.show_nothing(key):
                return True
        return False

    def _has_plainly_none(self, key: NodeKey, depth: int) -> bool:
        """Whether a glance shows that no value meets a node; a schema that is being expanded is not looked into."""
        if depth == 0 or not key:
            return False
        if self._glimpses.show_nothing(key):
            return True
        place = (key, depth)
        known = self._none.get(place)
        if known is None:
            try:
                known = all(self.is_plainly_empty(arm, depth - 1) for arm in self._source.arms(key))
            except SchemaError:
                known = False  # what is wrong with it is said when its own turn comes
            self._none[place] = known
        return known


def _may_hold_a_string(strings: StringSet) -> bool:
    try:
        with state_limit(_GLANCE_STATES):
            return texts.min_string_len(strings) is not None
    except LanguageFuelError:
        return True
