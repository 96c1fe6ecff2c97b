"""Whether it is plain that two alternatives share no value: what spares a `oneOf` the complements of its other members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from constrained.errors import SchemaError
from constrained.grammar import numerals, texts
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, Arm, NodeKey

_GLANCE = 3  # how deep required members are looked into


class Arms(Protocol):
    """Where arms come from."""

    def arms(self, key: NodeKey) -> list[Arm]:
        """The arms of a node."""

    def obligation(self, signed: int) -> tuple[Subschema, bool]:
        """The subschema of an obligation, and whether it is to be met."""


class Disjointness:
    """Kinds, finite sets, bounds, and required members that show it; what needs more thought counts as overlapping."""

    def __init__(self, source: Arms, notation: numerals.Notation) -> None:
        self._source = source
        self._notation = notation
        self._listed: dict[NodeKey, frozenset[str] | None] = {}

    def holds(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets an arm of both."""
        return all(self._differ(a, b) or self.is_plainly_empty(a.meet(b), _GLANCE) for a in some for b in others)

    def _differ(self, a: Arm, b: Arm) -> bool:
        """Whether both are objects with a required member of few strings, none of them the same."""
        if len(a.kinds) != 1 or a.kinds != b.kinds or OBJECT not in a.kinds:
            return False
        for name in a.object.required & b.object.required:
            mine, other = (self._few_strings(arm.object.properties.get(name, ())) for arm in (a, b))
            if mine is not None and other is not None and mine.isdisjoint(other):
                return True
        return False

    def _few_strings(self, key: NodeKey) -> frozenset[str] | None:
        """The values of a node that is one subschema of nothing but listed strings."""
        if key not in self._listed:
            values = None
            if len(key) == 1 and key[0] > 0:
                contents = self._source.obligation(key[0])[0].contents
                values = _listed_strings(contents) if isinstance(contents, Mapping) else None
            self._listed[key] = values
        return self._listed[key]

    def is_plainly_empty(self, arm: Arm, depth: int) -> bool:
        """Whether a glance shows that no value meets an arm."""
        if arm.kinds & {NULL, TRUE, FALSE}:
            return False
        if NUMBER in arm.kinds and numerals.min_number_len(arm.number, self._notation) is not None:
            return False
        if STRING in arm.kinds and texts.min_string_len(arm.string) is not None:
            return False
        if ARRAY in arm.kinds:
            items = [arm.array.item(i) for i in range(min(arm.array.min_items, len(arm.array.prefix)))]
            if arm.array.min_items <= arm.array.max_items and not any(self._has_plainly_none(item, depth) for item in items):
                return False
        if OBJECT in arm.kinds:
            return any(self._has_plainly_none(arm.object.member(name), depth) for name in arm.object.required)
        return True

    def _has_plainly_none(self, key: NodeKey, depth: int) -> bool:
        """Whether a glance shows that no value meets a node; a schema that is being expanded is not looked into."""
        if depth == 0 or not key:
            return False
        try:
            arms = self._source.arms(key)
        except SchemaError:
            return False  # what is wrong with it is said when its own turn comes
        return all(self.is_plainly_empty(arm, depth - 1) for arm in arms)


def _listed_strings(contents: Mapping[str, Any]) -> frozenset[str] | None:
    """The strings that `const` or `enum` lists; None where there is neither, or another value among them."""
    values = [contents["const"]] if "const" in contents else contents.get("enum")
    if not isinstance(values, list) or "$ref" in contents or not all(isinstance(value, str) for value in values):
        return None
    return frozenset(values)
