"""The envelope in which a model that has tools answers: one JSON document that is either a text or calls.

    {"content": ...}   or   {"tool_calls": [{"name": ..., "arguments": {...}}, ...]}

Its schema makes the grammar decide between the two at the first key; the reader takes it apart while it is generated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from api.pieces import CallArguments, CallStart, Content, Piece, new_call_id
from constrained.guide import Location
from constrained.stream import Close, DeltaStream, Field, Op, Open, Set, Text, Variant

BRACKETS = {"object": "{}", "array": "[]", "string": '""'}
FREE_TEXT: dict[str, Any] = {"type": "string"}


def envelope_schema(calls: Sequence[tuple[str, Any]], most_calls: int, content: Any | None) -> dict[str, Any]:
    """The schema of envelopes with calls of (name, parameters), or with `content`, a schema, where it is not None."""
    arms = [_record(name={"const": name}, arguments=parameters) for name, parameters in calls]
    arm = arms[0] if len(arms) == 1 else {"anyOf": arms}
    array = {"type": "array", "minItems": 1, "maxItems": most_calls, "items": arm}
    with_calls = _record(tool_calls=array)
    return with_calls if content is None else {"anyOf": [with_calls, _record(content=content)]}


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def content_envelope(text: str) -> str:
    return _compact({"content": text})


def calls_envelope(calls: Iterable[tuple[str, Any]]) -> str:
    return _compact({"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]})


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class EnvelopeReader:
    """Takes an envelope apart: content decoded where it is free text and as JSON otherwise, arguments always as JSON."""

    def __init__(self, root: Location | None, content_is_text: bool) -> None:
        self._stream = DeltaStream(root)
        self._content_is_text = content_is_text
        self._writer = JsonWriter()

    def feed(self, data: bytes) -> list[Piece]:
        return self._pieces(self._stream.feed(data))

    def finish(self) -> list[Piece]:
        return self._pieces(self._stream.finish())

    def _pieces(self, ops: Iterable[Op]) -> list[Piece]:
        return [piece for op in ops for piece in self._piece(op)]

    def _piece(self, op: Op) -> list[Piece]:
        if isinstance(op, Field | Variant):
            return []
        parts = op.path.split("/", 4)
        if len(parts) > 1 and parts[1] == "content":
            return self._content(op)
        if len(parts) < 4:
            return []
        if parts[3] == "name" and isinstance(op, Set):
            return [CallStart(int(parts[2]), new_call_id(), str(op.value))]
        if parts[3] == "arguments":
            return [CallArguments(int(parts[2]), self._writer.write(op, len(parts) == 4))]
        return []

    def _content(self, op: Open | Text | Set | Close) -> list[Piece]:
        if not self._content_is_text:
            return [Content(self._writer.write(op, op.path == "/content"))]
        return [Content(op.add)] if isinstance(op, Text) else []


class JsonWriter:
    """Writes ops back as compact JSON text, one value after another; each value is written up to where the ops are."""

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []
        """(the text that closes it, is an object) of each open container and string"""
        self._is_first = True

    def write(self, op: Open | Text | Set | Close, is_root: bool) -> str:
        """What `op` adds; `is_root` where it speaks of the value itself and not of something in it."""
        if isinstance(op, Text):
            return _compact(op.add)[1:-1]
        if isinstance(op, Close):
            self._is_first = False
            return self._open.pop()[0]
        lead = "" if is_root else self._lead(op.path)
        self._is_first = False
        if isinstance(op, Set):
            return lead + (op.raw if op.raw is not None else _compact(op.value))
        self._is_first = True
        brackets = BRACKETS[op.type]
        self._open.append((brackets[1], op.type == "object"))
        return lead + brackets[0]

    def _lead(self, path: str) -> str:
        """The comma and the key before a member."""
        comma = "" if self._is_first else ","
        if not self._open[-1][1]:
            return comma
        key = path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        return f"{comma}{_compact(key)}:"
