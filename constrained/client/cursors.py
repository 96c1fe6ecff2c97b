"""Cursors: what one consumer of a run has not seen yet. No I/O: whoever drives a cursor feeds the run when it runs dry.

A cursor catches up: made at any time, it gives first what has arrived already (events as one snapshot for each choice). It is
finished when the thing that it follows is; a run that ends before that is a failure, never a silent end.

Where the fold's status answers, the value is not touched: reading the value joins the pieces of an open string.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

from constrained.client.run import Run
from constrained.client.target import Target
from constrained.client.told import Told
from constrained.client.unset import UNSET
from constrained.stream import Fold
from constrained.stream.pointer import join, split
from constrained.stream.snapshot import copy_json
from schemas.events import DoneEvent, ErrorEvent, Event

I_co = TypeVar("I_co", covariant=True)
M = TypeVar("M")
Fate = Literal["pending", "streaming", "complete", "absent"]


class Cursor(Protocol[I_co]):
    """`take` gives what is new; after it, `finished` says whether more can come."""

    @property
    def choice(self) -> int: ...

    @property
    def finished(self) -> bool: ...

    def take(self) -> Iterator[I_co]: ...


class EventCursor:
    """Every event, up to the terminal one."""

    choice = 0

    def __init__(self, run: Run[Any]) -> None:
        self.finished = False
        self._queue: deque[Event | Told] = deque(run.events_so_far())
        run.listen(self)

    def receive(self, event: Told) -> None:
        self._queue.append(event)

    def take(self) -> Iterator[Event]:
        while self._queue:
            waiting = self._queue.popleft()
            event = waiting.event if isinstance(waiting, Told) else waiting
            self.finished = isinstance(event, DoneEvent | ErrorEvent)
            yield event


class ElementCursor(Generic[M]):
    """Each element of the array at `path`, when it is final; none where the array is absent or null."""

    def __init__(self, run: Run[Any], path: str, read: Callable[[Any], M], choice: int) -> None:
        self.choice = choice
        self.finished = False
        self._run = run
        self._path = canonical(path)
        self._read = read
        self._num_taken = 0
        self._known = False
        run.fold(choice)

    def take(self) -> Iterator[M]:
        while (element := join(self._path, self._num_taken)) in (status := self._fold.status) and status[element] == "complete":
            self._num_taken += 1
            yield self._read(self._fold.at(element))
        fate = fate_of(self._fold, self._path)
        if not self._known and fate in ("streaming", "complete"):
            _expect(self._fold.at(self._path), list, self._path)
            self._known = True
        self.finished = fate in ("complete", "absent")

    @property
    def _fold(self) -> Fold:
        return self._run.fold(self.choice)


class TextCursor:
    """The additions to the string at `path`; their concatenation is the string. None where it is absent or null.

    A string is followed as it was generated: a correction of the finished string adds nothing.
    """

    def __init__(self, run: Run[Any], path: str, choice: int) -> None:
        self.choice = choice
        self.finished = False
        self._run = run
        self._path = canonical(path)
        self._pieces: list[str] = []
        self._given: list[str] = []
        self._is_closed = False
        self._catch_up()
        run.listen(self)

    def receive(self, event: Told) -> None:
        if self._is_closed or event.name not in ("delta", "snapshot") or event.data.get("choice", 0) != self.choice:
            return
        if event.name == "snapshot":
            self._catch_up()
            return
        for op in event.data["ops"]:
            if op["path"] == self._path:
                self._take_op(op)

    def take(self) -> Iterator[str]:
        while self._pieces:
            pieces, self._pieces = self._pieces, []
            yield "".join(pieces)
        fold = self._run.fold(self.choice)
        fate = fate_of(fold, self._path)
        if not self._given and fate in ("streaming", "complete"):
            _expect(fold.at(self._path), str, self._path)
        self.finished = fate in ("complete", "absent")

    def _take_op(self, op: Mapping[str, Any]) -> None:
        if op["op"] == "text":
            self._add(op["add"])
        elif op["op"] == "set" and isinstance(op["value"], str):
            self._add(op["value"])
        self._is_closed = op["op"] in ("set", "close")

    def _catch_up(self) -> None:
        """What a document that came at once has beyond what was given; nothing where the string was corrected meanwhile."""
        fold = self._run.fold(self.choice)
        fate = fate_of(fold, self._path)
        if fate in ("streaming", "complete") and isinstance(text := fold.at(self._path), str):
            given = "".join(self._given)
            if text.startswith(given):
                self._add(text[len(given) :])
        self._is_closed = fate in ("complete", "absent")

    def _add(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._given.append(text)


class FieldCursor(Generic[M]):
    """The value at `path`, once, when it is final; `UNSET` where it is absent."""

    def __init__(self, run: Run[Any], path: str, read: Callable[[Any], M], choice: int) -> None:
        self.choice = choice
        self.finished = False
        self._run = run
        self._path = canonical(path)
        self._read = read
        run.fold(choice)

    def take(self) -> Iterator[Any]:
        fold = self._run.fold(self.choice)
        fate = fate_of(fold, self._path)
        self.finished = fate in ("complete", "absent")
        if fate == "complete":
            yield self._read(fold.at(self._path))
        elif fate == "absent":
            yield UNSET


def reader(model: Any) -> Callable[[Any], Any]:
    """From the plain JSON value of a place to what a consumer gets: an instance of `model`, or without one a copy."""
    return copy_json if model is None else Target[Any](model).finish


def canonical(path: str) -> str:
    """`path` as the protocol spells it; `ValueError` where it is not a JSON Pointer."""
    pointer = ""
    for token in split(path):
        pointer = join(pointer, token)
    return pointer


def fate_of(fold: Fold, path: str) -> Fate:
    """Where the value at `path` stands; "absent" once it can no longer come, because what should hold it is final."""
    status = fold.status.get(path)
    if status == "streaming" or status == "complete":
        return status
    while path:
        path = path.rpartition("/")[0]
        if (status := fold.status.get(path)) is not None:
            return "absent" if status == "complete" else "pending"
    return "pending"


def _expect(value: Any, kind: type[Any], path: str) -> None:
    """A consumer of the wrong kind for its path is told so at once, and not at the end."""
    if value is not None and not isinstance(value, kind):
        expected = "an array" if kind is list else "a string"
        raise ValueError(f"the value at {path!r} is not {expected} but {type(value).__name__}")
