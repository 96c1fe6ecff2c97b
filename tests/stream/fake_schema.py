"""A small `Location` straight from a JSON Schema, for tests that need no grammar.

Knows `type`, `enum`, `const`, `properties` (in their order), `required`, `additionalProperties`, `items`, `prefixItems` and
`anyOf` (alone in its schema).
"""

from __future__ import annotations

from typing import Any

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


class FakeLocation:
    def __init__(self, schema: Any, pointer: str = "") -> None:
        self._schema: dict[str, Any] = {} if schema is True else schema
        self._pointer = pointer
        self._children: dict[str, FakeLocation] = {}

    @property
    def variants(self) -> tuple[tuple[str, FakeLocation], ...]:
        arms = self._schema.get("anyOf", ())
        return tuple((f"{self._pointer}/anyOf/{i}", self._child(arm, f"anyOf/{i}")) for i, arm in enumerate(arms))

    @property
    def schema_pointer(self) -> str | None:
        return None if self.variants else self._pointer

    @property
    def types(self) -> tuple[str, ...]:
        if self.variants:
            names = {name for _, arm in self.variants for name in arm.types}
        elif self.enum is not None:
            names = {name for value in self.enum for name in types_of(value)}
        else:
            declared = self._schema.get("type", list(TYPES))
            names = {declared} if isinstance(declared, str) else set(declared)
        return tuple(name for name in TYPES if name in names)

    @property
    def enum(self) -> tuple[Any, ...] | None:
        if "const" in self._schema:
            return (self._schema["const"],)
        if self.variants and all(arm.enum is not None for _, arm in self.variants):
            return tuple(value for _, arm in self.variants for value in arm.enum or ())
        return tuple(self._schema["enum"]) if "enum" in self._schema else None

    def property(self, key: str) -> FakeLocation | None:
        if self.variants:
            return self._first(arm.property(key) for _, arm in self.variants)
        if key in self._schema.get("properties", {}):
            return self._child(self._schema["properties"][key], f"properties/{key}")
        return self._child(self._schema.get("additionalProperties", True), "additionalProperties")

    def item(self, index: int) -> FakeLocation | None:
        if self.variants:
            return self._first(arm.item(index) for _, arm in self.variants)
        prefix = self._schema.get("prefixItems", [])
        if index < len(prefix):
            return self._child(prefix[index], f"prefixItems/{index}")
        return self._child(self._schema.get("items", True), "items")

    def forced_key(self, seen: tuple[str, ...]) -> str | None:
        if self.variants:
            keys = {arm.forced_key(seen) for _, arm in self.variants}
            return keys.pop() if len(keys) == 1 else None
        names = list(self._schema.get("properties", {}))
        if any(key not in names for key in seen):
            return None
        rest = names[names.index(seen[-1]) + 1 :] if seen else names
        return rest[0] if rest and rest[0] in self._schema.get("required", ()) else None

    def _child(self, schema: Any, place: str) -> FakeLocation | None:
        if schema is False:
            return None
        return self._children.setdefault(place, FakeLocation(schema, f"{self._pointer}/{place}"))

    def _first(self, found: Any) -> FakeLocation | None:
        """The one location of all arms; where they differ, their union as a schema of its own."""
        distinct = [location for location in found if location is not None]
        if len(distinct) <= 1:
            return distinct[0] if distinct else None
        place = "+".join(location._pointer for location in distinct)
        return self._children.setdefault(place, Union(distinct))


class Union(FakeLocation):
    """The union of given locations."""

    def __init__(self, arms: list[FakeLocation]) -> None:
        super().__init__({}, "")
        self._arms = arms

    @property
    def variants(self) -> tuple[tuple[str, FakeLocation], ...]:
        return tuple((arm._pointer, arm) for arm in self._arms)


def types_of(value: Any) -> tuple[str, ...]:
    """The JSON Schema types of a value, the most special first."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return ("integer", "number")
    names = {float: "number", str: "string", list: "array", dict: "object"}
    return (names[type(value)],)
