"""Middleware in plain ASGI: the request's id, the limit on its body, and the last net for errors of ours.

Plain, because anything that wraps the response in between would buffer streams and hide a client's disconnect.
"""

from __future__ import annotations

import logging
import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import answer_of, error_info
from api.logs import REQUEST
from api.scopes import BODY_SEND
from constrained.errors import BodyTooLargeError

logger = logging.getLogger(__name__)

DROPPED_SHARE = 4
"""How many times the limit is read of a body that is over it, before the connection is closed in its face."""
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestId:
    """Gives each answer an `x-request-id`: the caller's own where it is well formed, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else f"req-{uuid4().hex}"
        scope["request_id"] = request_id
        scope.setdefault(BODY_SEND, send)
        REQUEST.set(request_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        await self.app(scope, receive, send_with_id)


class BodyLimit:
    """Refuses a body over `max_bytes` with 413, by its declared length or while it is read, before anything parses it."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await self._read(scope, receive)
        if body is None:
            answer = counted(scope, BodyTooLargeError(f"The body is over the limit of {self.max_bytes} bytes"))
            answer.headers["connection"] = "close"
            await answer(scope, receive, send)
            return
        await self.app(scope, self._replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, or None where it is over the limit.

        What is not too far over it is read and dropped: many clients, and proxies, see no answer before they have sent all.
        """
        declared = Headers(scope=scope).get("content-length", "0")
        is_over = declared.isdecimal() and int(declared) > self.max_bytes
        most = self.max_bytes * DROPPED_SHARE
        if is_over and int(declared) > most:
            return None
        body = bytearray()
        num_read = 0
        while num_read <= most:
            message = await receive()
            part = message.get("body", b"")
            num_read += len(part)
            is_over = is_over or num_read > self.max_bytes
            if not is_over:
                body += part
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                break
        return None if is_over else bytes(body)

    @staticmethod
    def _replay(body: bytes, receive: Receive) -> Receive:
        """A `receive` that gives the body whole, once, and then what the server says."""
        given = False

        async def receive_again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return receive_again


class ErrorNet:
    """Answers what no route has caught, so that the connection stays open; after the first byte it can only be passed on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched_send)
        except Exception as error:
            if scope["type"] != "http" or started:
                raise
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await counted(scope, error)(scope, receive, send)


def counted(scope: Scope, error: Exception) -> Response:
    """The answer for an error, which is counted."""
    scope["app"].state.metrics.refusals.labels(code=error_info(error).code).inc()
    return answer_of(error)
