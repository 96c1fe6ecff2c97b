"""The items of one response, and the events that tell of them while pieces of the answer come.

Events are dictionaries without their number; whoever sends them counts. Knows neither the run nor the transport.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeVar
from uuid import uuid4

from api.logprobs import TokenBytes, chat_logprobs
from api.pieces import CallArguments, CallStart, Content, Piece, TypedOps
from constrained.decode.request import TokenLogprob
from constrained.stream import Op, coalesce
from schemas.openai import LogprobEntry
from schemas.responses import ItemStatus, OutputCall, OutputItem, OutputMessage, OutputText

Event = dict[str, Any]
P = TypeVar("P")


class Output:
    """The items so far, in order; only the last one is open."""

    def __init__(self, token_bytes: TokenBytes) -> None:
        self.items: list[OutputItem] = []
        self._token_bytes = token_bytes
        self._waiting: list[LogprobEntry] = []

    def add(self, pieces: Sequence[Piece]) -> list[Event]:
        """What pieces add; text is one event, and so are the operations beside it and what is added to one call."""
        self._waiting.extend(chat_logprobs(_those(pieces, TokenLogprob), self._token_bytes).content)
        ops = [op for piece in _those(pieces, TypedOps) for op in piece.ops]
        text = "".join(piece.add for piece in _those(pieces, Content))
        events = self._add_ops(ops) if ops else []
        events += self._add_text(text) if text else []
        calls = [piece for piece in pieces if isinstance(piece, CallStart | CallArguments)]
        for _, group in groupby(calls, key=lambda piece: piece.index):
            events += self._add_to_call(list(group))
        return events

    def finish(self, complete: bool) -> list[Event]:
        """The end of the last item; one of a cut answer stays `incomplete`, and nothing more is told of it."""
        if complete:
            return [*(self._open_message() if not self.items else ()), *self._close("completed")]
        if self.items:
            self._last.status = "incomplete"
        return []

    @property
    def _last(self) -> OutputItem:
        return self.items[-1]

    # -- text

    def _add_text(self, delta: str) -> list[Event]:
        events = self._open_message()
        entries, self._waiting = self._waiting, []
        part = self._part
        part.text += delta
        part.logprobs.extend(entries)
        logprobs = [entry.model_dump() for entry in entries]
        return [*events, {"type": "response.output_text.delta", **self._part_place, "delta": delta, "logprobs": logprobs}]

    def _add_ops(self, ops: list[Op]) -> list[Event]:
        events = self._open_message()
        return [*events, {"type": "constrained.delta", **self._part_place, "ops": [op.to_wire() for op in coalesce(ops)]}]

    def _open_message(self) -> list[Event]:
        """Begin the message, unless it is open."""
        if self.items and isinstance(self._last, OutputMessage):
            return []
        message = OutputMessage(id=f"msg_{uuid4().hex}")
        events = [*self._close("completed"), self._added(message)]
        message.content.append(OutputText())
        return [*events, {"type": "response.content_part.added", **self._part_place, "part": self._part.model_dump()}]

    @property
    def _part(self) -> OutputText:
        assert isinstance(self._last, OutputMessage), "a text belongs to a message"
        return self._last.content[0]

    # -- calls

    def _add_to_call(self, pieces: Sequence[CallStart | CallArguments]) -> list[Event]:
        """What pieces add to one call, which may begin with them."""
        events: list[Event] = []
        for start in _those(pieces, CallStart):
            events += self._close("completed")
            events.append(self._added(OutputCall(id=f"fc_{uuid4().hex}", call_id=start.id, name=start.name)))
        delta = "".join(piece.add for piece in _those(pieces, CallArguments))
        return [*events, *(self._add_arguments(delta) if delta else ())]

    def _add_arguments(self, delta: str) -> list[Event]:
        assert isinstance(self._last, OutputCall), "arguments belong to a call"
        self._last.arguments += delta
        return [{"type": "response.function_call_arguments.delta", **self._item_place, "delta": delta}]

    # -- items

    def _added(self, item: OutputItem) -> Event:
        self.items.append(item)
        return {"type": "response.output_item.added", "output_index": len(self.items) - 1, "item": item.model_dump()}

    def _close(self, status: ItemStatus) -> list[Event]:
        if not self.items or self._last.status != "in_progress":
            return []
        item = self._last
        item.status = status
        ends = self._end_of_call(item) if isinstance(item, OutputCall) else self._end_of_text()
        done = {"type": "response.output_item.done", "output_index": len(self.items) - 1, "item": item.model_dump()}
        return [*ends, done]

    def _end_of_call(self, call: OutputCall) -> list[Event]:
        ended = {"name": call.name, "arguments": call.arguments}
        return [{"type": "response.function_call_arguments.done", **self._item_place, **ended}]

    def _end_of_text(self) -> list[Event]:
        part = self._part
        part.logprobs.extend(self._waiting)
        self._waiting = []
        dumped = part.model_dump()
        text = {"text": part.text, "logprobs": dumped["logprobs"]}
        return [
            {"type": "response.output_text.done", **self._part_place, **text},
            {"type": "response.content_part.done", **self._part_place, "part": dumped},
        ]

    @property
    def _item_place(self) -> Event:
        return {"item_id": self._last.id, "output_index": len(self.items) - 1}

    @property
    def _part_place(self) -> Event:
        return {**self._item_place, "content_index": 0}


def _those(pieces: Sequence[Any], kind: type[P]) -> list[P]:
    return [piece for piece in pieces if isinstance(piece, kind)]
