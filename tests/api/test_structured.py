"""`POST /v1/structured`: the same run as one answer; and the cancel call."""

from __future__ import annotations

import socket
import threading
from typing import Any

import httpx
import pytest

from schemas.requests import StructuredResponse
from tests.api.examples import example
from tests.api.server import DEADLINE_S, Served, ask, read_events, served, wait_until
from tests.api.synthetic import SyntheticBackend, compact

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}


def test_the_answer_holds_text_value_and_verdict(service: Served) -> None:
    answer = service.client.post("/v1/structured", json=ask(POINT))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store, no-transform"
    parsed = StructuredResponse.model_validate_json(answer.content)
    (choice,) = parsed.choices
    assert choice.value == example(POINT)
    assert choice.text == compact(example(POINT))
    assert (choice.finish_reason, choice.valid) == ("stop", True)
    assert parsed.model == "synthetic"


def test_choices_have_their_own_documents() -> None:
    with served(SyntheticBackend("1", "2", "3")) as service:
        answer = service.client.post("/v1/structured", json=ask({"type": "integer"}, n=3)).json()
    assert [(choice["index"], choice["value"]) for choice in answer["choices"]] == [(0, 1), (1, 2), (2, 3)]


def test_no_number_is_rewritten_on_its_way_into_the_value() -> None:
    with served(SyntheticBackend("[1.10, 1e400,12345678901234567890123]")) as service:
        answer = service.client.post("/v1/structured", json=ask({"type": "array", "items": {"type": "number"}}))
    assert '"value":[1.10, 1e400,12345678901234567890123]}' in answer.text


def test_a_cut_document_has_no_value(service: Served) -> None:
    choice = service.client.post("/v1/structured", json=ask({"type": "string"}, max_tokens=3)).json()["choices"][0]
    assert choice == {"index": 0, "text": '"Ada \\"Lo', "value": None, "finish_reason": "length", "valid": False}


def test_a_failed_step_is_an_answer_with_the_one_body(service: Served) -> None:
    answer = service.client.post("/v1/structured", json=ask({"type": "string"}, "fail"))
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "the step broke" not in answer.text


def test_cancel_stops_a_run_and_may_be_repeated(service: Served) -> None:
    with service.client.stream("POST", "/v1/structured/stream", json=ask({"type": "string"}, "hang")) as answer:
        events = read_events(answer.iter_lines())
        run = next(events).data["run"]
        with httpx.Client(base_url=service.url, timeout=DEADLINE_S) as other:
            first = other.post(f"/v1/structured/{run}/cancel")
        assert first.json() == {"run": run, "status": "cancelled"}
        done = list(events)[-1]
    assert done.name == "done"
    assert (done.data["finish_reason"], done.data["status"], done.data["valid"]) == ("cancelled", "incomplete", False)
    wait_until(lambda: cancelled(service, run).json() == {"run": run, "status": "finished"})
    assert cancelled(service, run).status_code == 200


def test_cancel_of_an_unknown_run_is_not_found(service: Served) -> None:
    answer = cancelled(service, "run_of_nobody")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "message": "No run 'run_of_nobody' is known here",
        "type": "invalid_request_error",
        "param": "run",
        "code": "run_not_found",
    }


def cancelled(service: Served, run: str) -> httpx.Response:
    return service.client.post(f"/v1/structured/{run}/cancel")


def test_a_reader_that_leaves_stops_the_generation() -> None:
    with served(SyntheticBackend(compact("x" * 3000))) as service:
        with service.client.stream("POST", "/v1/structured/stream", json=ask({"type": "string"}, "slow")) as answer:
            events = read_events(answer.iter_lines())
            assert next(events).name == "start"
            assert next(events).name == "delta"
        (generation,) = service.backend.generations
        wait_until(generation.cancelled.is_set)
        wait_until(lambda: service.metric("constrained_running_sequences") == 0)
        assert generation.num_given < 1000
        assert service.metric('constrained_finished_sequences_total{finish_reason="cancelled"}') == 1
        assert service.client.post("/v1/structured", json=ask({"type": "string"})).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "num_choices"),
    [
        ("/v1/structured", ask({"type": "string"}, "hang"), 1),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hang"}], "n": 2}, 2),
    ],
)
def test_a_caller_of_the_whole_answer_who_leaves_stops_the_generation(
    path: str, body: dict[str, Any], num_choices: int
) -> None:
    with served(SyntheticBackend()) as service:
        generations = service.backend.generations
        with socket.create_connection((service.client.base_url.host, service.client.base_url.port or 0)) as connection:
            data = compact(body).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
            connection.sendall(head.encode() + data)
            wait_until(lambda: len(generations) == num_choices)
        wait_until(lambda: all(generation.cancelled.is_set() for generation in generations))
        wait_until(lambda: service.metric("constrained_running_sequences") == 0)
        wait_until(lambda: service.metric("constrained_waiting_sequences") == 0)


def test_one_failing_request_leaves_the_others_alone() -> None:
    with served(SyntheticBackend(compact("y" * 60))) as service:
        answers: dict[str, list[Any]] = {}

        def run(name: str) -> None:
            with (
                httpx.Client(base_url=service.url, timeout=DEADLINE_S) as client,
                client.stream("POST", "/v1/structured/stream", json=ask({"type": "string"}, name)) as answer,
            ):
                answers[name] = list(read_events(answer.iter_lines()))

        threads = [threading.Thread(target=run, args=(name,)) for name in ("slow", "fail", "well")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [events[-1].name for events in (answers["slow"], answers["fail"], answers["well"])] == ["done", "error", "done"]
    error = answers["fail"][-1].data
    assert error["code"] == "internal_error"
    assert error["path"] == ""
    assert error["retriable"] is False
    assert "the step broke" not in error["message"]
    assert error["seq"] == answers["fail"][-2].data["seq"] + 1
    assert [event.name for event in answers["fail"]].count("error") == 1


def test_one_failing_choice_ends_its_run_and_stops_the_other_choices() -> None:
    with served(SyntheticBackend('"a"', compact("b" * 3000))) as service:
        with service.client.stream("POST", "/v1/structured/stream", json=ask({"type": "string"}, "fail", n=2)) as answer:
            events = list(read_events(answer.iter_lines()))
        assert events[-1].name == "error"
        wait_until(lambda: service.metric("constrained_running_sequences") == 0)
        assert all(generation.cancelled.is_set() for generation in service.backend.generations)


def test_the_service_ends_its_runs_when_it_stops() -> None:
    backend = SyntheticBackend()
    with served(backend) as service:
        thread = threading.Thread(
            target=lambda: httpx.post(f"{service.url}/v1/structured", json=ask({"type": "string"}, "hang"), timeout=DEADLINE_S)
        )
        thread.start()
        wait_until(lambda: bool(backend.generations))
    thread.join()
    assert backend.closed
    assert backend.generations[0].cancelled.is_set()
