"""`Stream`: one run while it is generated, for code that blocks; a thin shell around `run`, `session` and `cursors`.

A stream pulls: bytes are read from the network only while a consumer waits for something. Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol, TypeVar, overload

from constrained.client.base import StreamBase
from constrained.client.channels import Channel, SocketChannel
from constrained.client.cursors import Cursor, ElementCursor, EventCursor, FieldCursor, TextCursor, reader
from constrained.client.errors import ClientError
from constrained.client.run import Cancelled
from constrained.client.session import Session
from constrained.client.unset import Unset
from schemas.events import Event

T = TypeVar("T")
M = TypeVar("M")


class Calls(Protocol):
    """What a stream asks of the client that made it."""

    def rejoin(self, run: str, after: int | None) -> Channel: ...

    def ask(self, channel: SocketChannel, message: dict[str, Any]) -> int: ...

    def cancel(self, run: str) -> object: ...

    def steer(self, run: str, text: str, *, choice: int | None) -> int: ...

    def edit(self, run: str, path: str, value: Any, *, choice: int) -> int: ...


class Stream(StreamBase[T]):
    """One run while it is generated.

    Consumers (`events`, `elements`, `text`, `field`, `final`) can be mixed and made at any time: each first gets what has
    arrived already, and each reads on from the network when it runs dry, which moves the others on too. A consumer ends when
    the thing that it follows is final; if the run ends before that, it raises (`IncompleteError` and its kin).
    """

    def __init__(self, session: Session[T], channel: Channel, calls: Calls, *, owns: bool) -> None:
        super().__init__(session)
        self._channel: Channel | None = channel
        self._calls = calls
        self._owns = owns

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def events(self) -> Iterator[Event]:
        """Every event to the terminal one; made late, it begins with the start and a snapshot."""
        return self._follow(EventCursor(self._run))

    @overload
    def elements(self, path: str, model: type[M], *, choice: int = 0) -> Iterator[M]: ...
    @overload
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> Iterator[Any]: ...
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> Iterator[Any]:
        """Each element of the array at `path` as soon as it closes, as an instance of `model` or as plain JSON values."""
        return self._follow(ElementCursor(self._run, path, reader(model), choice))

    def text(self, path: str, *, choice: int = 0) -> Iterator[str]:
        """The additions to the string at `path` as they come."""
        return self._follow(TextCursor(self._run, path, choice))

    @overload
    def field(self, path: str, model: type[M], *, choice: int = 0) -> M | Unset: ...
    @overload
    def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any: ...
    def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any:
        """Wait until the value at `path` is final; `UNSET` as soon as it is certain that there is none."""
        return next(self._follow(FieldCursor(self._run, path, reader(model), choice)))

    def final(self, *, choice: int = 0) -> T:
        """Wait for the end; the model instance, or the plain value of a plain schema."""
        while not self._run.ended:
            self._pump()
        return self._run.final(choice)

    def steer(self, text: str, *, choice: int | None = None) -> int:
        """Say something more to the run, or to one choice of it: it joins the conversation, and what was streamed stays.

        Gives the number of the last op before the new course.
        """
        self._expect_open()
        if isinstance(self._channel, SocketChannel) and self._channel.is_open:
            message = {"op": "steer", "run": self.run_id, "text": text}
            return self._calls.ask(self._channel, message if choice is None else {**message, "choice": choice})
        return self._calls.steer(self.run_id, text, choice=choice)

    def edit(self, path: str, value: Any, *, choice: int = 0) -> int:
        """Correct the finished value at `path`, and wait until the correction is in the document here.

        Raises `OpenPathError`, `UnknownPathError`, `InvalidValueError` or `RunEndedError`; the run then goes on as it was.
        """
        self._expect_open()
        if isinstance(self._channel, SocketChannel) and self._channel.is_open:
            message = {"op": "edit", "run": self.run_id, "path": path, "value": value, "choice": choice}
            seq = self._calls.ask(self._channel, message)
        else:
            seq = self._calls.edit(self.run_id, path, value, choice=choice)
        while self._run.seq_of(choice) < seq and not self._run.ended:
            self._pump()
        return seq

    def cancel(self) -> None:
        """Stop the run, whoever reads it, and close the connection."""
        ended = self._run.ended
        self.close()
        if self._session.outlives and not ended and self._run.id is not None:
            self._calls.cancel(self._run.id)

    def detach(self) -> str:
        """Close the connection and let the run go on; its id, by which it can be joined. For a run that outlives its reader."""
        run_id = self._expect_outliving()
        self.close()
        return run_id

    def close(self) -> None:
        """Close the connection, which stops the run unless it is resumable. What has arrived can still be read."""
        self._run.end(Cancelled())
        self._drop()

    def leave(self) -> None:
        """The end of the `with`: a run that was started by it and still goes on is stopped."""
        if self._owns and not self._run.ended:
            with suppress(ClientError):
                self.cancel()
        self.close()

    def wait_for_start(self) -> None:
        """Until the first event has come, or none will."""
        while not self._run.started:
            self._pump()

    def _follow(self, cursor: Cursor[M]) -> Iterator[M]:
        while True:
            yield from cursor.take()
            if cursor.finished:
                return
            if self._run.ended:
                raise self._run.failure(cursor.choice)
            self._pump()

    def _pump(self) -> None:
        """Take one event, or read once from the network where none waits."""
        if not self._run.step():
            self._read()

    def _read(self) -> None:
        """One read, or one attempt to connect again and a read."""
        session = self._session
        try:
            channel = self._channel or self._reopen()
            items = channel.read(session.read_timeout_s())
            keep = session.received(items, channel.retry_ms)
        except Exception as error:  # a transport of any kind may stand below
            keep = False
            session.failed(error, self._channel.retry_ms if self._channel else None)
        if not keep:
            self._drop()
        self._warn_of_buffering()

    def _reopen(self) -> Channel:
        time.sleep(self._session.wait_s)
        self._session.check()
        self._channel = self._calls.rejoin(self.run_id, self._run.place)
        self._session.reopened()
        return self._channel

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
