"""One run as its reader sees it, without I/O: events of the stream in; values and the outcome out.

Theory of operation. The events (`formats` reads them from bytes) are folded into one document per choice
(`constrained.stream`), and the table below says which event may come when::

    state      start      delta, snapshot   error    done     end of stream, failure, cancel
    opening    running    -                 ended    -        ended
    running    (rejoined) running           ended    ended    ended

"-" is a `ProtocolError`, which ends the run. Nothing after the end is read. Nothing is raised by what is fed: the outcome is
kept, and given to everyone who waits for what will not come (`failure`). All that comes is told to the listeners first.

A run may be read over several connections, one after the other (`reconnect`). `place` says where the next one goes on, so that
each op is taken once: behind the last event that was taken, or, where only a part of several choices' snapshots has come, at
the documents as they then are. A start that comes again must be of the same run, and is not told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar
from weakref import ref

from constrained.client.errors import (
    ClientError,
    DisconnectedError,
    IncompleteError,
    InvalidAnswerError,
    ProtocolError,
    RunFailedError,
    StreamTimeoutError,
    TimeoutPhase,
)
from constrained.client.folding import apply_op
from constrained.client.formats import Item
from constrained.client.target import Target
from constrained.client.told import Delta, Told, delta_of, told
from constrained.client.unset import UNSET
from constrained.errors import FoldError
from constrained.stream import Fold, Snapshot
from constrained.stream.snapshot import copy_json
from schemas.events import PROTOCOL_VERSION, DoneEvent, ErrorEvent, Event, FinishReason, SnapshotEvent, StartEvent

T = TypeVar("T")
State = Literal["opening", "running", "ended"]

_NEXT_STATE: Mapping[tuple[State, str], State] = {
    ("opening", "start"): "running",
    ("opening", "error"): "ended",
    ("running", "delta"): "running",
    ("running", "snapshot"): "running",
    ("running", "error"): "ended",
    ("running", "done"): "ended",
}


class Listener(Protocol):
    """Someone who is told each event, after it was folded."""

    def receive(self, event: Told) -> None: ...


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The stream ended without a terminal event; `cause` is the transport's error, None at a plain end.

    `phase` is the time limit that passed, if one did; `attempts` how often a new connection was tried since.
    """

    cause: Exception | None = None
    phase: TimeoutPhase | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The caller closed the stream."""


Outcome = DoneEvent | ErrorEvent | ProtocolError | Disconnected | Cancelled


class Run(Generic[T]):
    """The reader's half of one run. Not thread-safe.

    `after` is for a reader who joins behind an event: nothing is told before it, and with anything but 0 the documents stay
    unknown until a snapshot shows them.
    """

    def __init__(self, target: Target[T], run_id: str | None = None, after: int | None = None) -> None:
        self.start: StartEvent | None = None
        self.outcome: Outcome | None = None
        self.last_event_id = "" if after is None else f"{run_id}:{after}"
        self.seq = -1
        self._run_id = run_id
        self._target = target
        self._state: State = "opening" if after is None else "running"
        self.joined_behind = after is not None
        self._rejoined = False
        self._is_tail = bool(after)
        self._waiting: deque[Item | Outcome] = deque()
        self._folds: dict[int, Fold] = {}
        self._seqs: dict[int, int] = {}
        self._listeners: list[ref[Listener]] = []

    @property
    def id(self) -> str | None:
        """The run's id, once it is known."""
        return self.start.run if self.start else self._run_id

    @property
    def started(self) -> bool:
        """Whether the first event has come, or none will."""
        return self._state != "opening"

    @property
    def ended(self) -> bool:
        return self._state == "ended"

    @property
    def place(self) -> int | None:
        """The op behind which the next connection goes on; None where it must begin with the documents as they are."""
        number = self.last_event_id.rpartition(":")[2]
        if not (number.isascii() and number.isdecimal()):
            return None
        place = int(number)
        return place if place >= max(self._seqs.values(), default=0) else None

    def seq_of(self, choice: int) -> int:
        """The last op of one choice that was taken."""
        return self._seqs.get(choice, 0)

    def feed(self, items: Iterable[Item]) -> None:
        """What has come over the connection; it waits to be taken by `step`."""
        self._waiting.extend(items)

    def reconnect(self) -> None:
        """Another connection goes on from `place`; what had come over the last one and was not taken comes again."""
        self._waiting.clear()
        self._rejoined = True
        self.seq = -1

    def step(self) -> bool:
        """Take one event, and no more: so readers see the document as each event left it. False where none waits."""
        if self.ended or not self._waiting:
            return False
        item = self._waiting.popleft()
        if not isinstance(item, tuple):
            self.end(item)
            return True
        try:
            event = told(item)
            self._take(event)
            self.last_event_id = event.id
        except ProtocolError as error:
            self.end(error)
        return True

    def end(self, outcome: Outcome) -> None:
        """The run is over for this reader; only the first outcome counts."""
        if not self.ended:
            self._state = "ended"
            self.outcome = outcome

    def end_after_all(self, outcome: Outcome) -> None:
        """The same once everything that waits has been taken."""
        if self._waiting:
            self._waiting.append(outcome)
        else:
            self.end(outcome)

    def fold(self, choice: int) -> Fold:
        """The document of one choice so far; `ValueError` where the run has no such choice, or its document is not known."""
        self._expect_choice(choice)
        if self._is_tail and choice not in self._folds:
            raise ValueError("this stream joined behind an event and does not know the document; join without `after`")
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
                now, seq = fold.snapshot(), self._seqs.get(choice, 0)
                shown = {"value": now.value, "open": list(now.open), "status": dict(now.status)}
                events.append(SnapshotEvent(seq=seq, choice=choice, **shown))
        if isinstance(self.outcome, DoneEvent | ErrorEvent):
            events.append(self.outcome)
        return events

    def listen(self, listener: Listener) -> None:
        """Tell `listener` each later event, for as long as someone else holds it."""
        self._listeners.append(ref(listener, self._listeners.remove))

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
        if isinstance(self.outcome, ProtocolError):
            return self.outcome
        known = self._folds.get(choice)
        value = known.value if known is not None and known.started else UNSET
        partial: dict[str, Any] = {"partial": self._target.view(value), "value": copy_json(value)}
        match self.outcome:
            case ErrorEvent() as event:
                return RunFailedError(event, **partial)
            case Disconnected() as broken:
                return self._disconnected(broken, partial)
            case DoneEvent() as done:
                reason = _reason(done, choice)
                return IncompleteError(f"the document is not finished: {reason}", finish_reason=reason, **partial)
            case _:
                return IncompleteError("the stream was closed by the caller", finish_reason="cancelled", **partial)

    def _disconnected(self, broken: Disconnected, partial: dict[str, Any]) -> DisconnectedError:
        error = (StreamTimeoutError if broken.phase else DisconnectedError)(
            broken_off(broken), run=self.id, last_event_id=self.last_event_id, attempts=broken.attempts, **partial
        )
        if isinstance(error, StreamTimeoutError) and broken.phase:
            error.phase = broken.phase
        error.__cause__ = broken.cause
        return error

    def _take(self, event: Told) -> None:
        if self._rejoined and event.name == "start" and self._state == "running":
            self._expect_same(event)
            return
        state = _NEXT_STATE.get((self._state, event.name))
        if state is None:
            raise ProtocolError(f"a {event.name} event cannot come while the run is {self._state}")
        if event.name == "delta":
            self._apply(delta_of(event))
        else:
            self._take_model(event.event)
        for reference in self._listeners[:]:
            if (listener := reference()) is not None:
                listener.receive(event)
        if state == "ended":
            self.end(event.event)  # type: ignore[arg-type]
        self._state = state

    def _take_model(self, event: Event) -> None:
        if isinstance(event, StartEvent):
            self._begin(event)
        elif isinstance(event, SnapshotEvent):
            self._restore(event)

    def _begin(self, event: StartEvent) -> None:
        if event.protocol != PROTOCOL_VERSION:
            raise ProtocolError(f"the service speaks protocol version {event.protocol}, this client {PROTOCOL_VERSION}")
        self.start = event

    def _expect_same(self, event: Told) -> None:
        again = event.event
        assert isinstance(again, StartEvent)
        if again.run != self.id:
            raise ProtocolError(f"the run {self.id!r} was joined again, and {again.run!r} came")
        self._begin(again)

    def _apply(self, delta: Delta) -> None:
        seq, choice, ops = delta
        known = max(self.seq, self._seqs.get(choice, -1))
        if ops and seq <= known:
            raise ProtocolError(f"seq {seq} comes after {known}")
        self._move(seq, choice)
        if self._is_tail and choice not in self._folds:
            return
        try:
            fold = self._folds.get(choice) or self.fold(choice)
            for op in ops:
                apply_op(fold, op)
        except (FoldError, ValueError) as error:
            raise ProtocolError(f"the event with seq {seq} does not fit what came before: {error}") from error

    def _restore(self, event: SnapshotEvent) -> None:
        if event.seq < max(self.seq, self._seqs.get(event.choice, -1)):
            raise ProtocolError(f"seq {event.seq} comes after {max(self.seq, self._seqs.get(event.choice, -1))}")
        try:
            self._expect_choice(event.choice)
            self._folds[event.choice] = Fold.restore(Snapshot(event.value, tuple(event.open), event.status))
        except (FoldError, ValueError) as error:
            raise ProtocolError(f"the snapshot with seq {event.seq} cannot be: {error}") from error
        self._move(event.seq, event.choice)

    def _expect_choice(self, choice: int) -> None:
        num_choices = self.start.choices if self.start else choice + 1
        if not 0 <= choice < num_choices:
            raise ValueError(f"choice {choice} is asked for; this run has {num_choices}, counted from 0")

    def _move(self, seq: int, choice: int) -> None:
        self.seq = self._seqs[choice] = seq


def broken_off(broken: Disconnected) -> str:
    """What happened, in a sentence."""
    tried = f"; {broken.attempts} attempts to resume failed" if broken.attempts else ""
    if broken.phase == "total":
        return f"the run did not end within the time limit{tried}"
    if broken.phase == "first event":
        return f"no event came within the time limit{tried}"
    reason = f": {broken.cause!r}" if broken.cause else " before the run's last event"
    return f"the event stream {'stalled' if broken.phase else 'broke off'}{reason}{tried}"


def _reason(done: DoneEvent, choice: int) -> FinishReason:
    return done.finish_reasons[choice] if choice < len(done.finish_reasons) else done.finish_reason


def _is_finished(done: DoneEvent, fold: Fold, choice: int) -> bool:
    """A whole fold alone does not tell: a number at the root looks whole when it is cut."""
    return fold.is_complete and (done.status == "complete" or _reason(done, choice) == "stop")
