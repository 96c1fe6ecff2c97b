"""`create_app`: the service with its routes, middleware and life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from api import chat, check, completions, docs, errors, models, responses, sockets, structured
from api.access import Access
from api.backend import Backend, ModelBackend, load_backend
from api.keys import load_keys
from api.limits import Limit
from api.logs import AccessLog
from api.metrics import Metrics
from api.middleware import BodyLimit, ErrorNet, RequestId
from api.responses_store import ResponseStore
from api.service import Service
from api.settings import Settings
from api.tracing import TraceRequests, Tracing, tracing_to
from constrained import __version__

STATIC = Path(__file__).parent / "static"


class PageFiles(StaticFiles):
    """Files that a browser asks about anew each time: modules of two versions must not meet on one page."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def create_app(settings: Settings | None = None, backend: Backend | None = None, tracing: Tracing | None = None) -> FastAPI:
    """The app; at start-up it loads the model of `settings`, unless it is given a `backend`. It closes either at the end."""
    settings = settings or Settings()
    tracing = tracing or tracing_to(settings.otlp_endpoint)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loaded = backend if backend is not None else await asyncio.to_thread(load_backend, settings)
        service = Service(loaded, settings, metrics, tracing)
        if isinstance(loaded, ModelBackend):
            metrics.watch_engine(loaded.engine.stats)
        app.state.service = service
        app.state.responses = store = ResponseStore(settings.responses_kept, settings.responses_kept_s)
        try:
            yield
        finally:
            await store.close()
            await service.close()
            await asyncio.to_thread(tracing.close)

    app = FastAPI(title="constrained", version=__version__, lifespan=lifespan, redirect_slashes=False)
    app.state.metrics = metrics
    errors.install(app)
    _add_middleware(app, settings, tracing)
    for routes in (structured, sockets, check, chat, completions, responses, models):
        app.include_router(routes.router)
    app.mount("/static", PageFiles(directory=STATIC, check_dir=False), name="static")
    app.add_api_route("/", page, include_in_schema=False)
    docs.install(app)
    return app


def _add_middleware(app: FastAPI, settings: Settings, tracing: Tracing) -> None:
    """From the innermost to the outermost."""
    keys = None if settings.api_keys is None else load_keys(settings.api_keys)
    app.add_middleware(ErrorNet)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(Access, keys=keys, limit=Limit(settings.requests_per_minute, settings.concurrent_requests))
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["x-request-id", "retry-after"],
        )
    app.add_middleware(AccessLog)
    if tracing.is_on:
        app.add_middleware(TraceRequests, tracing=tracing)
    app.add_middleware(RequestId)


async def page() -> FileResponse:
    """The page that shows a form filling itself."""
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})
