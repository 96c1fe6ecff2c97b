"""A live service over a synthetic backend, and a reader of its event streams that forgives nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.backend import Backend
from api.settings import Settings
from api.ws_protocol import WebSocketProtocol
from schemas.events import EVENTS, Wire
from tests.api.synthetic import SyntheticBackend

DEADLINE_S = 120.0


@dataclass(frozen=True)
class Served:
    """A service that answers at `url`, its backend, and a client for it."""

    url: str
    backend: SyntheticBackend
    client: httpx.Client

    def metric(self, name: str) -> float:
        """The value of one series, spelled as Prometheus spells it; 0 where it has not been counted."""
        lines = self.client.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)


@contextmanager
def live(backend: Backend, settings: Settings | None = None) -> Iterator[str]:
    """The address of a running service."""
    with serving(create_app(settings, backend)) as url:
        yield url


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of a running app."""
    config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1, ws=WebSocketProtocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def served(backend: SyntheticBackend, settings: Settings | None = None) -> Iterator[Served]:
    """A running service with a client."""
    with live(backend, settings) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        yield Served(url, backend, client)


def wait_until(holds: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Waits for what another thread brings about; fails at a deadline that no healthy run comes near."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.005)


@dataclass(frozen=True)
class Sent:
    """One event as it came: its SSE fields, its data, and the data as the wire's model reads it."""

    id: str
    name: str
    data: dict[str, Any]
    model: Wire


def read_events(lines: Iterable[str]) -> Iterator[Sent]:
    """The events of a native stream; every line must be one that the protocol allows, every datum valid by its model."""
    fields: dict[str, str] = {}
    for line in lines:
        if line == ": ping":
            continue
        if line:
            name, _, value = line.partition(": ")
            assert name in {"id", "event", "data"}, line
            assert name not in fields, line
            fields[name] = value
            continue
        data = json.loads(fields["data"])
        yield Sent(fields["id"], fields["event"], data, EVENTS[fields["event"]].model_validate(data))
        fields = {}
    assert not fields


def stream_events(client: httpx.Client, body: dict[str, Any]) -> list[Sent]:
    """All events of one run."""
    with client.stream("POST", "/v1/structured/stream", json=body) as response:
        assert response.status_code == 200, response.read()
        return list(read_events(response.iter_lines()))


def ask(schema: Any, prompt: str = "hello", **fields: Any) -> dict[str, Any]:
    """The body of a structured request."""
    return {"schema": schema, "messages": [{"role": "user", "content": prompt}], **fields}
