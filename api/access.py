"""Who is let in: the API key of a request, and the limits that hold for it. Plain ASGI, before any body is read."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.keys import ApiKeys, KeyEntry
from api.limits import SLOT, Limit, Limiter, Slot
from api.middleware import counted
from api.scopes import KEY
from constrained.errors import ConstrainedError, UnauthorizedError

GUARDED = ("/v1/", "/metrics")
COUNTED_METHODS = frozenset({"POST", "WEBSOCKET"})
CONTROLS = ("/cancel", "/steer", "/edit")
"""What acts on a run that goes on already is not counted."""
POLICY_VIOLATION = 1008


class Access:
    """Guards the API.

    `scope["caller"]` is the name of the key, or the address where there are no keys; `scope["key"]` is that name alone.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys | None, limit: Limit) -> None:
        self.app = app
        self._keys = keys
        self._limit = limit
        self._limiter = Limiter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or not scope["path"].startswith(GUARDED):
            await self.app(scope, receive, send)
            return
        try:
            caller, limit = self._identify(scope)
        except ConstrainedError as error:
            await _refuse(scope, receive, send, error)
            return
        scope["caller"] = caller
        scope["key"] = None if self._keys is None else caller
        KEY.set(scope["key"])
        if scope.get("method", "WEBSOCKET") not in COUNTED_METHODS or scope["path"].endswith(CONTROLS):
            await self.app(scope, receive, send)
            return
        try:
            left = self._limiter.enter(caller, limit)
        except ConstrainedError as error:
            await _refuse(scope, receive, send, error)
            return
        slot = Slot(lambda: self._limiter.leave(caller))
        SLOT.set(slot)
        try:
            await self.app(scope, receive, send if left is None else _telling(send, limit.requests_per_minute, left))
        finally:
            slot.release()

    def _identify(self, scope: Scope) -> tuple[str, Limit]:
        """(the caller, its limits); `UnauthorizedError` where a key is needed and there is none that is known."""
        if self._keys is None or scope.get("method") == "OPTIONS":
            return (scope.get("client") or ("", 0))[0], self._limit
        given = _key_of(Headers(scope=scope))
        if given is None:
            raise UnauthorizedError("An API key is needed: send `Authorization: Bearer KEY`", "authorization")
        entry = self._keys.find(given)
        if entry is None:
            raise UnauthorizedError("This API key is not known", "authorization")
        return entry.name, self._limit_of(entry)

    def _limit_of(self, entry: KeyEntry) -> Limit:
        rate, at_once = entry.requests_per_minute, entry.concurrent_requests
        return Limit(
            self._limit.requests_per_minute if rate is None else rate,
            self._limit.concurrent_requests if at_once is None else at_once,
        )


def _key_of(headers: Headers) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return headers.get("x-api-key")


async def _refuse(scope: Scope, receive: Receive, send: Send, error: ConstrainedError) -> None:
    answer = counted(scope, error)
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await answer(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": str(error)})


def _telling(send: Send, limit: int, left: int) -> Send:
    """Tells the caller in each answer what it has left, in the words of the official API."""

    async def send_told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["x-ratelimit-limit-requests"] = str(limit)
            headers["x-ratelimit-remaining-requests"] = str(left)
        await send(message)

    return send_told
