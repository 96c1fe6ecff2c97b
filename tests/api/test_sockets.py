"""The WebSocket: the whole protocol on one connection, and every message that cannot be honoured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from api.settings import Settings
from constrained.stream import Fold, Snapshot, from_wire
from schemas.events import EVENTS
from schemas.socket import EventLine, Reply
from tests.api.examples import example
from tests.api.server import DEADLINE_S, Served, ask, served, stream_events, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.api.test_steering import DOCUMENT, SCHEMA


class Talk:
    """A client that checks each message by the wire's models."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[EventLine] = []

    def say(self, **message: Any) -> Reply:
        return self.send(json.dumps(message))

    def send(self, message: str | bytes) -> Reply:
        self.socket.send(message)
        while True:
            told = self.hear()
            if isinstance(told, Reply):
                return told

    def hear(self) -> Reply | EventLine:
        data = json.loads(self.socket.recv(timeout=DEADLINE_S))
        if "reply" in data:
            return Reply.model_validate(data)
        EVENTS[data["event"]].model_validate(data["data"])
        event = EventLine.model_construct(**data)
        self.events.append(event)
        return event

    def until(self, *names: str, run: str = "") -> EventLine:
        while True:
            event = self.hear()
            if isinstance(event, EventLine) and event.event in names and event.id.startswith(run):
                return event

    def fold(self, run: str = "", choice: int = 0) -> Fold:
        fold = Fold()
        for event in self.events:
            data: Any = event.data
            if not event.id.startswith(run) or data.get("choice", choice) != choice:
                continue
            if event.event == "snapshot":
                fold = Fold.restore(Snapshot.from_wire(data))
            elif event.event == "delta":
                for op in data["ops"]:
                    fold.apply(from_wire(op))
        return fold


@contextmanager
def talking(service: Served) -> Iterator[Talk]:
    with connected(service) as socket:
        yield Talk(socket)


def connected(service: Served, **options: Any) -> ClientConnection:
    address = service.url.replace("http", "ws") + "/v1/structured/ws"
    return connect(address, max_size=None, open_timeout=DEADLINE_S, **options)


@pytest.fixture
def talk(service: Served) -> Iterator[Talk]:
    with talking(service) as talk:
        yield talk


def test_a_run_over_the_socket_has_the_events_of_any_other(service: Served, talk: Talk) -> None:
    reply = talk.say(op="start", id="mine", request=ask(SCHEMA))
    assert (reply.reply, reply.id, reply.error) == ("start", "mine", None)
    done: Any = talk.until("done").data
    assert done["valid"] is True
    assert talk.events[0].event == "start"
    assert all(event.id.startswith(f"{reply.run}:") for event in talk.events)
    assert talk.fold().value == example(SCHEMA)


def test_several_runs_share_a_connection(talk: Talk) -> None:
    runs = [talk.say(op="start", request=ask({"type": "string"})).run for _ in range(3)]
    finished = {event.id.partition(":")[0] for event in talk.events if event.event == "done"}
    while finished != set(runs):
        finished.add(talk.until("done").id.partition(":")[0])
    assert len({str(talk.fold(str(run)).value) for run in runs}) == 1


def test_steer_edit_and_cancel_on_one_connection() -> None:
    with served(SyntheticBackend(compact(DOCUMENT))) as service, talking(service) as talk:
        run = talk.say(op="start", request=ask(SCHEMA, "hang", coalesce_ms=0)).run
        while talk.fold().status.get("/point/x") != "complete":
            talk.hear()
        edited = talk.say(op="edit", path="/name", value="Grace")
        assert (edited.reply, edited.run, edited.error) == ("edit", run, None)
        refused = talk.say(op="edit", path="/name", value=5, id="e2")
        assert (refused.reply, refused.id, refused.error and refused.error.code) == ("edit", "e2", "invalid_value")
        assert talk.say(op="steer", text="and hang").error is None
        assert talk.say(op="cancel").status == "cancelled"
        done: Any = talk.until("done").data
        assert done["finish_reason"] == "cancelled"
        assert talk.fold().value["name"] == "Grace"
        assert talk.say(op="cancel").status == "finished"
        assert (talk.say(op="steer", text="x").error or edited.error).code == "run_ended"  # type: ignore[union-attr]


def test_a_run_is_joined_and_resumed(service: Served, talk: Talk) -> None:
    events = stream_events(service.client, ask(SCHEMA, coalesce_ms=0))
    run = events[0].data["run"]
    assert talk.say(op="join", run=run).error is None
    talk.until("done")
    assert [event.event for event in talk.events] == ["start", "snapshot", "done"]
    talk.events.clear()
    assert talk.say(op="join", run=run, after=events[3].data["seq"]).error is None
    talk.until("done")
    assert [event.data for event in talk.events] == [event.data for event in events[4:]]


@pytest.mark.parametrize(
    ("message", "code", "what"),
    [
        ("", "invalid_json", "not JSON"),
        ("{", "invalid_json", "not JSON"),
        ("[1]", "invalid_json", "object"),
        ('"start"', "invalid_json", "object"),
        ('{"op":NaN}', "invalid_json", "NaN"),
        ('{"op":"\\ud800"}', "invalid_json", "surrogate"),
        ("[" * 100_000, "invalid_json", "nested"),
        (b"{}", "invalid_json", "binary"),
        (b"\xff\xfe", "invalid_json", "binary"),
        ("{}", "invalid_request", "op"),
        ('{"op":"dance"}', "invalid_request", "op"),
        ('{"op":5}', "invalid_request", "op"),
        ('{"op":"start"}', "invalid_request", "request"),
        ('{"op":"start","request":{"schema":true}}', "invalid_request", "prompt"),
        ('{"op":"start","request":{"schema":{"type":"nothing"},"prompt":"x"}}', "invalid_schema", "nothing"),
        ('{"op":"cancel","extra":1}', "invalid_request", "extra"),
        ('{"op":"cancel"}', "invalid_request", "no run"),
        ('{"op":"steer","text":"","run":"run_1"}', "invalid_request", "text"),
        ('{"op":"edit","path":"/a","run":"run_1"}', "invalid_request", "value"),
        ('{"op":"join","run":"run_of_nobody"}', "run_not_found", "run_of_nobody"),
        ('{"op":"join","run":"run_of_nobody","after":-1}', "invalid_request", "after"),
    ],
)
def test_a_message_that_cannot_be_honoured_is_refused_and_the_connection_goes_on(
    talk: Talk, message: str | bytes, code: str, what: str
) -> None:
    reply = talk.send(message)
    assert reply.error is not None
    assert (reply.error.code, what in reply.error.message) == (code, True), reply.error
    assert talk.say(op="start", request=ask({"type": "null"})).error is None
    talk.until("done")


def test_a_place_in_the_future_is_refused(service: Served, talk: Talk) -> None:
    run = stream_events(service.client, ask({"type": "null"}))[0].data["run"]
    reply = talk.say(op="join", run=run, after=10_000)
    assert reply.error is not None
    assert reply.error.code == "invalid_event_id"


def test_behind_the_last_event_there_is_nothing_to_join(service: Served, talk: Talk) -> None:
    events = stream_events(service.client, ask({"type": "null"}))
    reply = talk.say(op="join", run=events[0].data["run"], after=events[-1].data["seq"])
    assert reply.error is not None
    assert reply.error.code == "run_ended"


def test_a_message_over_the_limit_is_refused() -> None:
    with served(SyntheticBackend(), Settings(max_body_bytes=1000)) as service, talking(service) as talk:
        reply = talk.say(op="start", request=ask({"type": "string"}, "x" * 1000))
        assert reply.error is not None
        assert reply.error.code == "body_too_large"


@pytest.mark.parametrize("resumable", [False, True])
def test_runs_that_are_not_resumable_end_with_the_connection(resumable: bool) -> None:
    with served(SyntheticBackend()) as service:
        with talking(service) as talk:
            talk.say(op="start", request=ask({"type": "string"}, "hang", resumable=resumable))
            talk.until("delta")
        (generation,) = service.backend.generations
        if resumable:
            run = talk.events[0].id.partition(":")[0]
            assert service.client.post(f"/v1/structured/{run}/cancel").json()["status"] == "cancelled"
        wait_until(generation.cancelled.is_set)
        wait_until(lambda: service.metric("constrained_running_sequences") == 0)


def test_a_client_that_takes_nothing_is_closed_and_the_others_are_not_slowed() -> None:
    text = compact("x" * 300_000)
    with (
        served(SyntheticBackend(text, token_bytes=4096), Settings(stall_timeout_s=0.3)) as service,
        talking(service) as other,
        connected(service, max_queue=1, compression=None) as frozen,
    ):
        for _ in range(60):
            frozen.send(json.dumps({"op": "start", "request": ask({"type": "string"}, max_tokens=4000)}))
        other.say(op="start", request=ask({"type": "string"}))
        assert other.until("done").event == "done"
        wait_until(lambda: service.metric("constrained_slow_readers_total") == 1)
        assert drained(frozen) < 60 * len(text)


def drained(socket: ClientConnection) -> int:
    """Reads to the end of a connection that the other side closes; the number of characters."""
    num_chars = 0
    try:
        while True:
            num_chars += len(socket.recv(timeout=DEADLINE_S))
    except ConnectionClosed:
        return num_chars
