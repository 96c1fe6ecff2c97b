"""The native protocol over one WebSocket: start, join, cancel, steer and edit runs, and receive their events.

What a client sends is answered by a reply each, in order; a message that cannot be honoured is refused, and the connection
goes on. Runs that were started here and are not resumable end with the connection.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, NamedTuple

import anyio
from fastapi import APIRouter, WebSocket
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from api.errors import error_info, validation_info
from api.feed import Feed
from api.reader import Reader
from api.recording import LiveRun
from api.service import Service
from api.structured import start
from api.transports import line_text
from api.wire import read_json, to_json
from constrained.errors import BodyTooLargeError, EndedRunError, MalformedBodyError, RequestError
from schemas.requests import ErrorInfo
from schemas.socket import CLIENT_MESSAGE, JoinMessage, Reply, StartMessage

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/v1/structured")

SLOW_CONSUMER = 1013  # try again later
FAREWELL_S = 1.0


@router.websocket("/ws")
async def websocket(socket: WebSocket) -> None:
    """Runs over one connection."""
    await Connection(socket.app.state.service, socket).serve()


class SlowConsumer(Exception):
    """The client took nothing for too long."""


class Following(NamedTuple):
    """A run whose events are to be sent; `opened` where its feed must be released afterwards."""

    feed: Feed
    reader: Reader
    opened: bool


Answer = tuple[Reply, Following | None]


class Connection:
    """One client, its runs, and its last word on which of them it means."""

    def __init__(self, service: Service, socket: WebSocket) -> None:
        self._service = service
        self._socket = socket
        self._run: str | None = None
        self._started: list[LiveRun] = []
        self._sending = asyncio.Lock()

    async def serve(self) -> None:
        """Until the client goes, or takes nothing for too long."""
        await self._socket.accept()
        try:
            async with anyio.create_task_group() as tasks:
                await self._receive_all(tasks)
                tasks.cancel_scope.cancel()
        except* SlowConsumer:
            await self._close_slow()
        except* (WebSocketDisconnect, OSError):
            logger.debug("a client of the WebSocket has gone")
        finally:
            for live in self._started:
                self._service.leave(live)

    async def _receive_all(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            reply, following = await self._answer(message)
            await self._send(to_json(reply.model_dump()))
            if following is not None:
                tasks.start_soon(self._tell, following)

    async def _answer(self, message: Any) -> Answer:
        """Do what a message asks."""
        value: Any = None
        try:
            value = self._read(message)
            return await self._obey(CLIENT_MESSAGE.validate_python(value))
        except ValidationError as error:
            return _refusal(value, validation_info(RequestValidationError(error.errors(), body=value))), None
        except Exception as error:
            info = error_info(error)
            if info.code == "internal_error":
                logger.exception("a message of a WebSocket failed")
            return _refusal(value, info), None

    def _read(self, message: Any) -> Any:
        text = message.get("text")
        if text is None:
            raise MalformedBodyError("A message must be text: one JSON object; a binary one was found")
        data = text.encode("utf-8", "surrogatepass")
        limit = self._service.settings.max_body_bytes
        if len(data) > limit:
            raise BodyTooLargeError(f"The message is over the limit of {limit} bytes")
        value = read_json(data)
        if not isinstance(value, dict):
            raise MalformedBodyError(f"A message must be a JSON object, not {type(value).__name__}")
        return value

    async def _obey(self, message: Any) -> Answer:
        if isinstance(message, StartMessage):
            live = await start(self._service, message.request)
            self._started.append(live)
            self._run = live.run.id
            reader = Reader(live.feed, self._service.settings.runs.reader)
            return Reply(reply="start", id=message.id, run=self._run), Following(live.feed, reader, opened=False)
        if isinstance(message, JoinMessage):
            following = await self._join(message)
            self._run = message.run
            return Reply(reply="join", id=message.id, run=message.run), following
        run = message.run or self._run
        if run is None:
            raise RequestError("This connection has no run yet; name one", "run")
        command = message.model_dump(exclude={"id", "run"})
        return Reply(reply=message.op, id=message.id, **await self._service.command(run, command)), None

    async def _join(self, message: JoinMessage) -> Following:
        feed = await self._service.open(message.run)
        try:
            reader = Reader(feed, self._service.settings.runs.reader, message.after)
            if reader.is_over:
                raise EndedRunError(f"The run has ended; nothing follows {message.after}", "after")
            return Following(feed, reader, opened=True)
        except BaseException:
            self._service.log.release(feed)
            raise

    async def _tell(self, following: Following) -> None:
        """Send the events of one run."""
        run = following.feed.run
        try:
            async for lines in following.reader.batches(lambda batch: [line_text(run, event)[:-1] for event in batch]):
                for line in lines:
                    await self._send(line)
        finally:
            if following.opened:
                self._service.log.release(following.feed)

    async def _send(self, text: str) -> None:
        async with self._sending:
            try:
                async with asyncio.timeout(self._service.settings.stall_timeout_s):
                    await self._socket.send_text(text)
            except TimeoutError:
                raise SlowConsumer from None

    async def _close_slow(self) -> None:
        logger.info("a client of the WebSocket took nothing for %s s and is closed", self._service.settings.stall_timeout_s)
        self._service.metrics.slow_readers.inc()
        with suppress(TimeoutError, RuntimeError, OSError):
            async with asyncio.timeout(FAREWELL_S):
                if self._socket.application_state is WebSocketState.CONNECTED:
                    await self._socket.close(SLOW_CONSUMER, "slow_consumer")


def _refusal(value: Any, info: ErrorInfo) -> Reply:
    """The reply to a message that cannot be honoured, with as much of it as could be read."""
    told = value if isinstance(value, dict) else {}
    op, given, run = told.get("op"), told.get("id"), told.get("run")
    return Reply(
        reply=op if op in ("start", "join", "cancel", "steer", "edit") else None,
        id=given if isinstance(given, str) else None,
        run=run if isinstance(run, str) else None,
        error=info,
    )
