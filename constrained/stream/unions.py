"""Undecided unions: which arms of a location a value can still belong to, as its bytes show its type, members and scalars.

Knows neither bytes nor ops; an arm is dropped when what was seen cannot be there, and when one is left the union is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from constrained.errors import InternalError
from constrained.guide import Location
from constrained.stream.enums import EnumCache
from constrained.stream.ops import Scalar

_TYPE_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")

Fits = Callable[[Location], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """The `Location` of the arms that are left of a union: what holds for all of them together."""

    arms: tuple[tuple[str | None, Location], ...]
    types: tuple[str, ...]
    enum: tuple[Any, ...] | None
    schema_pointer: str | None = None

    @classmethod
    def of(cls, arms: tuple[tuple[str | None, Location], ...]) -> Either:
        types = {name for _, arm in arms for name in arm.types}
        return cls(arms, tuple(name for name in _TYPE_ORDER if name in types), _joint_enum(arm for _, arm in arms))

    @property
    def variants(self) -> tuple[tuple[str, Location], ...]:
        return tuple((pointer, arm) for pointer, arm in self.arms if pointer is not None)

    def property(self, key: str) -> Location | None:
        return _join(arm.property(key) for _, arm in self.arms)

    def item(self, index: int) -> Location | None:
        return _join(arm.item(index) for _, arm in self.arms)

    def forced_key(self, seen: tuple[str, ...]) -> str | None:
        keys = {arm.forced_key(seen) for _, arm in self.arms}
        return keys.pop() if len(keys) == 1 else None


def arms_of(location: Location | None) -> tuple[tuple[str | None, Location], ...]:
    """The arms that are open at `location`; empty where it is no union."""
    if location is None:
        return ()
    return location.arms if isinstance(location, Either) else location.variants


def narrow(location: Location, fits: Fits) -> tuple[Location, list[str]]:
    """`location` without the arms that do not fit, and the pointers of the arms that are thereby decided, outermost first."""
    decided: list[str] = []
    while arms := arms_of(location):
        left = tuple((pointer, arm) for pointer, arm in arms if fits(arm))
        if not left:
            raise InternalError(f"no arm of the union fits: {', '.join(str(pointer) for pointer, _ in arms)}")
        if len(left) > 1:
            return (location if len(left) == len(arms) else Either.of(left)), decided
        pointer, location = left[0]
        if pointer is not None:
            decided.append(pointer)
    return location, decided


def child(location: Location | None, token: str | int) -> Location | None:
    """The location of the member or element `token`."""
    if location is None:
        return None
    return location.item(token) if isinstance(token, int) else location.property(token)


def has_type(types: tuple[str, ...]) -> Fits:
    """Fits the locations that may hold one of `types`."""
    return lambda location: any(name in location.types for name in types)


def holds(value: Scalar, enums: EnumCache) -> Fits:
    """Fits the locations that may hold the scalar `value`, as far as type and enum tell."""
    typed = has_type(_types_of(value))

    def fits(location: Location) -> bool:
        index = enums.of(location)
        return typed(location) and (index is None or value in index)

    return fits


def child_fits(token: str | int, fits: Fits) -> Fits:
    """Fits the locations that may have the member or element `token`, and there a location that fits."""

    def parent_fits(location: Location) -> bool:
        below = child(location, token)
        return below is not None and fits(below)

    return parent_fits


def _types_of(value: Scalar) -> tuple[str, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, str):
        return ("string",)
    # A float may have lost the fraction that its lexeme had; then neither type is ruled out.
    return ("number",) if isinstance(value, float) and value % 1 > 0 else ("integer", "number")


def _join(locations: Iterable[Location | None]) -> Location | None:
    distinct = {id(location): location for location in locations if location is not None}
    if len(distinct) <= 1:
        return next(iter(distinct.values()), None)
    return Either.of(tuple((location.schema_pointer, location) for location in distinct.values()))


def _joint_enum(locations: Iterable[Location]) -> tuple[Any, ...] | None:
    values: dict[tuple[bool, Any], Any] = {}
    for location in locations:
        if location.enum is None:
            return None
        values.update({(isinstance(value, bool), value): value for value in location.enum})
    return tuple(values.values())
