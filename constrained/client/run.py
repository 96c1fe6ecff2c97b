"""One run as its reader sees it, without I/O: bytes of the event stream in; events, values and the outcome out.

Theory of operation. The bytes become events (`sse`, `schemas.events`), the events are folded into one document per choice
(`constrained.stream`), and the table below says which event may come when::

    state      start      delta, snapshot   error    done     end of stream, failure, cancel
    opening    running    -                 ended    -        ended
    running    -          running           ended    ended    ended

"-" is a `ProtocolError`, which ends the run. Nothing after the end is read. Nothing is raised by what is fed: the outcome is
kept, and given to everyone who waits for what will not come (`failure`). All that comes is told to the listeners first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar
from weakref import WeakSet

from pydantic import ValidationError

from constrained.client.errors import (
    ClientError,
    DisconnectedError,
    IncompleteError,
    InvalidAnswerError,
    ProtocolError,
    RunFailedError,
)
from constrained.client.sse import ServerSentEvent, SSEDecoder
from constrained.client.target import Target
from constrained.client.unset import UNSET
from constrained.errors import FoldError
from constrained.stream import Fold, Snapshot, from_wire
from constrained.stream.snapshot import copy_json
from schemas.events import (
    EVENTS,
    PROTOCOL_VERSION,
    DeltaEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    FinishReason,
    SnapshotEvent,
    StartEvent,
)

T = TypeVar("T")
State = Literal["opening", "running", "ended"]

_NEXT_STATE: Mapping[tuple[State, type[Any]], State] = {
    ("opening", StartEvent): "running",
    ("opening", ErrorEvent): "ended",
    ("running", DeltaEvent): "running",
    ("running", SnapshotEvent): "running",
    ("running", ErrorEvent): "ended",
    ("running", DoneEvent): "ended",
}


class Listener(Protocol):
    """Someone who is told each event, after it was folded."""

    def receive(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The stream ended without a terminal event; `cause` is the transport's error, None at a plain end."""

    cause: Exception | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The caller closed the stream."""


Outcome = DoneEvent | ErrorEvent | ProtocolError | Disconnected | Cancelled


class Run(Generic[T]):
    """The reader's half of one run. Not thread-safe."""

    def __init__(self, target: Target[T]) -> None:
        self.start: StartEvent | None = None
        self.outcome: Outcome | None = None
        self.last_event_id = ""
        self.seq = -1
        self._target = target
        self._state: State = "opening"
        self._decoder = SSEDecoder()
        self._waiting: deque[ServerSentEvent] = deque()
        self._folds: dict[int, Fold] = {}
        self._listeners: WeakSet[Listener] = WeakSet()

    @property
    def started(self) -> bool:
        """Whether the first event has come, or none will."""
        return self._state != "opening"

    @property
    def ended(self) -> bool:
        return self._state == "ended"

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the stream; their events wait to be taken by `step`."""
        self._waiting.extend(self._decoder.feed(chunk))

    def step(self) -> bool:
        """Take one event, and no more: so readers see the document as each event left it. False where none waits."""
        if self.ended or not self._waiting:
            return False
        sse = self._waiting.popleft()
        try:
            self._take(_parse(sse))
        except ProtocolError as error:
            self.end(error)
        self.last_event_id = sse.id
        return True

    def end(self, outcome: Outcome) -> None:
        """The run is over for this reader; only the first outcome counts."""
        if not self.ended:
            self._state = "ended"
            self.outcome = outcome

    def fold(self, choice: int) -> Fold:
        """The document of one choice so far; `ValueError` where the run has no such choice."""
        num_choices = self.start.choices if self.start else choice + 1
        if not 0 <= choice < num_choices:
            raise ValueError(f"choice {choice} is asked for; this run has {num_choices}, counted from 0")
        return self._folds.setdefault(choice, Fold())

    def value(self, choice: int) -> Any:
        """The plain value of one choice so far, live; `UNSET` before it begins."""
        fold = self.fold(choice)
        return fold.value if fold.started else UNSET

    def partial(self, choice: int) -> Any:
        """The read-only view of one choice so far; `UNSET` before it begins."""
        return self._target.view(self.value(choice))

    def events_so_far(self) -> list[Event]:
        """What a reader who joins now has to know: the start, one snapshot for each choice that has begun, the end."""
        events: list[Event] = [self.start] if self.start else []
        for choice, fold in sorted(self._folds.items()):
            if fold.status:
                now = fold.snapshot()
                events.append(
                    SnapshotEvent(seq=self.seq, choice=choice, value=now.value, open=list(now.open), status=dict(now.status))
                )
        if isinstance(self.outcome, DoneEvent | ErrorEvent):
            events.append(self.outcome)
        return events

    def listen(self, listener: Listener) -> None:
        """Tell `listener` each later event, for as long as someone else holds it."""
        self._listeners.add(listener)

    def final(self, choice: int = 0) -> T:
        """The answer of one choice, after the end; raises what stands in its way."""
        fold = self.fold(choice)
        if not isinstance(self.outcome, DoneEvent) or not _is_finished(self.outcome, fold, choice):
            raise self.failure(choice)
        if self.outcome.status == "complete" and not self.outcome.valid:
            raise InvalidAnswerError("the service says that the document does not meet its schema", copy_json(fold.value))
        return self._target.finish(fold.value)

    def failure(self, choice: int = 0) -> ClientError:
        """Why what has not come by the end of the run will not come."""
        partial: dict[str, Any] = {"partial": self.partial(choice), "value": copy_json(self.value(choice))}
        match self.outcome:
            case ProtocolError() as broken:
                return broken
            case ErrorEvent() as event:
                return RunFailedError(event, **partial)
            case Disconnected(cause):
                reason = f": {cause!r}" if cause else " before the run's last event"
                error = DisconnectedError(f"the event stream broke off{reason}", **partial)
                error.__cause__ = cause
                return error
            case DoneEvent() as done:
                reason = _reason(done, choice)
                return IncompleteError(f"the document is not finished: {reason}", finish_reason=reason, **partial)
            case _:
                return IncompleteError("the stream was closed by the caller", finish_reason="cancelled", **partial)

    def _take(self, event: Event) -> None:
        state = _NEXT_STATE.get((self._state, type(event)))
        if state is None:
            raise ProtocolError(f"a {type(event).__name__} cannot come while the run is {self._state}")
        if isinstance(event, StartEvent):
            self._begin(event)
        elif isinstance(event, DeltaEvent | SnapshotEvent):
            self._apply(event)
        for listener in list(self._listeners):
            listener.receive(event)
        if isinstance(event, DoneEvent | ErrorEvent):
            self.end(event)
        self._state = state

    def _begin(self, event: StartEvent) -> None:
        if event.protocol != PROTOCOL_VERSION:
            raise ProtocolError(f"the service speaks protocol version {event.protocol}, this client {PROTOCOL_VERSION}")
        self.start = event

    def _apply(self, event: DeltaEvent | SnapshotEvent) -> None:
        if event.seq < self.seq or (isinstance(event, DeltaEvent) and event.ops and event.seq == self.seq):
            raise ProtocolError(f"seq {event.seq} comes after {self.seq}")
        self.seq = event.seq
        try:
            if isinstance(event, SnapshotEvent):
                self.fold(event.choice)
                self._folds[event.choice] = Fold.restore(Snapshot(event.value, tuple(event.open), event.status))
            else:
                fold = self.fold(event.choice)
                for op in event.ops:
                    fold.apply(from_wire(vars(op)))
        except (FoldError, ValueError) as error:
            raise ProtocolError(f"the event with seq {event.seq} does not fit what came before: {error}") from error


def _reason(done: DoneEvent, choice: int) -> FinishReason:
    return done.finish_reasons[choice] if choice < len(done.finish_reasons) else done.finish_reason


def _is_finished(done: DoneEvent, fold: Fold, choice: int) -> bool:
    """A whole fold alone does not tell: a number at the root looks whole when it is cut."""
    return fold.is_complete and (done.status == "complete" or _reason(done, choice) == "stop")


def _parse(sse: ServerSentEvent) -> Event:
    model = EVENTS.get(sse.event)
    if model is None:
        raise ProtocolError(f"unknown event {sse.event!r}: one of {', '.join(EVENTS)} is expected")
    try:
        event: Any = model.model_validate_json(sse.data)
    except ValidationError as error:
        raise ProtocolError(f"malformed {sse.event} event: {error}") from error
    return event  # type: ignore[no-any-return]
