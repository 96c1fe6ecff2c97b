"""A service whose answers the test dictates: the page's files, and an event stream that sends what it is told, when it is told.

No clock is in it: a test sees each state of the page between two sends.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parents[2] / "api" / "static"


class ServiceStub:
    """Serves `api/static` and answers the page's calls; `send`, `end` and `refuse` are for the test's thread."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.disconnected = threading.Event()
        self._refusal: tuple[int, dict[str, Any]] | None = None
        self._loop = asyncio.new_event_loop()
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._server = uvicorn.Server(
            uvicorn.Config(self._app(), host="127.0.0.1", port=0, ws="none", lifespan="off", log_level="error")
        )
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._server.serve(),))

    def __enter__(self) -> ServiceStub:
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()
        self._server.should_exit = True
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/"

    def reset(self) -> None:
        """Forget what earlier tests asked and left."""
        self.end()
        self.requests.clear()
        self.disconnected.clear()
        self._refusal = None
        self._frames = asyncio.Queue()

    def send(self, name: str, **data: Any) -> None:
        """One event of the run in progress, or of the next."""
        self.send_bytes(f"id: run-1:0\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())

    def send_bytes(self, data: bytes) -> None:
        self._loop.call_soon_threadsafe(self._frames.put_nowait, data)

    def end(self) -> None:
        """Close the stream, whether or not its last event was terminal."""
        self._loop.call_soon_threadsafe(self._frames.put_nowait, None)

    def refuse(self, status: int, message: str, code: str, param: str | None) -> None:
        """Answer the next run with an error body."""
        self._refusal = (status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/structured/stream", self._stream, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/", self._index),
                Mount("/static", StaticFiles(directory=STATIC)),
            ]
        )

    async def _index(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "stub-model", "object": "model"}]})

    async def _stream(self, request: Request) -> Response:
        self.requests.append(await request.json())
        if self._refusal is not None:
            (status, body), self._refusal = self._refusal, None
            return JSONResponse(body, status)
        return StreamingResponse(self._events(self._frames), media_type="text/event-stream")

    async def _events(self, frames: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        finished = False
        try:
            while (frame := await frames.get()) is not None:
                yield frame
            finished = True
        finally:
            if not finished:
                self.disconnected.set()
