"""Events as a run takes them: raw where that is enough, typed where someone asks.

Validating every op of every delta by its model costs many times what folding it costs, and most readers want the document and
not its events. So a delta is judged by the fold alone (`folding`); a consumer of events gets models.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import ValidationError

from constrained.client.errors import ProtocolError
from constrained.client.formats import Item, Malformed, Received
from schemas.events import EVENTS, DeltaEvent, Event


class Told:
    """One event: its name, its id and its data as parsed JSON; `event` is the model of it."""

    __slots__ = ("_event", "data", "id", "name")

    def __init__(self, received: Received) -> None:
        self.name, self.id, self.data = received
        self._event: Event | None = None

    @property
    def event(self) -> Event:
        """The typed event; `ProtocolError` where the data are not what its name says."""
        if self._event is None:
            try:
                self._event = EVENTS[self.name].model_validate(self.data)  # type: ignore[assignment]
            except ValidationError as error:
                raise ProtocolError(f"malformed {self.name} event: {error}") from error
        assert self._event is not None
        return self._event


class Delta(NamedTuple):
    """What a delta says; `ops` as they go over the wire."""

    seq: int
    choice: int
    ops: list[dict[str, Any]]


def told(item: Item) -> Told:
    """The event that an item is; `ProtocolError` where it is none."""
    if isinstance(item, Malformed):
        raise ProtocolError(item.why)
    if item.name not in EVENTS:
        raise ProtocolError(f"unknown event {item.name!r}: one of {', '.join(EVENTS)} is expected")
    return Told(item)


def delta_of(event: Told) -> Delta:
    """The delta in an event; whatever is not of the usual shape is the model's to judge."""
    data = event.data
    if type(data) is dict and len(data) == 3:
        seq, choice, ops = data.get("seq"), data.get("choice"), data.get("ops")
        if type(seq) is int and type(choice) is int and type(ops) is list:
            return Delta(seq, choice, ops)
    model = event.event
    assert isinstance(model, DeltaEvent)
    return Delta(model.seq, model.choice, [vars(op) for op in model.ops])
