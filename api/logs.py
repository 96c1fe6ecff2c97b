"""Logs: one JSON object a line, or plain text; each line with the id of its request, no prompt unless it is asked for."""

from __future__ import annotations

import json
import logging
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.scopes import BODY_SEND

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)
"""The id of the request that is being answered."""

PLAIN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName", "request_id"}
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"
access_logger = logging.getLogger("api.access_log")


class WithRequest(logging.Filter):
    """Gives each record the id of its request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = REQUEST.get() or "-"
        return True


class JsonFormatter(logging.Formatter):
    """A record as JSON; what the call passed as `extra` are members."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = getattr(record, "request_id", "-")
        if request_id != "-":
            entry["request_id"] = request_id
        entry |= {name: value for name, value in vars(record).items() if name not in PLAIN}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def configure(level: str, style: str) -> None:
    """Send every record of this process to standard error, uvicorn's too."""
    handler = logging.StreamHandler()
    handler.addFilter(WithRequest())
    handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


class AccessLog:
    """One line for each answer when it is over: what was asked, by whom, the status, times and bytes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not access_logger.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        answer = _Answer(send)
        scope[BODY_SEND] = answer.send
        try:
            await self.app(scope, receive, answer.send)
        finally:
            access_logger.info("%s %s %s", scope["method"], scope["path"], answer.status, extra=answer.told(scope))


class _Answer:
    """What is seen of one answer while it is sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._began = time.perf_counter()
        self._first_byte_ms: float | None = None
        self.status = 0
        self._num_bytes = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self._num_bytes += len(message.get("body", b""))
            if self._first_byte_ms is None:
                self._first_byte_ms = self._elapsed_ms()
        await self._send(message)

    def told(self, scope: Scope) -> dict[str, Any]:
        return {
            "method": scope["method"],
            "path": scope["path"],
            "status": self.status,
            "caller": scope.get("caller"),
            "first_byte_ms": self._first_byte_ms,
            "duration_ms": self._elapsed_ms(),
            "bytes": self._num_bytes,
        }

    def _elapsed_ms(self) -> float:
        return round((time.perf_counter() - self._began) * 1e3, 3)
