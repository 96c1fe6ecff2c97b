"""`POST /v1/structured/stream`: the order of events, their numbers, and what a reader makes of them."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.settings import Settings
from constrained.stream import Fold, from_wire
from tests.api.examples import example
from tests.api.server import Sent, Served, ask, served, stream_events
from tests.api.synthetic import SyntheticBackend, compact

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "hobbies": {"type": "array", "items": {"enum": ["chess", "tea"]}},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "required": ["name", "age", "hobbies", "address"],
}


def fold_of(events: list[Sent], choice: int = 0) -> Any:
    fold = Fold()
    for event in events:
        if event.name == "delta" and event.data["choice"] == choice:
            for op in event.data["ops"]:
                fold.apply(from_wire(op))
    return fold.value


def test_events_come_in_order_and_fold_to_the_document(service: Served) -> None:
    events = stream_events(service.client, ask(PERSON))
    names = [event.name for event in events]
    assert names[0] == "start"
    assert names[-1] == "done"
    assert set(names[1:-1]) == {"delta"}
    assert fold_of(events) == example(PERSON)


def test_every_known_field_is_announced_before_it_begins(service: Served) -> None:
    events = stream_events(service.client, ask(PERSON))
    ops = [op for event in events if event.name == "delta" for op in event.data["ops"]]
    announced = [op["path"] for op in ops if op["op"] == "field"]
    begun = [op["path"] for op in ops if op["op"] in {"open", "set"}]
    assert {"/name", "/age", "/hobbies", "/hobbies/0", "/address", "/address/city"} <= set(announced)
    assert [path for path in announced if path in begun] == [path for path in begun if path in announced]
    enums = [op["enum"] for op in ops if op["op"] == "field" and op["path"].startswith("/hobbies/")]
    assert enums == [["chess", "tea"]] * 2


def test_start_carries_the_schema_and_its_order(service: Served) -> None:
    start = stream_events(service.client, ask(PERSON))[0].data
    assert start["schema"] == PERSON
    assert list(start["schema"]["properties"]) == list(PERSON["properties"])
    assert start["model"] == "synthetic"
    assert start["protocol"] == 1
    assert [path for path in start["order"] if path.count("/") == 1] == ["/name", "/age", "/hobbies", "/address"]


def test_done_tells_verdict_usage_and_times(service: Served) -> None:
    done = stream_events(service.client, ask(PERSON))[-1].data
    assert (done["finish_reason"], done["finish_reasons"], done["status"]) == ("stop", ["stop"], "complete")
    assert done["valid"] is True
    num_tokens = -(-len(compact(example(PERSON)).encode()) // 3)
    assert done["usage"]["completion_tokens"] == num_tokens
    assert done["usage"]["total_tokens"] == done["usage"]["prompt_tokens"] + num_tokens
    assert done["timings"]["total_ms"] > 0


@pytest.mark.parametrize("coalesce_ms", [0, 1, 16])
@pytest.mark.parametrize("num_choices", [1, 3])
def test_numbers_strictly_increase_and_one_event_is_terminal(service: Served, coalesce_ms: int, num_choices: int) -> None:
    events = stream_events(service.client, ask(PERSON, coalesce_ms=coalesce_ms, n=num_choices))
    run = events[0].data["run"]
    assert events[0].id == f"{run}:0"
    numbers = [event.data["seq"] for event in events[1:]]
    assert [event.id for event in events[1:]] == [f"{run}:{number}" for number in numbers]
    assert all(before < after for before, after in zip([0, *numbers], numbers, strict=False))
    assert [event.name for event in events].count("done") == 1
    assert events[-1].name == "done"


def test_seq_counts_ops_whatever_the_frames(service: Served) -> None:
    last = {stream_events(service.client, ask(PERSON, coalesce_ms=ms))[-1].data["seq"] for ms in (0, 1, 50)}
    assert len(last) == 1


def test_every_choice_has_its_own_document() -> None:
    with served(SyntheticBackend('"one"', '"two"', '"three"')) as service:
        events = stream_events(service.client, ask({"type": "string"}, n=3, seed=7))
        assert events[0].data["choices"] == 3
        assert [fold_of(events, choice) for choice in range(3)] == ["one", "two", "three"]
        assert events[-1].data["finish_reasons"] == ["stop"] * 3
        assert [params.seed for params in service.backend.params] == [7, 8, 9]


def test_a_window_merges_text_and_none_gives_a_frame_for_each_step() -> None:
    text = compact("abcdefgh" * 20)
    with served(SyntheticBackend(text, token_bytes=4)) as service:
        each_step = stream_events(service.client, ask({"type": "string"}, coalesce_ms=0))
        began_at = time.monotonic()
        merged = stream_events(service.client, ask({"type": "string"}, coalesce_ms=1000))
        num_windows = int(time.monotonic() - began_at)
    assert len(each_step) == 2 + -(-len(text) // 4)
    assert len(merged) <= 4 + num_windows
    assert fold_of(each_step) == fold_of(merged) == json.loads(text)


def test_a_cut_document_is_incomplete(service: Served) -> None:
    events = stream_events(service.client, ask({"type": "object", "properties": {"name": {"type": "string"}}}, max_tokens=6))
    done = events[-1].data
    assert (done["finish_reason"], done["status"], done["valid"]) == ("length", "incomplete", False)
    assert fold_of(events) == {"name": 'Ada "Lov'}


def test_a_number_that_is_cut_is_never_set() -> None:
    with served(SyntheticBackend("123456", token_bytes=2)) as service:
        events = stream_events(service.client, ask({"type": "integer"}, max_tokens=2))
    assert [event.name for event in events] == ["start", "done"]


def test_a_document_that_breaks_its_schema_is_told_and_counted() -> None:
    with served(SyntheticBackend('{"name":5}')) as service:
        done = stream_events(service.client, ask({"type": "object", "properties": {"name": {"type": "string"}}}))[-1].data
        assert (done["status"], done["valid"]) == ("complete", False)
        assert service.metric("constrained_invalid_documents_total") == 1


@pytest.mark.parametrize("lexeme", ["9007199254740993", "1e400", "-1e-400", "1" * 5000])
def test_numbers_that_a_double_loses_are_sent_whole(lexeme: str) -> None:
    with served(SyntheticBackend(f"[{lexeme}]", token_bytes=16)) as service:
        events = stream_events(service.client, ask({"type": "array", "items": {"type": "number"}}))
    ops = [op for event in events if event.name == "delta" for op in event.data["ops"]]
    assert [op["raw"] for op in ops if op["op"] == "set"] == [lexeme]
    assert events[-1].data["valid"] is True


def test_characters_that_break_lines_stay_inside_their_event() -> None:
    value = "a\x85b\u2028c\u2029d\r\ne"
    with served(SyntheticBackend(compact(value))) as service:
        events = stream_events(service.client, ask({"type": "string"}))
    assert fold_of(events) == value


def test_the_answer_is_a_live_stream(service: Served) -> None:
    with service.client.stream(
        "POST", "/v1/structured/stream", json=ask(PERSON), headers={"accept-encoding": "gzip"}
    ) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["x-request-id"].startswith("req-")
        assert "content-encoding" not in answer.headers
        assert "content-length" not in answer.headers
        answer.read()


def test_deltas_come_while_the_document_is_generated(service: Served) -> None:
    body = ask({"type": "string"}, "hang")
    with service.client.stream("POST", "/v1/structured/stream", json=body) as answer:
        seen = ""
        for line in answer.iter_lines():
            seen += line
            if '"op":"text"' in line:
                break
        assert '"op":"close"' not in seen


def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    with served(SyntheticBackend(), Settings(heartbeat_s=0.02)) as service:
        body = ask({"type": "string"}, "hang")
        with service.client.stream("POST", "/v1/structured/stream", json=body) as answer:
            pings = 0
            for line in answer.iter_lines():
                pings += line == ": ping"
                if pings == 3:
                    break
        assert pings == 3


def test_the_schema_is_shown_to_the_model_unless_the_caller_forbids(service: Served) -> None:
    stream_events(service.client, ask(PERSON, "question"))
    assert service.backend.prompts[-1] == f"{compact(PERSON)}\nquestion"
    stream_events(service.client, ask(PERSON, "question", schema_in_prompt=False))
    assert service.backend.prompts[-1] == "question"


def test_a_plain_prompt_is_taken(service: Served) -> None:
    events = stream_events(service.client, {"schema": {"type": "integer"}, "prompt": "How many?"})
    assert events[-1].data["valid"] is True


def test_sampling_fields_reach_the_engine(service: Served) -> None:
    fields = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 11, "max_tokens": 500}
    stream_events(service.client, ask({"type": "integer"}, **fields))
    params = service.backend.params[-1]
    assert {name: getattr(params, name) for name in fields} == fields


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50)
@given(value=json_values, token_bytes=st.integers(1, 9), coalesce_ms=st.sampled_from([0, 1]))
def test_typed_stream_and_openai_stream_of_one_run_have_one_value(
    dictated: Served, value: Any, token_bytes: int, coalesce_ms: int
) -> None:
    """Invariant 10."""
    dictated.backend.reset(compact(value), token_bytes)
    events = stream_events(dictated.client, ask(True, coalesce_ms=coalesce_ms))
    assert fold_of(events) == value
    assert json.loads(chat_text(dictated.client)) == value


def chat_text(client: httpx.Client) -> str:
    body = {"messages": [{"role": "user", "content": "hello"}], "guided_json": True, "stream": True}
    lines = client.post("/v1/chat/completions", json=body).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])
