"""The end of the service: what runs may finish, what does not is told, what is new is refused."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.server import GracefulServer
from api.settings import Settings
from constrained.client import Client
from tests.api.server import DEADLINE_S, ask, read_events, serving, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.conftest import IN_CI

STRING = {"type": "string"}


class Stoppable:
    """A service as `constrained serve` runs it."""

    def __init__(self, settings: Settings) -> None:
        self.backend = SyntheticBackend()
        self.server = GracefulServer(create_app(settings, self.backend), settings)
        self.thread = threading.Thread(target=self.server.run)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        self.server.should_exit = True


@contextmanager
def stoppable(**settings: Any) -> Iterator[tuple[Stoppable, httpx.Client]]:
    service = Stoppable(Settings(port=0, log_level="error", **settings))
    service.thread.start()
    wait_until(lambda: service.server.started)
    try:
        with httpx.Client(base_url=f"http://{service.address}", timeout=DEADLINE_S) as client:
            yield service, client
    finally:
        service.stop()
        service.thread.join()


def test_what_runs_may_finish() -> None:
    with stoppable() as (service, client):
        with client.stream("POST", "/v1/structured/stream", json=ask(STRING, "slow")) as stream:
            lines = stream.iter_lines()
            next(lines)
            service.stop()
            text = "\n".join(lines)
        assert "event: done" in text
        service.thread.join()
    assert service.backend.closed


def test_what_does_not_finish_is_told() -> None:
    with stoppable(shutdown_grace_s=0.0) as (service, client):
        with client.stream("POST", "/v1/structured/stream", json=ask(STRING, "hang")) as stream:
            events = read_events(stream.iter_lines())
            next(events)
            service.stop()
            *_, last = events
        assert (last.name, last.data["code"], last.data["retriable"]) == ("error", "shutting_down", True)
        service.thread.join()


def test_a_chat_that_does_not_finish_is_told() -> None:
    body = {"messages": [{"role": "user", "content": "hang"}], "stream": True}
    with (
        stoppable(shutdown_grace_s=0.0) as (service, client),
        client.stream("POST", "/v1/chat/completions", json=body) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        service.stop()
        last = [line for line in lines if line.startswith("data: ")][-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "shutting_down"


def test_a_whole_answer_that_does_not_come_is_told() -> None:
    with stoppable(shutdown_grace_s=0.0) as (service, client):
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(client.post("/v1/structured", json=ask(STRING, "hang"))))
        asking.start()
        wait_until(lambda: len(service.backend.generations) == 1)
        service.stop()
        asking.join()
    assert answers[0].status_code == 503
    assert answers[0].json()["error"]["code"] == "shutting_down"


def test_what_is_new_is_refused() -> None:
    app = create_app(Settings(), SyntheticBackend())
    with serving(app) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        assert client.get("/readyz").status_code == 200
        app.state.service.is_draining = True
        for path, body in (("/v1/structured", ask(STRING)), ("/v1/responses", {"input": "x"})):
            answer = client.post(path, json=body)
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "shutting_down"
            assert answer.headers["retry-after"] == "1"
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of its own authority."""
    if shutil.which("openssl") is None:
        pytest.fail("there is no openssl") if IN_CI else pytest.skip("there is no openssl")
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_tls(certificate: Path) -> None:
    files = {"tls_certificate": certificate / "cert.pem", "tls_key": certificate / "key.pem"}
    with stoppable(**files) as (service, _):
        context = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
        answer = httpx.post(f"https://{service.address}/v1/structured", json=ask(STRING), verify=context, timeout=DEADLINE_S)
        assert answer.status_code == 200
        with Client(f"https://{service.address}", transport=httpx.HTTPTransport(verify=context)) as client:
            for via in ("sse", "lines", "websocket"):
                with client.stream(STRING, prompt="hello", via=via) as stream:
                    assert stream.final()
