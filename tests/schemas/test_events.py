"""The wire contract of events: what validates, what is refused, and that the models say what the stream's ops say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from constrained.stream import Close, Field, Op, Open, Set, Text, Variant, from_wire
from schemas.events import EVENTS, OP, DeltaEvent, DoneEvent, StartEvent

texts = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
types = st.lists(st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]), min_size=1).map(tuple)
ops = st.one_of(
    st.builds(Field, texts, types, st.none() | texts, st.none() | st.lists(scalars, max_size=3).map(tuple)),
    st.builds(Variant, texts, texts),
    st.builds(Open, texts, st.sampled_from(["object", "array", "string"])),
    st.builds(Text, texts, texts),
    st.builds(Set, texts, scalars),
    st.builds(Close, texts),
)


@given(op=ops)
def test_every_op_of_the_stream_is_one_of_the_wire(op: Op) -> None:
    wire = op.to_wire()
    assert OP.validate_python(wire).model_dump(exclude_unset=True) == wire
    assert from_wire(wire) == op


@pytest.mark.parametrize(
    "op",
    [
        {"op": "set", "path": ""},
        {"op": "open", "path": "", "type": "integer"},
        {"op": "text", "path": "/a", "add": "x", "more": 1},
        {"op": "jump", "path": ""},
        {"op": "field", "path": "", "types": ["date"]},
        {"path": ""},
    ],
)
def test_what_is_no_op_is_refused(op: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OP.validate_python(op)


def test_events_are_read_by_their_name() -> None:
    assert set(EVENTS) == {"start", "delta", "snapshot", "error", "done"}
    delta = EVENTS["delta"].model_validate({"seq": 3, "ops": [{"op": "close", "path": ""}]})
    assert isinstance(delta, DeltaEvent)
    assert delta.choice == 0
    with pytest.raises(ValidationError):
        EVENTS["delta"].model_validate({"seq": 3})


def test_the_schema_of_a_start_event_has_its_own_name_on_the_wire() -> None:
    start = StartEvent(run="r", model="m", schema_=True, schema_hash="h", order=[])
    wire = start.model_dump(by_alias=True)
    assert wire["schema"] is True
    assert wire["protocol"] == 1
    assert StartEvent.model_validate(wire) == start


def test_done_refuses_reasons_that_the_protocol_does_not_know() -> None:
    with pytest.raises(ValidationError) as refusal:
        DoneEvent.model_validate({"seq": 1, "finish_reason": "bored"})
    assert ("finish_reason",) in {error["loc"] for error in refusal.value.errors()}
