"""From the bytes of a stream to its events as they were told: server-sent events or JSON Lines.

Both formats say the same: an event's name, its id, and its data, which is JSON. What cannot be read is an item too, so that
it fails the run in its turn and not before the events that came ahead of it. Knows nothing of what the data mean.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Protocol

from pydantic_core import from_json

from constrained.client.sse import SSEDecoder


class Received(NamedTuple):
    """One event; `data` is its JSON, parsed."""

    name: str
    id: str
    data: Any


class Malformed(NamedTuple):
    """Something that is no event."""

    why: str


Item = Received | Malformed


class Format(Protocol):
    """Reads one connection's bytes, in any chunking."""

    def feed(self, chunk: bytes) -> list[Item]: ...


class EventStreamFormat:
    """Server-sent events."""

    def __init__(self) -> None:
        self._decoder = SSEDecoder()

    @property
    def retry_ms(self) -> int | None:
        """How long the service asks to wait before connecting again."""
        return self._decoder.retry_ms

    def feed(self, chunk: bytes) -> list[Item]:
        return [_read(event.event, event.id, event.data) for event in self._decoder.feed(chunk)]


class LinesFormat:
    """JSON Lines: one `{"event", "id", "data"}` a line. Blanks between lines are heartbeats; a cut last line is discarded."""

    retry_ms = None

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Item]:
        first, *rest = chunk.split(b"\n")
        self._pieces.append(first)
        items = []
        for start_of_next in rest:
            line = b"".join(self._pieces)
            self._pieces = [start_of_next]
            if not line.isspace() and line:
                items.append(read_line(line))
        return items


def parsed(text: str | bytes) -> Any:
    """The JSON value of a text; `ValueError` or `RecursionError` where there is none.

    The parser of pydantic takes a third of the time of the standard library's, and stops at documents that nest a few hundred
    levels; the other has the last word on those.
    """
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def read_line(line: bytes | str) -> Item:
    """The event of one line, or of one message of the WebSocket."""
    try:
        value = parsed(line)
        return Received(str(value["event"]), str(value["id"]), value["data"])
    except (ValueError, RecursionError) as error:
        return Malformed(f"a line is not JSON: {error}")
    except (KeyError, TypeError):
        return Malformed("a line is not an object with event, id and data")


def _read(name: str, id_: str, text: str) -> Item:
    try:
        return Received(name, id_, parsed(text))
    except (ValueError, RecursionError) as error:
        return Malformed(f"malformed {name} event: the data are not JSON: {error}")
