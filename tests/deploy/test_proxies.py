"""The proxy configurations of `deploy/`, run for real: what comes is passed on at once, and a caller that goes is noticed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.settings import Settings
from constrained.client import Client
from tests.api.server import DEADLINE_S, Served, ask, read_events, served, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.conftest import IN_CI
from tests.ports import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
STRING = {"type": "string"}
TEMP_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
Command = Callable[[Path, str, int], list[str]]


def nginx(folder: Path, backend: str, port: int) -> list[str]:
    """The command that runs nginx by the file of `deploy/`, on other ports and in a folder of its own."""
    text = (
        (DEPLOY / "nginx.conf").read_text("utf-8").replace("127.0.0.1:8000", backend).replace("listen 8080", f"listen {port}")
    )
    paths = "".join(f"    {name}_temp_path {folder}/{name};\n" for name in TEMP_PATHS)
    config = folder / "nginx.conf"
    config.write_text(text.replace("http {\n", f"http {{\n{paths}", 1), "utf-8")
    return ["nginx", "-p", str(folder), "-c", str(config), "-e", "stderr", "-g", f"daemon off; pid {folder}/nginx.pid;"]


def caddy(folder: Path, backend: str, port: int) -> list[str]:
    """The same for Caddy."""
    text = (DEPLOY / "Caddyfile").read_text("utf-8").replace("127.0.0.1:8000", backend).replace(":8080 {", f":{port} {{")
    config = folder / "Caddyfile"
    config.write_text(f"{{\n\tadmin off\n\tstorage file_system {folder}\n}}\n{text}", "utf-8")
    return ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service, and a client that reaches it through a proxy."""
    make: Command = request.param
    name = request.param.__name__
    if shutil.which(name) is None:
        why = f"there is no {name}; install Debian's package"
        pytest.fail(why) if IN_CI and name == "nginx" else pytest.skip(why)
    folder = tmp_path_factory.mktemp(name)
    port = free_port()
    with served(SyntheticBackend(), Settings(heartbeat_s=0.05)) as service, (folder / "log").open("wb") as log:
        command = make(folder, service.url.removeprefix("http://"), port)
        proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE_S) as client:
                wait_until(lambda: answers(client, proxy))
                yield Served(str(client.base_url), service.backend, client)
        finally:
            proxy.terminate()
            proxy.wait()


def answers(client: httpx.Client, proxy: subprocess.Popen[bytes]) -> bool:
    assert proxy.poll() is None, "the proxy has ended"
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_events_come_while_the_generation_goes_on(proxied: Served) -> None:
    with proxied.client.stream("POST", "/v1/structured/stream", json=ask(STRING, "hang")) as stream:
        events = read_events(stream.iter_lines())
        assert next(events).name == "start"
        assert not proxied.backend.generations[-1].cancelled.is_set()
    wait_until(proxied.backend.generations[-1].cancelled.is_set)


def test_a_stream_is_whole(proxied: Served) -> None:
    with proxied.client.stream("POST", "/v1/structured/stream", json=ask(STRING)) as stream:
        events = list(read_events(stream.iter_lines()))
    assert (events[0].name, events[-1].name) == ("start", "done")
    body = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
    with proxied.client.stream("POST", "/v1/chat/completions", json=body) as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-encoding" not in stream.headers
        assert stream.read().endswith(b"data: [DONE]\n\n")


def test_heartbeats_pass(proxied: Served) -> None:
    with proxied.client.stream("POST", "/v1/structured/stream", json=ask(STRING, "hang")) as stream:
        assert ": ping" in stream.iter_lines()


def test_errors_pass_as_they_are(proxied: Served) -> None:
    answer = proxied.client.post("/v1/structured", json=ask({"type": "strong"}))
    assert answer.status_code == 400
    assert json.loads(answer.text)["error"]["param"] == "/type"
    assert answer.headers["x-request-id"]


def test_the_metrics_stay_inside(proxied: Served) -> None:
    assert proxied.client.get("/metrics").status_code in (403, 404)


def test_a_body_over_the_limit(proxied: Served) -> None:
    answer = proxied.client.post("/v1/structured", json=ask(STRING, "x" * 3_000_000))
    assert answer.status_code == 413


@pytest.mark.parametrize("via", ["sse", "lines", "websocket"])
def test_our_client_goes_through_by_every_way(proxied: Served, via: Any) -> None:
    with Client(proxied.url, via=via) as client, client.stream(STRING, prompt="hang") as stream:
        assert next(iter(stream.text("")))
    wait_until(proxied.backend.generations[-1].cancelled.is_set)
    with Client(proxied.url, via=via) as client, client.stream(STRING, prompt="hello") as stream:
        assert stream.final() == "".join(stream.text(""))
