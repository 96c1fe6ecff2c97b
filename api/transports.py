"""How the events of a run go over HTTP: as server-sent events, as JSON Lines, or as the bare text of the document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

from api.feed import Feed
from api.reader import Reader, Told
from api.runs import Run
from api.sse import EVENT_STREAM, HEARTBEAT, TornStreamError
from api.telling import error_event, wire_json
from constrained.errors import SlowConsumerError

Transport = Literal["sse", "lines", "text"]

MEDIA_TYPES: dict[Transport, str] = {"sse": EVENT_STREAM, "lines": "application/x-ndjson", "text": "text/plain"}
_OFFERED: dict[str, Transport] = {
    EVENT_STREAM: "sse",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "text/plain": "text",
}
# Between two lines a blank is no line and no error, for whoever reads JSON.
HEARTBEATS: dict[Transport, bytes | None] = {"sse": HEARTBEAT, "lines": b" ", "text": None}


def transport_of(accept: str | None) -> Transport:
    """The transport that an Accept header prefers: server-sent events unless it ranks another higher.

    A header that takes none of them gets server-sent events too, as the official streaming APIs do.
    """
    if not accept:
        return "sse"
    ranks = _ranks(accept)
    wildcard = ranks.get("*/*", 0.0)
    best: Transport = "sse"
    best_rank = max(ranks.get(EVENT_STREAM, 0.0), ranks.get("text/*", 0.0), wildcard)
    for name, transport in _OFFERED.items():
        if ranks.get(name, 0.0) > best_rank:
            best, best_rank = transport, ranks[name]
    return best


def _ranks(accept: str) -> dict[str, float]:
    """The quality of each media range."""
    ranks: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((value for key, _, value in (p.partition("=") for p in parameters) if key.strip() == "q"), "1")
        try:
            ranks[name] = float(quality)
        except ValueError:
            ranks[name] = 0.0
    return ranks


def sse_text(run: str, event: Told) -> str:
    return f"id: {run}:{event.place}\nevent: {event.name}\ndata: {event.data}\n\n"


def line_text(run: str, event: Told) -> str:
    """The same event as one line of JSON; also what goes over a WebSocket, without its end."""
    return f'{{"event":"{event.name}","id":"{run}:{event.place}","data":{event.data}}}\n'


TEXTS: dict[Transport, Callable[[str, Told], str]] = {"sse": sse_text, "lines": line_text}


def event_frames(reader: Reader, feed: Feed, transport: Transport) -> AsyncIterator[bytes]:
    """The events of a run; those that wait together go out together."""
    text_of, run = TEXTS[transport], feed.run

    def write(batch: list[Told]) -> bytes:
        text = text_of(run, batch[0]) if len(batch) == 1 else "".join([text_of(run, event) for event in batch])
        return text.encode()

    return reader.batches(write)


async def text_frames(run: Run[Any], feed: Feed) -> AsyncIterator[bytes]:
    """The text of the first choice, as it comes. Raises `TornStreamError` where the run fails or what was sent is changed."""
    outcome = run.outcomes[0]
    at = index = 0
    while True:
        ended = feed.terminal
        if outcome.revision or (ended is not None and ended.kind == "error"):
            raise TornStreamError
        if at < len(outcome.text):
            piece = bytes(outcome.text[at:])
            at += len(piece)
            yield piece
        elif ended is not None:
            return
        else:
            await feed.wait(index)
        index = feed.end


def farewell(feed: Feed, transport: Transport, place: int) -> bytes:
    """What a reader that stalled is told; it can join again behind `place`, which is where it stood."""
    if transport == "text":
        return b""
    error = SlowConsumerError("This reader took nothing for too long; the run can be joined again")
    event = Told(place, "error", wire_json(error_event(feed.seq + 1, error)))
    return TEXTS[transport](feed.run, event).encode()
