"""Joining and resuming runs over HTTP, what becomes of a run whose reader leaves, and how long it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

from api.feed import FeedLimits
from api.run_settings import RunSettings
from api.settings import Settings
from constrained.stream import Fold, Snapshot, from_wire
from tests.api.server import DEADLINE_S, Sent, Served, ask, read_events, served, stream_events, wait_until
from tests.api.synthetic import SyntheticBackend, compact

LONG = compact({"items": ["some text"] * 60})
ANY: Any = True


def join(service: Served, run: str, **options: Any) -> httpx.Response:
    return service.client.get(f"/v1/structured/{run}/events", **options)


def events_of(answer: httpx.Response) -> list[Sent]:
    assert answer.status_code == 200, answer.text
    return list(read_events(answer.text.split("\n")[:-1]))


@contextmanager
def reading(service: Served, body: dict[str, Any]) -> Iterator[Iterator[Sent]]:
    with service.client.stream("POST", "/v1/structured/stream", json=body) as answer:
        yield read_events(answer.iter_lines())


def begun(service: Served, body: dict[str, Any], num_events: int = 1) -> tuple[str, list[Sent]]:
    """A run whose reader left after some events; the run, and these."""
    with reading(service, body) as events:
        got = [next(events) for _ in range(num_events)]
    return got[0].data["run"], got


def document(*parts: list[Sent]) -> Any:
    fold = Fold()
    for event in (event for part in parts for event in part):
        if event.name == "snapshot":
            fold = Fold.restore(Snapshot.from_wire(event.data))
        elif event.name == "delta":
            for op in event.data["ops"]:
                fold.apply(from_wire(op))
    return fold.value


def test_a_resumable_run_goes_on_without_its_reader_and_is_resumed_where_it_was_left() -> None:
    with served(SyntheticBackend(LONG, delay_s=0.001)) as service:
        run, got = begun(service, ask(ANY, resumable=True, coalesce_ms=0), 5)
        rest = events_of(join(service, run, headers={"last-event-id": got[-1].id}))
        assert rest[0].name == "delta"
        assert rest[-1].name == "done"
        assert rest[-1].data["finish_reason"] == "stop"
        numbers = [event.data["seq"] for event in [*got[1:], *rest]]
        assert numbers == sorted(set(numbers))
        assert document(got, rest) == json.loads(LONG)


@pytest.mark.parametrize("form", ["{run}:{seq}", "{seq}"])
def test_the_place_may_stand_in_the_address(service: Served, form: str) -> None:
    events = stream_events(service.client, ask({"type": "string"}, coalesce_ms=0))
    run, place = events[0].data["run"], events[2].data["seq"]
    rest = events_of(join(service, run, params={"after": form.format(run=run, seq=place)}))
    assert [event.data for event in rest] == [event.data for event in events[3:]]


def test_the_header_is_newer_than_the_address(service: Served) -> None:
    events = stream_events(service.client, ask({"type": "string"}))
    run = events[0].data["run"]
    rest = events_of(join(service, run, params={"after": 0}, headers={"last-event-id": events[-2].id}))
    assert [event.name for event in rest] == ["done"]


def test_after_the_last_event_there_is_nothing_more(service: Served) -> None:
    events = stream_events(service.client, ask({"type": "string"}))
    answer = join(service, events[0].data["run"], headers={"last-event-id": events[-1].id})
    assert (answer.status_code, answer.content) == (204, b"")


def test_who_joins_a_finished_run_gets_start_document_and_end(service: Served) -> None:
    events = stream_events(service.client, ask({"type": "object", "properties": {"a": {"type": "integer"}}}, n=2))
    joined = events_of(join(service, events[0].data["run"]))
    assert [event.name for event in joined] == ["start", "snapshot", "snapshot", "done"]
    assert joined[0].data == events[0].data
    assert joined[-1].data == events[-1].data
    assert {event.data["choice"]: event.data["value"] for event in joined[1:-1]} == {0: {"a": 37}, 1: {"a": 37}}


def test_json_lines_carry_the_same_events(service: Served) -> None:
    events = stream_events(service.client, ask({"type": "string"}))
    run = events[0].data["run"]
    answer = join(service, run, headers={"accept": "application/x-ndjson"})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    joined = events_of(join(service, run))
    assert lines == [{"event": event.name, "id": event.id, "data": event.data} for event in joined]


def test_where_the_log_was_trimmed_one_snapshot_takes_its_place() -> None:
    settings = Settings(runs=RunSettings(feed=FeedLimits(max_entries=8)))
    with served(SyntheticBackend(LONG), settings) as service:
        run, got = begun(service, ask(ANY, resumable=True, coalesce_ms=0), 3)
        wait_until(lambda: service.metric("constrained_running_sequences") == 0)
        rest = events_of(join(service, run, headers={"last-event-id": got[-1].id}))
        assert [event.name for event in rest] == ["snapshot", "done"]
        assert document(got, rest) == json.loads(LONG)


def test_a_run_that_is_not_resumable_ends_with_the_caller_who_started_it() -> None:
    with served(SyntheticBackend()) as service, httpx.Client(base_url=service.url, timeout=DEADLINE_S) as other:
        starting = reading(service, ask({"type": "string"}, "hang", coalesce_ms=0))
        run = next(starting.__enter__()).data["run"]
        with other.stream("GET", f"/v1/structured/{run}/events") as joined:
            seen = read_events(joined.iter_lines())
            assert next(seen).name == "start"
            starting.__exit__(None, None, None)
            *_, last = seen
    assert (last.name, last.data["finish_reason"]) == ("done", "cancelled")


def test_a_resumable_run_is_stopped_by_the_cancel_call() -> None:
    with served(SyntheticBackend()) as service:
        run, _ = begun(service, ask({"type": "string"}, "hang", resumable=True), 2)
        (generation,) = service.backend.generations
        assert not generation.cancelled.is_set()
        for status in ("cancelled", "finished"):
            assert service.client.post(f"/v1/structured/{run}/cancel").json() == {"run": run, "status": status}
            wait_until(lambda: service.metric("constrained_running_sequences") == 0)
        assert events_of(join(service, run))[-1].data["finish_reason"] == "cancelled"


def test_a_resumable_run_is_stopped_by_its_time_limit() -> None:
    with served(SyntheticBackend(), Settings(runs=RunSettings(time_limit_s=0.05))) as service:
        run, _ = begun(service, ask({"type": "string"}, "hang", resumable=True), 2)
        assert events_of(join(service, run))[-1].data["finish_reason"] == "cancelled"


def test_a_leaving_reader_who_only_joined_stops_nothing() -> None:
    with served(SyntheticBackend()) as service:
        run, _ = begun(service, ask({"type": "string"}, "hang", resumable=True), 2)
        with service.client.stream("GET", f"/v1/structured/{run}/events") as joined:
            next(read_events(joined.iter_lines()))
        assert service.client.post(f"/v1/structured/{run}/cancel").json()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("run_other:3", "another run"),
        ("{run}:99999", "nothing after"),
        ("{run}:x", "the id of an event"),
        ("{run}:-1", "the id of an event"),
        ("9" * 40, "the id of an event"),
        ("{run}:", "the id of an event"),
    ],
)
def test_a_foreign_future_or_malformed_place_is_refused_by_name(service: Served, place: str, what: str) -> None:
    run = stream_events(service.client, ask({"type": "string"}))[0].data["run"]
    answer = join(service, run, headers={"last-event-id": place.format(run=run)})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "invalid_event_id"
    assert what in error["message"]


def test_an_unknown_run_is_not_found(service: Served) -> None:
    answer = join(service, "run_of_nobody")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "run_not_found")


@pytest.mark.parametrize(
    "limits", [RunSettings(retention_s=0.0), RunSettings(max_finished=0), RunSettings(max_finished_bytes=0)]
)
def test_a_finished_run_expires_by_age_count_and_size(limits: RunSettings) -> None:
    with served(SyntheticBackend(), Settings(runs=limits)) as service:
        run = stream_events(service.client, ask({"type": "string"}))[0].data["run"]
        wait_until(lambda: join(service, run).status_code == 410)
        assert join(service, run).json()["error"]["code"] == "run_expired"
        assert join(service, run).headers["x-should-retry"] == "false"


def test_the_text_alone_comes_in_chunks(service: Served) -> None:
    body = ask({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}, coalesce_ms=0)
    with service.client.stream("POST", "/v1/structured/stream", json=body, headers={"accept": "text/plain"}) as answer:
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        chunks = list(answer.iter_raw())
    assert json.loads(b"".join(chunks))["name"].startswith("Ada")


def test_the_text_alone_is_of_one_choice(service: Served) -> None:
    answer = service.client.post("/v1/structured/stream", json=ask(ANY, n=2), headers={"accept": "text/plain"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "n")


def test_a_text_that_fails_is_broken_off(service: Served) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        service.client.post("/v1/structured/stream", json=ask({"type": "string"}, "fail"), headers={"accept": "text/plain"})


def test_several_choices_are_resumed_without_loss() -> None:
    with served(SyntheticBackend('"' + "one" * 60 + '"', '"' + "two" * 40 + '"', delay_s=0.001)) as service:
        run, got = begun(service, ask({"type": "string"}, n=2, resumable=True, coalesce_ms=0), 9)
        rest = events_of(join(service, run, headers={"last-event-id": got[-1].id}))
    for choice, text in enumerate(("one" * 60, "two" * 40)):
        mine = [event for event in [*got, *rest] if event.data.get("choice") == choice]
        assert document(mine) == text


def test_a_reader_that_was_closed_for_its_slowness_goes_on_where_it_stood() -> None:
    value = {"text": "x" * 12_000_000, "end": True}
    settings = Settings(stall_timeout_s=0.3)
    body = ask(ANY, resumable=True, coalesce_ms=0, max_tokens=4000)
    with served(SyntheticBackend(compact(value), token_bytes=16_384), settings) as service:
        with reading(service, body) as events:
            got = [next(events)]
            wait_until(lambda: service.metric("constrained_slow_readers_total") == 1)
            with suppress(httpx.RemoteProtocolError, AssertionError):
                got.extend(events)
        while got[-1].name != "done":  # on a busy machine it may be slow again
            *got, last = got
            assert (last.name, last.data["code"], last.id) == ("error", "slow_consumer", got[-1].id)
            got += events_of(join(service, got[0].data["run"], headers={"last-event-id": last.id}))
        assert document(got) == value
        assert service.metric("constrained_slow_readers_total") >= 1
