"""Server-sent events from bytes: the parser of the WHATWG HTML standard, section 9.2, without a network.

Knows nothing of HTTP, JSON or this project's events. Feed it bytes in any chunking; it gives each event as soon as the
blank line after it has been read. An event that the end of the stream cuts off is discarded, as the standard says.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
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
        first, *rest = _LINE_END.split(self._trim(text))
        self._line.append(first)
        events = []
        for start_of_next in rest:
            event = self._end_line("".join(self._line))
            self._line = [start_of_next]
            if event is not None:
                events.append(event)
        return events

    def _trim(self, text: str) -> str:
        """Drop the byte order mark of the stream, and the LF of a CRLF that the chunks cut in two."""
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_BOM)
        elif self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        return text

    def _end_line(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")  # a comment has an empty name
        self._field(name, value.removeprefix(" "))
        return None

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self) -> ServerSentEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return ServerSentEvent(event or "message", "\n".join(data), self._id) if data else None
