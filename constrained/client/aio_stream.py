"""`AsyncStream`: one run while it is generated, for asyncio; a thin shell around `run`, `session` and `cursors`.

A stream pulls: bytes are read from the network only while a consumer waits for something. Consumers may run in tasks of their
own; they share one read at a time, which goes on when the one that began it is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Protocol, TypeVar, overload

from constrained.client.aio_channels import AsyncChannel, AsyncSocketChannel
from constrained.client.base import StreamBase
from constrained.client.cursors import Cursor, ElementCursor, EventCursor, FieldCursor, TextCursor, reader
from constrained.client.errors import ClientError
from constrained.client.run import Cancelled
from constrained.client.session import Session
from constrained.client.unset import Unset
from schemas.events import Event

T = TypeVar("T")
M = TypeVar("M")


class AsyncCalls(Protocol):
    """What a stream asks of the client that made it."""

    async def rejoin(self, run: str, after: int | None) -> AsyncChannel: ...

    async def ask(self, channel: AsyncSocketChannel, message: dict[str, Any]) -> int: ...

    async def cancel(self, run: str) -> object: ...

    async def steer(self, run: str, text: str, *, choice: int | None) -> int: ...

    async def edit(self, run: str, path: str, value: Any, *, choice: int) -> int: ...


class AsyncStream(StreamBase[T]):
    """One run while it is generated.

    Consumers (`events`, `elements`, `text`, `field`, `final`) can be mixed and made at any time: each first gets what has
    arrived already, and each reads on from the network when it runs dry, which moves the others on too. A consumer ends when
    the thing that it follows is final; if the run ends before that, it raises (`IncompleteError` and its kin).
    """

    def __init__(self, session: Session[T], channel: AsyncChannel, calls: AsyncCalls, *, owns: bool) -> None:
        super().__init__(session)
        self._channel: AsyncChannel | None = channel
        self._calls = calls
        self._owns = owns
        self._reading: asyncio.Task[None] | None = None

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.events()

    def events(self) -> AsyncIterator[Event]:
        """Every event to the terminal one; made late, it begins with the start and a snapshot."""
        return self._follow(EventCursor(self._run))

    @overload
    def elements(self, path: str, model: type[M], *, choice: int = 0) -> AsyncIterator[M]: ...
    @overload
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> AsyncIterator[Any]: ...
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> AsyncIterator[Any]:
        """Each element of the array at `path` as soon as it closes, as an instance of `model` or as plain JSON values."""
        return self._follow(ElementCursor(self._run, path, reader(model), choice))

    def text(self, path: str, *, choice: int = 0) -> AsyncIterator[str]:
        """The additions to the string at `path` as they come."""
        return self._follow(TextCursor(self._run, path, choice))

    @overload
    async def field(self, path: str, model: type[M], *, choice: int = 0) -> M | Unset: ...
    @overload
    async def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any: ...
    async def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any:
        """Wait until the value at `path` is final; `UNSET` as soon as it is certain that there is none."""
        async with aclosing(self._follow(FieldCursor(self._run, path, reader(model), choice))) as values:
            return await anext(values)

    async def final(self, *, choice: int = 0) -> T:
        """Wait for the end; the model instance, or the plain value of a plain schema."""
        while not self._run.ended:
            await self._pump()
        return self._run.final(choice)

    async def steer(self, text: str, *, choice: int | None = None) -> int:
        """Say something more to the run, or to one choice of it: it joins the conversation, and what was streamed stays.

        Gives the number of the last op before the new course.
        """
        self._expect_open()
        if isinstance(self._channel, AsyncSocketChannel) and self._channel.is_open:
            message = {"op": "steer", "run": self.run_id, "text": text}
            return await self._calls.ask(self._channel, message if choice is None else {**message, "choice": choice})
        return await self._calls.steer(self.run_id, text, choice=choice)

    async def edit(self, path: str, value: Any, *, choice: int = 0) -> int:
        """Correct the finished value at `path`, and wait until the correction is in the document here.

        Raises `OpenPathError`, `UnknownPathError`, `InvalidValueError` or `RunEndedError`; the run then goes on as it was.
        """
        self._expect_open()
        if isinstance(self._channel, AsyncSocketChannel) and self._channel.is_open:
            message = {"op": "edit", "run": self.run_id, "path": path, "value": value, "choice": choice}
            seq = await self._calls.ask(self._channel, message)
        else:
            seq = await self._calls.edit(self.run_id, path, value, choice=choice)
        while self._run.seq_of(choice) < seq and not self._run.ended:
            await self._pump()
        return seq

    async def cancel(self) -> None:
        """Stop the run, whoever reads it, and close the connection."""
        ended = self._run.ended
        await self.aclose()
        if self._session.outlives and not ended and self._run.id is not None:
            await self._calls.cancel(self._run.id)

    async def detach(self) -> str:
        """Close the connection and let the run go on; its id, by which it can be joined. For a run that outlives its reader."""
        run_id = self._expect_outliving()
        await self.aclose()
        return run_id

    async def aclose(self) -> None:
        """Close the connection, which stops the run unless it is resumable. What has arrived can still be read."""
        self._run.end(Cancelled())
        if (reading := self._reading) is not None:
            reading.cancel()
            await asyncio.wait([reading])
        await self._drop()

    async def leave(self) -> None:
        """The end of the `async with`: a run that was started by it and still goes on is stopped."""
        if self._owns and not self._run.ended:
            with suppress(ClientError):
                await self.cancel()
        await self.aclose()

    async def wait_for_start(self) -> None:
        """Until the first event has come, or none will."""
        while not self._run.started:
            await self._pump()

    async def _follow(self, cursor: Cursor[M]) -> AsyncGenerator[M, None]:
        while True:
            for item in cursor.take():
                yield item
            if cursor.finished:
                return
            if self._run.ended:
                raise self._run.failure(cursor.choice)
            await self._pump()

    async def _pump(self) -> None:
        """Take one event, or where none waits, wait for one read from the network, begun here or by another consumer.

        Being cancelled here does not end the read.
        """
        if self._run.step():
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        reading = self._reading
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        """One read, or one attempt to connect again and a read."""
        session = self._session
        try:
            try:
                channel = self._channel or await self._reopen()
                items = await channel.read(session.read_timeout_s())
                keep = session.received(items, channel.retry_ms)
            except Exception as error:  # a transport of any kind may stand below
                keep = False
                session.failed(error, self._channel.retry_ms if self._channel else None)
            if not keep:
                await self._drop()
        except asyncio.CancelledError:
            self._run.end(Cancelled())
            raise
        finally:
            self._reading = None
        self._warn_of_buffering()

    async def _reopen(self) -> AsyncChannel:
        await asyncio.sleep(self._session.wait_s)
        self._session.check()
        self._channel = await self._calls.rejoin(self.run_id, self._run.place)
        self._session.reopened()
        return self._channel

    async def _drop(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.aclose()
