"""Steering and editing live runs: what goes on, what the model is shown, what readers are told, and every refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from constrained.stream import Fold, Snapshot, from_wire
from tests.api.server import DEADLINE_S, Sent, Served, ask, read_events, served, wait_until
from tests.api.synthetic import SyntheticBackend, compact

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "size": {"enum": ["small", "large"]},
        "point": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]},
        "text": {"type": "string"},
    },
    "required": ["name", "size", "point", "text"],
    "additionalProperties": False,
}
DOCUMENT = {"name": "Ada", "size": "small", "point": {"x": 1, "y": 2}, "text": "one two three four five six"}
LATE = {**DOCUMENT, "text": "one two three " * 8}
HALF = '{"name":"Ada","size":"small","point":{"x":1,"y":2},"text":"'


class Reading:
    """A run that hangs in the middle of its document, and what its reader has got."""

    def __init__(self, service: Served, events: Iterator[Sent]) -> None:
        self.service = service
        self.events = events
        self.fold = Fold()
        self.got: list[Sent] = []
        self.run = self.next().data["run"]

    def next(self) -> Sent:
        event = next(self.events)
        self.got.append(event)
        if event.name == "snapshot":
            self.fold = Fold.restore(Snapshot.from_wire(event.data))
        elif event.name == "delta":
            for op in event.data["ops"]:
                self.fold.apply(from_wire(op))
        return event

    def until(self, path: str, status: str) -> None:
        while self.fold.status.get(path) != status:
            self.next()

    def rest(self) -> Sent:
        while self.got[-1].name not in ("done", "error"):
            self.next()
        return self.got[-1]

    def post(self, op: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.service.url}/v1/structured/{self.run}/{op}", json=body, timeout=DEADLINE_S)


@contextmanager
def hanging(text: str = compact(DOCUMENT), token_bytes: int = 3, schema: Any = SCHEMA, **fields: Any) -> Iterator[Reading]:
    """A run that hangs in the middle of `text`."""
    body = ask(schema, "please hang", coalesce_ms=0, **fields)
    with (
        served(SyntheticBackend(text, token_bytes=token_bytes)) as service,
        service.client.stream("POST", "/v1/structured/stream", json=body) as answer,
    ):
        yield Reading(service, read_events(answer.iter_lines()))


def test_a_steered_run_goes_on_from_where_it_is() -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        answer = reading.post("steer", text="be brief")
        assert answer.json() == {"run": reading.run, "seq": answer.json()["seq"]}
        done = reading.rest()
        assert (done.data["finish_reason"], done.data["valid"]) == ("stop", True)
        assert reading.fold.value == DOCUMENT
        assert [event.name for event in reading.got].count("start") == 1
        backend = reading.service.backend
        assert backend.prompts[-1] == f"{compact(SCHEMA)}\nplease hang\nbe brief"
        prefix = backend.prefixes[-1]
        assert compact(DOCUMENT).encode().startswith(prefix)
        assert len(prefix) >= len(HALF) // 2


def test_the_usage_of_a_steered_run_counts_all_its_sequences() -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        reading.post("steer", text="go on")
        usage = reading.rest().data["usage"]
        num_tokens = sum(generation.num_given for generation in reading.service.backend.generations)
        assert usage["completion_tokens"] == num_tokens
        first, second = reading.service.backend.params
        assert second.max_tokens == first.max_tokens - reading.service.backend.generations[0].num_given


def test_steering_twice_keeps_what_was_said() -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        reading.post("steer", text="then hang")
        wait_until(lambda: len(reading.service.backend.generations) == 2)
        reading.post("steer", text="now end")
        assert reading.rest().data["valid"] is True
        assert reading.service.backend.prompts[-1].endswith("please hang\nthen hang\nnow end")


def test_a_plain_prompt_is_steered_too() -> None:
    with (
        served(SyntheticBackend(compact(DOCUMENT))) as service,
        service.client.stream(
            "POST",
            "/v1/structured/stream",
            json={"schema": SCHEMA, "prompt": "hang", "coalesce_ms": 0, "schema_in_prompt": False},
        ) as answer,
    ):
        reading = Reading(service, read_events(answer.iter_lines()))
        reading.until("/point/x", "complete")
        reading.post("steer", text="end")
        assert reading.rest().data["valid"] is True
        assert service.backend.prompts[-1] == "hang\n\nend"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/name", 'Grace "H" \u2028'),
        ("/size", "large"),
        ("/point/x", -7),
    ],
)
def test_an_edit_replaces_a_closed_value_and_every_reader_learns_of_it(path: str, value: Any) -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        with httpx.stream("GET", f"{reading.service.url}/v1/structured/{reading.run}/events", timeout=DEADLINE_S) as joined:
            other = Reading(reading.service, read_events(joined.iter_lines()))
            other.next()
            seq = reading.post("edit", path=path, value=value).json()["seq"]
            told = reading.next()
            while told.name != "snapshot":
                told = reading.next()
            assert (told.data["seq"], told.data["edited"]) == (seq, path)
            reading.post("steer", text="end")
            assert reading.rest().data["valid"] is True
            assert other.rest().data["valid"] is True
        assert reading.fold.at(path) == value
        assert other.fold.value == reading.fold.value
        assert list(reading.fold.value) == list(SCHEMA["properties"])  # type: ignore[call-overload]


def test_an_edited_object_is_written_in_the_order_of_its_schema() -> None:
    with hanging(compact(LATE)) as reading:
        reading.until("/text", "streaming")
        assert reading.post("edit", path="/point", value={"y": 9, "x": 8}).status_code == 200
        reading.post("steer", text="end")
        reading.rest()
        assert b'"point":{"x":8,"y":9}' in reading.service.backend.prefixes[-1]
        assert reading.fold.value["point"] == {"x": 8, "y": 9}


def test_an_edit_keeps_the_layout() -> None:
    with hanging(json.dumps(LATE, indent=2), whitespace="indented") as reading:
        reading.until("/text", "streaming")
        assert reading.post("edit", path="/point", value={"y": 9, "x": 8}).status_code == 200
        reading.post("steer", text="end")
        assert reading.rest().data["valid"] is True
        expected = json.dumps({**LATE, "point": {"x": 8, "y": 9}}, indent=2).encode()
        assert expected.startswith(reading.service.backend.prefixes[-1])


@pytest.mark.parametrize(
    ("body", "status", "code", "what"),
    [
        ({"path": "/point/y", "value": 5}, 400, "path_open", "'/point/y' is next"),
        ({"path": "/text", "value": "x"}, 400, "unknown_path", "/text"),
        ({"path": "", "value": DOCUMENT}, 400, "path_open", "streaming"),
        ({"path": "/point", "value": {"x": 1, "y": 1}}, 400, "path_open", "streaming"),
        ({"path": "/nothing", "value": "x"}, 400, "unknown_path", "/nothing"),
        ({"path": "name", "value": "x"}, 400, "unknown_path", "JSON Pointer"),
        ({"path": "/name", "value": 5}, 400, "invalid_value", "not of type 'string'"),
        ({"path": "/name", "value": "x" * 21}, 400, "invalid_value", "too long"),
        ({"path": "/size", "value": "huge"}, 400, "invalid_value", "'huge'"),
        ({"path": "/name", "value": "x", "choice": 3}, 400, "invalid_request", "choice"),
        ({"path": "/name"}, 400, "invalid_request", "value"),
        ({"path": 5, "value": 1}, 400, "invalid_request", "path"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused_and_changes_nothing(
    body: dict[str, Any], status: int, code: str, what: str
) -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        answer = reading.post("edit", **body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code)
        assert what in error["message"]
        if code in ("path_open", "unknown_path", "invalid_value"):
            assert error["param"] == (body["path"] or error["param"])
        assert len(reading.service.backend.generations) == 1
        assert not reading.service.backend.generations[0].cancelled.is_set()


@pytest.mark.parametrize("op", ["steer", "edit"])
def test_a_run_that_has_ended_can_neither_be_steered_nor_edited(op: str) -> None:
    with hanging() as reading:
        reading.until("/point/x", "complete")
        reading.post("cancel")
        reading.rest()
        body = {"text": "x"} if op == "steer" else {"path": "/name", "value": "x"}
        answer = reading.post(op, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "run_ended")
        assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("op", ["steer", "edit", "cancel"])
def test_an_unknown_run_cannot_be_told_anything(op: str) -> None:
    with hanging() as reading:
        reading.run = "run_of_nobody"
        answer = reading.post(op, **({} if op == "cancel" else {"text": "x"} if op == "steer" else {"path": "", "value": 1}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "run_not_found")


def test_one_choice_can_be_steered_alone() -> None:
    with hanging(n=2) as reading:
        while not all(generation.num_given for generation in reading.service.backend.generations):
            reading.next()
        assert reading.post("steer", text="end", choice=1).status_code == 200
        assert len(reading.service.backend.generations) == 3
        assert [generation.cancelled.is_set() for generation in reading.service.backend.generations] == [False, True, False]
        assert reading.post("steer", text="end", choice=2).status_code == 400
        reading.post("cancel")
        assert reading.events is not None
        *_, done = reading.events
        assert done.data["finish_reasons"] == ["cancelled", "stop"]


def test_a_template_that_takes_no_second_user_turn_gets_it_inside_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrained.errors import RequestError

    with hanging() as reading:
        backend = reading.service.backend
        encode = backend.encode

        def alternating(prompt: Any, schema: Any, prefix: bytes = b"", template: Any = None) -> list[int]:
            if len(prompt) > 1:
                raise RequestError("roles must alternate", "messages")
            return encode(prompt, schema, prefix, template)

        monkeypatch.setattr(backend, "encode", alternating)
        reading.until("/point/x", "complete")
        assert reading.post("steer", text="end").status_code == 200
        assert backend.prompts[-1].endswith("please hang\n\nend")
        assert reading.rest().data["valid"] is True
