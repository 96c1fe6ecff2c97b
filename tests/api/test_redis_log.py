"""The event log in a real Redis, with two replicas: either answers for any run, and Redis may go and come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from api.feed import FeedLimits, Head
from api.redis_keys import head_fields, read_head
from api.run_settings import RunSettings
from api.settings import Settings
from tests.api.redis_server import RedisServer, needs_redis
from tests.api.server import DEADLINE_S, Served, ask, read_events, served, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.api.test_resume import begun, document, events_of, join, reading
from tests.api.test_steering import DOCUMENT, SCHEMA, Reading

pytestmark = needs_redis
LONG = compact({"items": ["some text"] * 60})
ANY: Any = True


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@contextmanager
def replicas(
    redis: RedisServer, backend: SyntheticBackend, other: SyntheticBackend | None = None, **limits: Any
) -> Iterator[tuple[Served, Served]]:
    settings = Settings(runs=RunSettings(redis_url=redis.url, **limits))
    with served(backend, settings) as one, served(other or SyntheticBackend(), settings) as two:
        yield one, two


def test_another_replica_resumes_a_live_run(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(LONG, delay_s=0.002)) as (one, two):
        run, got = begun(one, ask(ANY, resumable=True, coalesce_ms=0), 5)
        wait_until(lambda: join(two, run, params={"after": 0}).status_code == 200)
        rest = events_of(join(two, run, headers={"last-event-id": got[-1].id}))
        assert rest[-1].data["finish_reason"] == "stop"
        numbers = [event.data["seq"] for event in [*got[1:], *rest]]
        assert numbers == sorted(set(numbers))
        assert document(got, rest) == json.loads(LONG)


def test_another_replica_tells_the_same_of_a_finished_run(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend('"one"', "[2,null]")) as (one, two):
        with reading(one, ask(ANY, n=2)) as events:
            got = list(events)
        run = got[0].data["run"]
        wait_until(lambda: join(two, run).text.endswith("\n\n") and "event: done" in join(two, run).text)
        assert join(two, run).text == join(one, run).text
        assert join(two, run, params={"after": 0}).text == join(one, run, params={"after": 0}).text
        assert join(two, run, headers={"last-event-id": got[-1].id}).status_code == 204


def test_a_run_whose_log_was_trimmed_is_mirrored_from_its_checkpoint(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(LONG), feed=FeedLimits(max_entries=8)) as (one, two):
        run, got = begun(one, ask(ANY, resumable=True, coalesce_ms=0), 3)
        wait_until(lambda: one.metric("constrained_running_sequences") == 0)
        wait_until(lambda: join(two, run).status_code == 200 and "event: done" in join(two, run).text)
        rest = events_of(join(two, run, headers={"last-event-id": got[-1].id}))
        assert [event.name for event in rest] == ["snapshot", "done"]
        assert document(got, rest) == json.loads(LONG)
        with redis.client() as client:
            assert client.xlen(f"constrained:run:{run}:events") <= 9


def test_commands_reach_the_replica_that_generates(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(compact(DOCUMENT))) as (one, two):
        with one.client.stream("POST", "/v1/structured/stream", json=ask(SCHEMA, "hang", coalesce_ms=0)) as answer:
            reading = Reading(one, read_events(answer.iter_lines()))
            reading.until("/point/x", "complete")
            reading.service = two
            wait_until(lambda: reading.post("edit", path="/name", value="Grace").status_code == 200)
            refused = reading.post("edit", path="/name", value=5)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_value")
            assert refused.json()["error"]["param"] == "/name"
            assert reading.post("steer", text="and hang").status_code == 200
            assert reading.post("cancel").json() == {"run": reading.run, "status": "cancelled"}
            assert reading.rest().data["finish_reason"] == "cancelled"
        assert reading.fold.value["name"] == "Grace"
        wait_until(lambda: reading.post("cancel").json() == {"run": reading.run, "status": "finished"})
        assert reading.post("steer", text="x").json()["error"]["code"] == "run_ended"


def test_unknown_and_expired_runs(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(), retention_s=1.0) as (one, two):
        assert join(two, "run_of_nobody").status_code == 404
        with reading(one, ask({"type": "null"})) as events:
            first, *_ = events
            run = first.data["run"]
        wait_until(lambda: join(two, run).status_code == 410)
        wait_until(lambda: join(one, run).status_code == 410)


def test_a_run_whose_replica_is_gone_is_lost(redis: RedisServer) -> None:
    with served(SyntheticBackend(), Settings(runs=RunSettings(redis_url=redis.url, owner_ttl_s=0.2))) as two:
        with redis.client() as client:
            start = {"run": "run_x", "model": "m", "schema": True, "schema_hash": "h", "order": [], "protocol": 1, "choices": 1}
            head = {"start": json.dumps(start), "num_choices": 1, "coalesce_ms": 0, "resumable": 1, "owner": "nobody"}
            client.hset("constrained:run:run_x", mapping=head)
            entry = {"kind": "delta", "choice": 0, "after": 0, "text": '{"op":"set","path":"","value":7}'}
            client.xadd("constrained:run:run_x:events", entry, id="1-0")
        events = events_of(join(two, "run_x"))
        assert [event.name for event in events] == ["start", "snapshot", "error"]
        assert (events[-1].data["code"], events[-1].data["retriable"]) == ("run_lost", True)


def test_while_redis_is_gone_runs_go_on_and_when_it_is_back_any_replica_answers_again(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(LONG, delay_s=0.002)) as (one, two):
        with reading(one, ask(ANY, resumable=True, coalesce_ms=0)) as events:
            got = [next(events) for _ in range(4)]
            run = got[0].data["run"]
            redis.stop()
            try:
                got += events
                assert document(got) == json.loads(LONG)
                assert got[-1].name == "done"
                assert document(events_of(join(one, run))) == json.loads(LONG)
                unknown = join(two, run)
                assert (unknown.status_code, unknown.json()["error"]["code"]) == (503, "log_unavailable")
                assert service_answers(two)
            finally:
                redis.start()
        wait_until(lambda: tells(two, run) == json.loads(LONG))


def test_a_mirror_outlives_an_outage(redis: RedisServer) -> None:
    with replicas(redis, SyntheticBackend(LONG, delay_s=0.01)) as (one, two):
        run, _ = begun(one, ask(ANY, resumable=True, coalesce_ms=0), 2)
        wait_until(lambda: redis_has(redis, run))
        with httpx.stream("GET", f"{two.url}/v1/structured/{run}/events", timeout=DEADLINE_S) as answer:
            events = read_events(answer.iter_lines())
            got = [next(events), next(events)]
            redis.stop()
            redis.start()
            got += events
        assert got[-1].name == "done"
        assert document(got) == json.loads(LONG)


def tells(service: Served, run: str) -> Any:
    """The document of a run, None where the service does not know it, or asks to try again."""
    answer = join(service, run)
    return document(events_of(answer)) if answer.status_code == 200 else None


def service_answers(service: Served) -> bool:
    return service.client.post("/v1/structured", json=ask({"type": "null"})).status_code == 200


def redis_has(redis: RedisServer, run: str) -> bool:
    with redis.client() as client:
        return client.xlen(f"constrained:run:{run}:events") > 0


@pytest.mark.parametrize("key", [None, "", "web"])
def test_a_head_comes_back_as_it_was(key: str | None) -> None:
    head = Head("run_1", "{}", 2, 16, True, key)
    assert read_head("run_1", head_fields(head, "me")) == head
