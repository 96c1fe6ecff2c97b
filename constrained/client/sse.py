"""Server-sent events from bytes: the parser of the WHATWG HTML standard, section 9.2, without a network.

Knows nothing of HTTP, JSON or this project's events. Feed it bytes in any chunking; it gives each event as soon as the
blank line after it has been read. An event that the end of the stream cuts off is discarded, as the standard says.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOM = "\ufeff"


class ServerSentEvent(NamedTuple):
    """One dispatched event; `id` is the last event id of the stream at that moment, "" if none was sent."""

    event: str
    data: str
    id: str


class SSEDecoder:
    """Incremental and cheap: each byte is looked at once, whatever the chunks are.

    `retry_ms` is the last reconnection time that the server asked for, or None. Malformed UTF-8 reads as U+FFFD.
    """

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = True
        self._after_cr = False
        self._line: list[str] = []
        self._event = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that end within this chunk, in order."""
        text = self._utf8.decode(chunk)
        if not text:
            return []
        text = self._trim(text)
        first, *rest = text.split("\n") if "\r" not in text else _LINE_END.split(text)
        self._line.append(first)
        if not rest:
            return []
        rest.insert(0, "".join(self._line))
        self._line = [rest.pop()]
        return list(self._events(rest))

    def _trim(self, text: str) -> str:
        """Drop the byte order mark of the stream, and the LF of a CRLF that the chunks cut in two."""
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_BOM)
        elif self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        return text

    def _events(self, lines: list[str]) -> Iterator[ServerSentEvent]:
        """What these whole lines complete. The usual fields come first: this runs for every line of a stream."""
        for line in lines:
            if line.startswith("data: "):
                self._data.append(line[6:])
            elif line.startswith("id: ") and "\0" not in line:
                self._id = line[4:]
            elif line.startswith("event: "):
                self._event = line[7:]
            elif line:
                name, _, value = line.partition(":")  # a comment has an empty name
                self._field(name, value.removeprefix(" "))
            else:
                event, data = self._event, self._data
                self._event, self._data = "", []
                if data:
                    yield ServerSentEvent(event or "message", "\n".join(data), self._id)

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
