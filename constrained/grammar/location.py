"""Locations: what the grammar says of one place in a document, for the delta stream (`constrained.guide.Location`)."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

from constrained.grammar.nodes import Nodes
from constrained.grammar.shapes import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, Arm, NodeKey

_NAMES = ("null", "boolean", "integer", "number", "string", "array", "object")


class NodeLocation:
    """The location of a value that meets one node, or, for a union's member, one arm of it."""

    def __init__(
        self, locations: Locations, pointer: str | None, arms: tuple[Arm, ...], declared: tuple[Any, ...] = ()
    ) -> None:
        self._locations = locations
        self._arms = arms
        self._declared = declared
        self.schema_pointer = pointer
        self.types = self._types()
        self.enum = self._enum()

    def _types(self) -> tuple[str, ...]:
        names = set()
        for arm in self._arms:
            names |= {name for name, kinds in _KINDS.items() if kinds & arm.kinds}
            if NUMBER in arm.kinds:
                names.add("integer" if arm.number.integer or _all_whole(arm) else "number")
        return tuple(name for name in _NAMES if name in names)

    def _enum(self) -> tuple[Any, ...] | None:
        values: list[Any] = []
        for arm in self._arms:
            if arm.kinds & {ARRAY, OBJECT}:
                return None
            if (STRING in arm.kinds and arm.string.values is None) or (NUMBER in arm.kinds and arm.number.values is None):
                return None
            values += [value for kind, value in ((NULL, None), (TRUE, True), (FALSE, False)) if kind in arm.kinds]
            if NUMBER in arm.kinds:
                values += [_number(value) for value in sorted(arm.number.values or ())]
            if STRING in arm.kinds:
                values += sorted(arm.string.values or ())
        if all(value is None or isinstance(value, bool) for value in values):
            return None  # what `type` says already
        distinct = {_identity(value): value for value in values}
        first = {_identity(value): value for value in self._declared if _identity(value) in distinct}
        return tuple((first | distinct).values())

    @cached_property
    def variants(self) -> tuple[tuple[str, NodeLocation], ...]:
        """The members of the union here, where there are several; each with its schema pointer."""
        members: dict[int, list[Arm]] = {}
        for arm in self._arms:
            if arm.origin < 0:
                return ()
            members.setdefault(arm.origin, []).append(arm)
        if len(members) < 2:
            return ()
        pointer = self._locations.pointer
        return tuple(
            (pointer(origin), NodeLocation(self._locations, pointer(origin), tuple(arms))) for origin, arms in members.items()
        )

    def property(self, key: str) -> NodeLocation | None:
        """The location of the member `key`; None where no object here can have it."""
        shapes = [arm.object for arm in self._arms if OBJECT in arm.kinds]
        return self._locations.union([shape.member(key) for shape in shapes])

    def item(self, index: int) -> NodeLocation | None:
        """The location of element `index`; None where no array here is that long."""
        shapes = [arm.array for arm in self._arms if ARRAY in arm.kinds and index < arm.array.max_items]
        return self._locations.union([shape.item(index) for shape in shapes])

    def forced_key(self, seen: tuple[str, ...]) -> str | None:
        """The only key that can come next after the keys `seen`, in declared order; None where there is a choice."""
        names = self._forced_after
        if names is None:
            return None
        last = next((name for name in reversed(seen) if name in names), None)
        return names[last]

    @cached_property
    def _forced_after(self) -> dict[str | None, str | None] | None:
        """For the start (None) and each property, the property that must follow it; None where several shapes or orders are."""
        shapes = [arm.object for arm in self._arms if OBJECT in arm.kinds]
        if len(shapes) != 1 or self._locations.nodes.any_order:
            return None
        alive = self._locations.nodes
        names = [name for name, key in shapes[0].properties.items() if not alive.is_empty(key)]
        following = [name if name in shapes[0].required else None for name in names]
        return dict(zip((None, *names), (*following, None), strict=True))


class Locations:
    """Locations of one grammar, memoised by the nodes that they stand for."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._memo: dict[tuple[NodeKey, ...], NodeLocation | None] = {}
        root = self.union([nodes.root])
        assert root is not None  # an empty root is refused when the nodes are made
        self.root = root

    def pointer(self, subschema_id: int) -> str:
        """The JSON Pointer of a subschema."""
        return self.nodes.document.subschema(subschema_id).pointer

    def union(self, keys: list[NodeKey]) -> NodeLocation | None:
        """The location of a value that meets one of the nodes; None where all are empty."""
        name = tuple(dict.fromkeys(key for key in keys if not self.nodes.is_empty(key)))
        if name not in self._memo:
            self._memo[name] = self._make(name)
        return self._memo[name]

    def _make(self, keys: tuple[NodeKey, ...]) -> NodeLocation | None:
        if not keys:
            return None
        subs = [self.nodes.subschema(key) for key in keys]
        pointer = self.nodes.landing(subs[0]).pointer if len(keys) == 1 and subs[0] is not None else None
        arms = tuple(arm for key in keys for arm in self.nodes[key].arms if self.nodes.is_alive(arm))
        return NodeLocation(self, pointer, arms, self._declared(keys))

    def _declared(self, keys: tuple[NodeKey, ...]) -> tuple[Any, ...]:
        """The scalars that the `enum`s of the subschemas list, in their order."""
        subs = [self.nodes.landing(self.nodes.document.subschema(i - 1)).contents for key in keys for i in key if i > 0]
        listed = (value for contents in subs if isinstance(contents, dict) for value in contents.get("enum", ()))
        return tuple(value for value in listed if not isinstance(value, (list, dict)))


_KINDS = {
    "null": frozenset((NULL,)),
    "boolean": frozenset((TRUE, FALSE)),
    "string": frozenset((STRING,)),
    "array": frozenset((ARRAY,)),
    "object": frozenset((OBJECT,)),
}


def _all_whole(arm: Arm) -> bool:
    return arm.number.values is not None and all(value.denominator == 1 for value in arm.number.values)


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _identity(value: Any) -> tuple[bool, Any]:
    """Equal for equal JSON scalars: 1 and 1.0 are one, 1 and true are two."""
    return isinstance(value, bool), value
