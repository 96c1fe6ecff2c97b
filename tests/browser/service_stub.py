"""A service whose answers the test dictates: the page's files, and an event stream that sends what it is told, when it is told.

No clock is in it: a test sees each state of the page between two sends.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

DEADLINE_S = 120.0
STATIC = Path(__file__).parents[2] / "api" / "static"


class ServiceStub:
    """Serves `api/static` and answers the page's calls; `send`, `end` and `refuse` are for the test's thread."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.joins: list[str] = []
        self.commands: list[tuple[str, dict[str, Any]]] = []
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
        self.joins.clear()
        self.commands.clear()
        self.disconnected.clear()
        self._refusal = None
        self._frames = asyncio.Queue()

    def wait_for(self, holds: Callable[[], object]) -> None:
        """Until the page has brought something about."""
        end = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < end, "what was waited for did not happen"
            time.sleep(0.005)

    def wait_for_command(self) -> tuple[str, dict[str, Any]]:
        """The first that was said to a run."""
        self.wait_for(lambda: self.commands)
        return self.commands[0]

    def send(self, name: str, **data: Any) -> None:
        """One event of the run in progress, or of the next."""
        self.send_bytes(f"id: run-1:{data.get('seq', 0)}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())

    def send_bytes(self, data: bytes) -> None:
        self._loop.call_soon_threadsafe(self._frames.put_nowait, data)

    def end(self) -> None:
        """Close the stream, whether or not its last event was terminal."""
        self._loop.call_soon_threadsafe(self._frames.put_nowait, None)

    def refuse(self, status: int, message: str, code: str, param: str | None) -> None:
        """Answer the next run, or command, with an error body."""
        self._refusal = (status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/structured/stream", self._stream, methods=["POST"]),
                Route("/v1/structured/{run}/events", self._join),
                Route("/v1/structured/{run}/{command}", self._command, methods=["POST"]),
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
        return self._refused() or self._streaming()

    async def _join(self, request: Request) -> Response:
        self.joins.append(request.url.path + (f"?{request.url.query}" if request.url.query else ""))
        return self._refused() or self._streaming()

    async def _command(self, request: Request) -> Response:
        self.commands.append((request.path_params["command"], json.loads(await request.body() or b"{}")))
        return self._refused() or JSONResponse({"run": "run-1", "seq": 0, "status": "cancelled"})

    def _refused(self) -> Response | None:
        if self._refusal is None:
            return None
        (status, body), self._refusal = self._refusal, None
        return JSONResponse(body, status, {"x-should-retry": "false"} if status < 500 else None)

    def _streaming(self) -> Response:
        return StreamingResponse(self._events(self._frames), media_type="text/event-stream")

    async def _events(self, frames: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        finished = False
        try:
            while (frame := await frames.get()) is not None:
                yield frame
            finished = True
        finally:
            if not finished:
                _take_end(frames)
                self.disconnected.set()


def _take_end(frames: asyncio.Queue[bytes | None]) -> None:
    """Whoever has read the last event may be gone before the end of its stream: that is not the next one's."""
    left = [frames.get_nowait() for _ in range(frames.qsize())]
    for frame in left:
        if frame is not None:
            frames.put_nowait(frame)
