"""The typed operations of the delta protocol, as Python values and as they go over the wire.

Knows neither JSON text nor schemas: a parser makes ops, a fold applies them, a transport carries `to_wire()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

from constrained.errors import FoldError
from constrained.stream.numbers import finite, read_number

OpenType = Literal["object", "array", "string"]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Field:
    """Type-ahead: the location at `path` is next; its value has not begun."""

    path: str
    types: tuple[str, ...]
    schema_pointer: str | None = None
    enum: tuple[Any, ...] | None = None

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {"op": "field", "path": self.path, "types": list(self.types)}
        if self.schema_pointer is not None:
            wire["schema_pointer"] = self.schema_pointer
        if self.enum is not None:
            wire["enum"] = list(self.enum)
        return wire


@dataclass(frozen=True, slots=True)
class Variant:
    """The union at `path` is decided: the arm at `schema_pointer` holds."""

    path: str
    schema_pointer: str

    def to_wire(self) -> dict[str, Any]:
        return {"op": "variant", "path": self.path, "schema_pointer": self.schema_pointer}


@dataclass(frozen=True, slots=True)
class Open:
    """A container or a string begins at `path`."""

    path: str
    type: OpenType

    def to_wire(self) -> dict[str, Any]:
        return {"op": "open", "path": self.path, "type": self.type}


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text to append to the open string at `path`; whole Unicode scalar values."""

    path: str
    add: str

    def to_wire(self) -> dict[str, Any]:
        return {"op": "text", "path": self.path, "add": self.add}


@dataclass(frozen=True, slots=True)
class Set:
    """A scalar, whole and final: it opens and closes `path` at once.

    `raw` is the lexeme of a number that a double would lose. On the wire such a number's value is held within the finite
    doubles, and `from_wire` reads `raw` instead.
    """

    path: str
    value: Scalar
    raw: str | None = None

    def to_wire(self) -> dict[str, Any]:
        if self.raw is None:
            return {"op": "set", "path": self.path, "value": self.value}
        value = finite(self.value) if isinstance(self.value, int | float) else self.value
        return {"op": "set", "path": self.path, "value": value, "raw": self.raw}


@dataclass(frozen=True, slots=True)
class Close:
    """The opened value at `path` is final."""

    path: str

    def to_wire(self) -> dict[str, Any]:
        return {"op": "close", "path": self.path}


Op = Field | Variant | Open | Text | Set | Close


def from_wire(wire: Mapping[str, Any]) -> Op:
    """The op that `wire` stands for, as `to_wire` gives it; `FoldError` where its name or fields are not the protocol's."""
    name, path = str(wire.get("op")), str(wire.get("path"))
    if name not in _READERS:
        raise FoldError(f"unknown op {name!r}: one of {', '.join(_READERS)} is expected", path)
    try:
        return _READERS[name](wire)
    except (KeyError, TypeError, ValueError) as error:
        raise FoldError(f"malformed op {name!r}: {error!r}", path) from error


def coalesce(ops: Iterable[Op]) -> list[Op]:
    """The same ops with adjacent texts on one path merged; nothing else moves. Linear."""
    merged: list[Op] = []
    for path, group in groupby(ops, key=lambda op: op.path if isinstance(op, Text) else None):
        if path is None:
            merged.extend(group)
        else:
            merged.append(Text(path, "".join(op.add for op in group if isinstance(op, Text))))
    return merged


def _text(wire: Mapping[str, Any], name: str) -> str:
    if not isinstance(wire[name], str):
        raise TypeError(f"{name} must be a string, not {type(wire[name]).__name__}")
    return str(wire[name])


def _read_field(wire: Mapping[str, Any]) -> Op:
    enum = wire.get("enum")
    return Field(_text(wire, "path"), tuple(wire["types"]), wire.get("schema_pointer"), None if enum is None else tuple(enum))


def _read_open(wire: Mapping[str, Any]) -> Op:
    if wire["type"] not in get_args(OpenType):
        raise ValueError(f"type must be one of {', '.join(get_args(OpenType))}, not {wire['type']!r}")
    return Open(_text(wire, "path"), wire["type"])


def _read_set(wire: Mapping[str, Any]) -> Op:
    raw = wire.get("raw")
    return Set(_text(wire, "path"), wire["value"] if raw is None else read_number(raw)[0], raw)


_READERS: dict[str, Callable[[Mapping[str, Any]], Op]] = {
    "field": _read_field,
    "variant": lambda wire: Variant(_text(wire, "path"), _text(wire, "schema_pointer")),
    "open": _read_open,
    "text": lambda wire: Text(_text(wire, "path"), _text(wire, "add")),
    "set": _read_set,
    "close": lambda wire: Close(_text(wire, "path")),
}
