"""API keys, limits and CORS at the live service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from api.keys import digest_of, entry_text, load_keys, new_key
from api.limits import Limiter
from api.settings import Settings
from constrained.errors import OptionError
from tests.api.server import DEADLINE_S, Served, ask, read_events, served, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.api.test_bad_input import refused

STRING = {"type": "string"}
PATH = "/v1/structured"
GOOD, SLOW = new_key(), new_key()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with two keys, the second with limits of its own."""
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(entry_text("web", GOOD) + entry_text("batch", SLOW) + "concurrent_requests = 1\n", "utf-8")
    with served(SyntheticBackend(), Settings(api_keys=file, cors_origins=("https://app.example",))) as running:
        yield running


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_a_key_lets_in(guarded: Served) -> None:
    for headers in (bearer(GOOD), {"authorization": f"bearer  {GOOD}"}, {"x-api-key": GOOD}):
        assert guarded.client.post(PATH, json=ask(STRING), headers=headers).status_code == 200


@pytest.mark.parametrize("path", [PATH, "/v1/chat/completions", "/v1/responses", "/v1/schemas/check", "/v1/no-such-route"])
@pytest.mark.parametrize(
    "headers", [{}, bearer("x"), {"authorization": "Bearer"}, {"authorization": f"Basic {GOOD}"}, bearer(GOOD[:-1])]
)
def test_nobody_else_is_let_in(guarded: Served, path: str, headers: dict[str, str]) -> None:
    answer = guarded.client.post(path, content=b"{", headers=headers)
    error = refused(answer, 401)
    assert (error["code"], error["param"]) == ("invalid_api_key", "authorization")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert GOOD not in answer.text


def test_a_run_is_known_to_its_own_key_alone(guarded: Served) -> None:
    body = ask(STRING, "hang", resumable=True)
    with guarded.client.stream("POST", f"{PATH}/stream", json=body, headers=bearer(GOOD)) as answer:
        run = next(read_events(answer.iter_lines())).data["run"]
        theirs = [
            guarded.client.get(f"{PATH}/{run}/events", headers=bearer(SLOW)),
            guarded.client.post(f"{PATH}/{run}/cancel", headers=bearer(SLOW)),
            guarded.client.post(f"{PATH}/{run}/steer", json={"text": "x"}, headers=bearer(SLOW)),
            guarded.client.post(f"{PATH}/{run}/edit", json={"path": "", "value": "x"}, headers=bearer(SLOW)),
        ]
        assert [refused(each, 404)["code"] for each in theirs] == ["run_not_found"] * 4
        address = f"{guarded.url.replace('http', 'ws')}{PATH}/ws"
        with connect(address, additional_headers=bearer(SLOW), open_timeout=DEADLINE_S) as socket:
            for message in ({"op": "join", "run": run}, {"op": "cancel", "run": run}):
                socket.send(json.dumps(message))
                assert json.loads(socket.recv())["error"]["code"] == "run_not_found"
        assert guarded.client.post(f"{PATH}/{run}/cancel", headers=bearer(GOOD)).json()["status"] == "cancelled"
    wait_until(lambda: guarded.client.get(f"{PATH}/{run}/events", headers=bearer(GOOD)).text.endswith("}\n\n"))
    assert refused(guarded.client.get(f"{PATH}/{run}/events", headers=bearer(SLOW)), 404)["code"] == "run_not_found"


def test_what_needs_no_key(guarded: Served) -> None:
    for path in ("/healthz", "/readyz", "/", "/docs"):
        assert guarded.client.get(path).status_code == 200
    assert guarded.client.get("/metrics").status_code == 401
    assert guarded.client.get("/metrics", headers=bearer(GOOD)).status_code == 200


def test_so_many_requests_at_once(guarded: Served) -> None:
    with guarded.client.stream("POST", f"{PATH}/stream", json=ask(STRING, "hang"), headers=bearer(SLOW)) as stream:
        lines = stream.iter_lines()
        next(lines)
        answer = guarded.client.post(PATH, json=ask(STRING), headers=bearer(SLOW))
        assert answer.status_code == 429
        assert answer.json()["error"]["code"] == "rate_limit_exceeded"
        assert answer.json()["error"]["type"] == "rate_limit_error"
        assert int(answer.headers["retry-after"]) >= 1
        assert "x-should-retry" not in answer.headers
        assert guarded.client.get("/v1/models", headers=bearer(SLOW)).status_code == 200
        assert guarded.client.post(PATH, json=ask(STRING), headers=bearer(GOOD)).status_code == 200
    wait_until(lambda: guarded.client.post(PATH, json=ask(STRING), headers=bearer(SLOW)).status_code == 200)


def test_what_goes_on_in_the_background_counts(guarded: Served) -> None:
    def post(path: str, **body: Any) -> httpx.Response:
        return guarded.client.post(path, json=body or None, headers=bearer(SLOW))

    made = post("/v1/responses", input="hang", background=True)
    assert made.status_code == 200
    assert post("/v1/responses", input="hello").status_code == 429
    assert post(f"/v1/responses/{made.json()['id']}/cancel").json()["status"] == "cancelled"
    wait_until(lambda: post("/v1/responses", input="hello").status_code == 200)


def test_so_many_requests_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.access.Limiter", lambda: Limiter(clock=lambda: 0.0))
    with served(SyntheticBackend(), Settings(requests_per_minute=2)) as service:
        first, second, third = (service.client.post(PATH, json=ask(STRING)) for _ in range(3))
        assert service.client.get("/v1/models").status_code == 200
    assert (first.headers["x-ratelimit-limit-requests"], first.headers["x-ratelimit-remaining-requests"]) == ("2", "1")
    assert (second.status_code, third.status_code) == (200, 429)
    assert third.headers["retry-after"] == "30"


def test_other_origins(guarded: Served) -> None:
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    preflight = guarded.client.options(PATH, headers={**asked, "access-control-request-headers": "authorization"})
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    refusal = guarded.client.post(PATH, json=ask(STRING), headers={"origin": "https://app.example"})
    assert (refusal.status_code, refusal.headers["access-control-allow-origin"]) == (401, "https://app.example")
    stranger = guarded.client.post(PATH, json=ask(STRING), headers={**bearer(GOOD), "origin": "https://other.example"})
    assert "access-control-allow-origin" not in stranger.headers


def test_without_origins_there_is_no_cors(service: Served) -> None:
    answer = service.client.post(PATH, json=ask(STRING), headers={"origin": "https://app.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_keys_are_kept_as_hashes(tmp_path: Path) -> None:
    key = new_key()
    file = tmp_path / "keys.toml"
    file.write_text(entry_text('a "b" \\', key), "utf-8")
    assert key not in file.read_text("utf-8")
    keys = load_keys(file)
    found = keys.find(key)
    assert found is not None
    assert (found.name, found.sha256) == ('a "b" \\', digest_of(key))
    assert keys.find(key + "x") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[keys]]",
        '[[keys]]\nname = "a"\nsha256 = "short"',
        f'[[keys]]\nname = ""\nsha256 = "{"0" * 64}"',
        f'[[keys]]\nname = "a"\nsha256 = "{"0" * 64}"\nsecret = "x"',
        f'[[keys]]\nname = "a"\nsha256 = "{"0" * 64}"\n[[keys]]\nname = "a"\nsha256 = "{"1" * 64}"',
        "not toml",
    ],
)
def test_a_file_of_keys_that_is_wrong(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(OptionError) as refusal:
        load_keys(file)
    assert refusal.value.option == "api_keys"


def test_a_file_of_keys_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot read"):
        load_keys(tmp_path / "none.toml")


def test_a_websocket_needs_a_key(guarded: Served) -> None:
    url = guarded.url.replace("http://", "ws://") + "/v1/structured/ws"
    with pytest.raises(InvalidStatus) as refusal, connect(url, open_timeout=DEADLINE_S):
        pass
    assert refusal.value.response.status_code == 401
    assert b"invalid_api_key" in refusal.value.response.body
    with connect(url, additional_headers=bearer(GOOD), open_timeout=DEADLINE_S) as socket:
        socket.send("{")
        assert "invalid_json" in socket.recv()


def test_a_key_sees_its_own_responses_alone(guarded: Served) -> None:
    made = guarded.client.post("/v1/responses", json={"input": "hello"}, headers=bearer(GOOD)).json()
    path = f"/v1/responses/{made['id']}"
    assert guarded.client.get(path, headers=bearer(GOOD)).status_code == 200
    for answer in (
        guarded.client.get(path, headers=bearer(SLOW)),
        guarded.client.delete(path, headers=bearer(SLOW)),
        guarded.client.get(f"{path}/input_items", headers=bearer(SLOW)),
    ):
        assert refused(answer, 404)["code"] == "response_not_found"
    for body in (
        {"input": "more", "previous_response_id": made["id"]},
        {"input": [{"type": "item_reference", "id": made["output"][0]["id"]}]},
    ):
        assert refused(guarded.client.post("/v1/responses", json=body, headers=bearer(SLOW)), 404)
        assert guarded.client.post("/v1/responses", json=body, headers=bearer(GOOD)).status_code == 200
