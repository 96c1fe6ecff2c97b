"""The core without I/O: which event may come when, any chunking of the bytes, and what consumers see of a run."""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from constrained.client import UNSET, DisconnectedError, IncompleteError, InvalidAnswerError, ProtocolError, RunFailedError
from constrained.client.cursors import Cursor, ElementCursor, EventCursor, FieldCursor, TextCursor, fate_of, reader
from constrained.client.formats import EventStreamFormat
from constrained.client.run import Cancelled, Disconnected, Run
from constrained.client.target import Target
from constrained.stream import DeltaStream
from schemas.events import DeltaEvent, DoneEvent, ErrorEvent, SnapshotEvent, StartEvent
from tests.client.builders import delta, deltas, done, error, snapshot, sse, start, whole

OPEN_ROOT = {"op": "open", "path": "", "type": "object"}


FORMATS: WeakKeyDictionary[Run[Any], EventStreamFormat] = WeakKeyDictionary()


def run_of(*frames: bytes, target: Any = True) -> Run[Any]:
    run: Run[Any] = Run(Target(target))
    for frame in frames:
        feed(run, frame)
    return run


def feed(run: Run[Any], chunk: bytes) -> None:
    run.feed(FORMATS.setdefault(run, EventStreamFormat()).feed(chunk))
    while run.step():
        pass


def taken(cursor: Cursor[Any]) -> list[Any]:
    return list(cursor.take())


EVENTS = {
    "start": start(),
    "delta": delta(1, OPEN_ROOT),
    "snapshot": snapshot(1, {}, [""], {"": "streaming"}),
    "error": error(),
    "done": done(),
}


@pytest.mark.parametrize("name", EVENTS)
def test_the_first_event_is_start_or_error(name: str) -> None:
    run = run_of(EVENTS[name])
    assert isinstance(run.outcome, ProtocolError) == (name not in ("start", "error"))
    assert run.started
    assert run.ended == (name != "start")


@pytest.mark.parametrize("name", EVENTS)
def test_after_the_start_all_others_may_come(name: str) -> None:
    run = run_of(start(), EVENTS[name])
    assert isinstance(run.outcome, ProtocolError) == (name == "start")
    assert run.ended == (name not in ("delta", "snapshot"))


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("terminal", ["error", "done"])
def test_after_the_end_nothing_is_read(name: str, terminal: str) -> None:
    run = run_of(start(), EVENTS[terminal] + EVENTS[name])
    feed(run, EVENTS[name])
    assert isinstance(run.outcome, DoneEvent if terminal == "done" else ErrorEvent)
    assert run.value(0) is UNSET


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (start(protocol=2), "protocol version 2, this client 1"),
        (sse("start", {"run": "r"}), "malformed start event"),
        (b"event: start\ndata: {nope\n\n", "malformed start event"),
        (b"event: progress\ndata: {}\n\n", "unknown event 'progress'"),
        (b"data: {}\n\n", "unknown event 'message'"),
    ],
)
def test_a_start_that_is_none_breaks_the_protocol(frame: bytes, why: str) -> None:
    run = run_of(frame)
    assert isinstance(run.outcome, ProtocolError)
    assert why in str(run.outcome)
    with pytest.raises(ProtocolError, match=why):
        run.final()


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([delta(1, {"op": "text", "path": "", "add": "x"})], "innermost open path"),
        ([delta(1, {"op": "jump", "path": ""})], "malformed delta event"),
        ([delta(1, {"op": "open", "path": "", "type": "object", "extra": 1})], "malformed delta event"),
        ([delta(1, OPEN_ROOT), delta(1, {"op": "close", "path": ""})], "seq 1 comes after 1"),
        ([delta(2, OPEN_ROOT), delta(1, {"op": "close", "path": ""})], "seq 1 comes after 2"),
        ([delta(2, OPEN_ROOT), snapshot(1, {}, [""], {"": "streaming"})], "seq 1 comes after 2"),
        ([delta(1, OPEN_ROOT, choice=1)], "choice 1 is asked for; this run has 1"),
        ([snapshot(1, {}, ["/a"], {"": "streaming"})], "open path"),
    ],
)
def test_a_delta_that_does_not_fit_breaks_the_protocol(frames: list[bytes], why: str) -> None:
    run = run_of(start(), *frames)
    assert isinstance(run.outcome, ProtocolError)
    assert why in str(run.outcome)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def cut(data: st.DataObject, whole: Any) -> list[Any]:
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[begin:end] for begin, end in zip([0, *places], [*places, len(whole)], strict=True)]


@given(JSON_VALUES, st.data())
def test_any_chunking_of_the_bytes_gives_the_same_run(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    frames = whole(*cut(data, text))
    run = run_of(*cut(data, b"".join(frames)))
    assert run.final() == value
    assert run.last_event_id == "run_1:10000"


@given(JSON_VALUES, st.data())
def test_a_late_reader_gets_the_same_value_from_a_snapshot(value: Any, data: st.DataObject) -> None:
    """What a run says to a late reader is enough for another run to go on from."""
    frames = deltas(*cut(data, json.dumps(value)))
    middle = data.draw(st.integers(0, len(frames)))
    first = run_of(start(), *frames[:middle])
    late = [event for event in first.events_so_far() if isinstance(event, SnapshotEvent)]
    wire = [snapshot(event.seq, event.value, event.open, dict(event.status)) for event in late]
    assert run_of(start(), *wire, *frames[middle:], done()).final() == value


@given(st.lists(JSON_VALUES, max_size=6), st.data())
def test_elements_come_once_in_order_and_whole(items: list[Any], data: st.DataObject) -> None:
    """Over any chunking, from any moment on, and over a snapshot in the middle."""
    frames = deltas(*cut(data, json.dumps({"before": "x", "items": items, "after": [1]})))
    joins = data.draw(st.integers(0, len(frames)))
    run = run_of(start(), *frames[:joins])
    cursor = ElementCursor(run, "/items", reader(None), 0)
    found = taken(cursor)
    for frame in frames[joins:]:
        if data.draw(st.booleans()):
            for event in run.events_so_far()[1:]:
                assert isinstance(event, SnapshotEvent)
                feed(run, snapshot(event.seq, event.value, event.open, dict(event.status)))
        feed(run, frame)
        found += taken(cursor)
        assert found == items[: len(found)]
    assert found == items
    assert cursor.finished


@given(st.text(), st.data())
def test_text_comes_once_in_order_and_whole(text: str, data: st.DataObject) -> None:
    frames = deltas(*cut(data, json.dumps({"a": {"text": text}, "text": "other"})))
    joins = data.draw(st.integers(0, len(frames)))
    run = run_of(start(), *frames[:joins])
    cursor = TextCursor(run, "/a/text", 0)
    found = taken(cursor)
    for frame in frames[joins:]:
        if data.draw(st.booleans()):
            for event in run.events_so_far()[1:]:
                assert isinstance(event, SnapshotEvent)
                feed(run, snapshot(event.seq, event.value, event.open, dict(event.status)))
        feed(run, frame)
        found += taken(cursor)
        assert text.startswith("".join(found))
    assert "".join(found) == text
    assert "" not in found
    assert cursor.finished


def test_an_element_comes_with_the_op_that_makes_it_final() -> None:
    run, stream, seen = run_of(start()), DeltaStream(), []
    cursor = ElementCursor(run, "", reader(None), 0)
    for piece in ('[{"a"', ":1", "}", ",2", ",[]", ',"x', '"', "]"):
        for op in stream.feed(piece.encode()):
            feed(run, delta(run.seq + 1, op.to_wire()))
        seen.append(taken(cursor))
    assert seen == [[], [], [{"a": 1}], [], [2, []], [], ["x"], []]


def test_elements_are_copies() -> None:
    run = run_of(start(), *deltas('[{"a":1}', ",{}]"))
    taken(ElementCursor(run, "", reader(None), 0))[0]["a"] = 2
    assert run.value(0) == [{"a": 1}, {}]


@pytest.mark.parametrize(
    ("path", "fates"),
    [
        ("", ["pending", "streaming", "streaming", "streaming", "complete"]),
        ("/a", ["pending", "streaming", "streaming", "complete", "complete"]),
        ("/a/0", ["pending", "pending", "complete", "complete", "complete"]),
        ("/a/2", ["pending", "pending", "pending", "absent", "absent"]),
        ("/a/x/y", ["pending", "pending", "pending", "absent", "absent"]),
        ("/b/c", ["pending", "pending", "pending", "pending", "absent"]),
        ("/d", ["pending", "pending", "pending", "pending", "absent"]),
    ],
)
def test_a_place_is_absent_as_soon_as_that_is_certain(path: str, fates: list[str]) -> None:
    run = run_of(start())
    seen = [fate_of(run.fold(0), path)]
    for frame in deltas('{"a":[', "5,", '6],"b":', "null}"):
        feed(run, frame)
        seen.append(fate_of(run.fold(0), path))
    assert seen == fates


@pytest.mark.parametrize("path", ["a", "/~2", "#/a"])
def test_a_path_that_is_no_pointer_is_refused_at_once(path: str) -> None:
    run = run_of(start())
    for make in (lambda: TextCursor(run, path, 0), lambda: FieldCursor(run, path, reader(None), 0)):
        with pytest.raises(ValueError, match="JSON Pointer"):
            make()


def test_escaped_paths_lead_to_their_keys() -> None:
    run = run_of(start(), *deltas('{"a/b":{"~":"x"},"":[1]}'))
    assert taken(FieldCursor(run, "/a~1b/~0", reader(None), 0)) == ["x"]
    assert taken(FieldCursor(run, "/", reader(None), 0)) == [[1]]


def test_a_consumer_of_the_wrong_kind_is_told_so_while_the_value_is_open() -> None:
    run = run_of(start(), *deltas('{"a":{"b":"x"', finish=False))
    with pytest.raises(ValueError, match="'/a' is not an array but dict"):
        taken(ElementCursor(run, "/a", reader(None), 0))
    with pytest.raises(ValueError, match="'/a' is not a string but dict"):
        taken(TextCursor(run, "/a", 0))
    with pytest.raises(ValueError, match="'/a/b' is not an array but str"):
        taken(ElementCursor(run, "/a/b", reader(None), 0))


def test_null_and_absent_have_no_elements_and_no_text() -> None:
    run = run_of(start(), *deltas('{"a":null}'))
    for path in ("/a", "/b"):
        for cursor in (ElementCursor(run, path, reader(None), 0), TextCursor(run, path, 0)):
            assert taken(cursor) == []
            assert cursor.finished
    assert taken(FieldCursor(run, "/a", reader(None), 0)) == [None]
    assert taken(FieldCursor(run, "/b", reader(None), 0)) == [UNSET]


def test_a_string_that_is_set_whole_is_one_text() -> None:
    run = run_of(start(), delta(2, OPEN_ROOT, {"op": "set", "path": "/level", "value": "high"}))
    early = TextCursor(run_of(start()), "/level", 0)
    assert taken(early) == []
    assert not early.finished
    cursor = TextCursor(run, "/level", 0)
    assert taken(cursor) == ["high"]
    assert cursor.finished
    live = run_of(start())
    cursor = TextCursor(live, "/level", 0)
    feed(live, delta(2, OPEN_ROOT, {"op": "set", "path": "/level", "value": "high"}))
    assert taken(cursor) == ["high"]


def test_events_come_typed_and_in_order() -> None:
    run = run_of(start())
    cursor = EventCursor(run)
    for frame in [*deltas('{"a"', ":1}"), done()]:
        feed(run, frame)
    events = taken(cursor)
    assert [type(event) for event in events] == [StartEvent, *[DeltaEvent] * (len(events) - 2), DoneEvent]
    assert [op.op for event in events if isinstance(event, DeltaEvent) for op in event.ops] == ["open", "set", "close"]
    assert cursor.finished


def test_late_events_begin_with_a_snapshot_of_each_choice() -> None:
    frames = [start(choices=2), *deltas('{"a":', "[1,2", finish=False, choice=1)]
    run = run_of(*frames)
    first, second = taken(EventCursor(run))
    assert isinstance(first, StartEvent)
    assert isinstance(second, SnapshotEvent)
    assert (second.choice, second.value, second.open) == (1, {"a": [1]}, ["", "/a"])
    feed(run, done(10_000, "stop", "length"))
    late = EventCursor(run)
    assert [type(event) for event in taken(late)] == [StartEvent, SnapshotEvent, DoneEvent]
    assert late.finished


def test_an_abandoned_consumer_is_forgotten() -> None:
    run = run_of(start())
    cursor = EventCursor(run)
    assert len(run._listeners) == 1
    del cursor
    assert len(run._listeners) == 0


def test_raw_numbers_are_read_from_their_lexeme() -> None:
    run = run_of(start(), *deltas("9007199254740993"), done())
    assert run.final() == 9007199254740993


class Item(BaseModel):
    id: int
    tag: str = "none"


@pytest.mark.parametrize(
    ("frames", "outcome", "kind", "reason"),
    [
        ([done(9, "length")], None, IncompleteError, "length"),
        ([done(9, "cancelled")], None, IncompleteError, "cancelled"),
        ([error(code="overloaded", retriable=True, path="/items")], None, RunFailedError, "error"),
        ([], Disconnected(), DisconnectedError, None),
        ([], Disconnected(OSError("gone")), DisconnectedError, None),
        ([], Cancelled(), IncompleteError, "cancelled"),
    ],
)
def test_what_is_not_finished_carries_what_there_is(frames: list[bytes], outcome: Any, kind: type, reason: str | None) -> None:
    class Items(BaseModel):
        items: list[Item]
        note: str = ""

    run = run_of(start(), *deltas('{"items":[{"id":1},{"id":2', finish=False), *frames, target=Items)
    if outcome is not None:
        run.end(outcome)
    with pytest.raises(kind) as caught:
        run.final()
    failure = caught.value
    assert type(failure) is kind
    assert failure.finish_reason == reason
    assert failure.value == {"items": [{"id": 1}, {}]}
    assert [item.id for item in failure.partial.items] == [1, UNSET]
    assert failure.partial.note is UNSET
    if isinstance(failure, RunFailedError):
        assert (failure.code, failure.path, failure.place, failure.retriable) == ("overloaded", "/items", "/items", True)
    if isinstance(outcome, Disconnected):
        assert failure.__cause__ is outcome.cause


def test_a_failure_before_the_first_delta_has_an_unset_partial() -> None:
    with pytest.raises(RunFailedError) as caught:
        run_of(error(), target=Item).final()
    assert caught.value.partial is caught.value.value is UNSET


def test_one_choice_may_be_finished_where_another_is_cut() -> None:
    run = run_of(
        start(choices=2),
        *deltas('{"id":1}'),
        *deltas('{"id"', finish=False, choice=1, seq=10),
        done(99, "stop", "length"),
        target=Item,
    )
    assert run.final(0) == Item(id=1)
    with pytest.raises(IncompleteError) as caught:
        run.final(1)
    assert caught.value.finish_reason == "length"
    with pytest.raises(ValueError, match="this run has 2"):
        run.final(2)


def test_a_number_at_the_root_is_not_taken_for_whole_when_it_is_cut() -> None:
    assert run_of(start(), *deltas("12"), done()).final() == 12
    with pytest.raises(IncompleteError):
        run_of(start(), *deltas("12", finish=False), done(9, "length")).final()


def test_a_document_that_the_service_calls_invalid_is_no_answer() -> None:
    with pytest.raises(InvalidAnswerError, match="does not meet its schema") as caught:
        run_of(start(), *deltas('{"id":1}'), done(9, "stop", valid=False)).final()
    assert caught.value.value == {"id": 1}


def test_a_document_that_the_model_refuses_is_no_answer() -> None:
    with pytest.raises(InvalidAnswerError, match="own validators") as caught:
        run_of(*whole('{"id":"x"}'), target=Item).final()
    assert caught.value.value == {"id": "x"}
    assert "int_parsing" in str(caught.value.__cause__)


def test_the_place_to_go_on_from_is_behind_the_last_event_that_was_taken() -> None:
    run = run_of()
    assert run.place is None
    feed(run, start(choices=2))
    assert run.place == 0
    feed(run, delta(1, OPEN_ROOT))
    assert run.place == 1
    run.feed(EventStreamFormat().feed(delta(2, {"op": "close", "path": ""})))
    assert run.place == 1, "what waits has not been taken"
    run.reconnect()
    assert not run.step(), "it comes again"


def test_a_part_of_several_snapshots_is_no_place_to_go_on_from() -> None:
    """The service gives them the id behind which all is known: only the last one has it."""
    shown = {"value": {}, "open": [""], "status": {"": "streaming"}}
    run = run_of(start(choices=2), sse("snapshot", {"seq": 8, "choice": 0, **shown}, 0))
    assert run.place is None
    feed(run, sse("snapshot", {"seq": 9, "choice": 1, **shown}, 9))
    assert run.place == 9
    feed(run, delta(10, {"op": "close", "path": ""}))
    assert (run.place, run.seq_of(0), run.seq_of(1)) == (10, 10, 9)


def test_documents_that_come_again_as_they_were_known_are_taken() -> None:
    """A reader who begins anew gets each choice as it stood: the one that moved first comes first."""
    run = run_of(start(choices=2), delta(1, OPEN_ROOT), delta(2, OPEN_ROOT, choice=1))
    events = EventCursor(run)
    taken(events)
    run.reconnect()
    shown = {"value": {}, "open": [""], "status": {"": "streaming"}}
    again = [start(choices=2), *(sse("snapshot", {"seq": choice + 1, "choice": choice, **shown}, choice) for choice in (0, 1))]
    run.feed(EventStreamFormat().feed(b"".join(again)))
    while run.step():
        pass
    assert run.outcome is None
    assert [type(event) for event in taken(events)] == [SnapshotEvent, SnapshotEvent]


def test_a_corrected_string_adds_nothing_to_its_text() -> None:
    run = run_of(start(), *deltas('{"a":"Ada","b":"x', finish=False))
    early, late = TextCursor(run, "/a", 0), TextCursor(run, "/b", 0)
    status = {"": "streaming", "/a": "complete", "/b": "streaming"}
    feed(run, snapshot(run.seq + 1, {"a": "Ada Grace", "b": "x"}, ["", "/b"], status))
    feed(run, delta(run.seq + 1, {"op": "text", "path": "/b", "add": "y"}))
    assert (taken(early), taken(late)) == (["Ada"], ["xy"])
    assert early.finished
