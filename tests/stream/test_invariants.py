"""The invariants of the protocol, over any document, spelling and chunking; `json` and `ijson` are the oracles."""

from __future__ import annotations

import json
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from typing import Any

import ijson
from hypothesis import given
from hypothesis import strategies as st

from constrained.stream import Close, DeltaStream, Fold, Op, Open, Set, Snapshot, Text, coalesce, from_wire
from schemas.events import OP, SnapshotEvent

from .documents import check_protocol, chunks, documents, fold_ops, same, stream_ops


@given(st.data())
def test_the_fold_of_all_ops_is_what_json_loads(data: st.DataObject) -> None:
    document = data.draw(documents())
    fold = fold_ops(stream_ops(data.draw(chunks(document))))
    assert same(fold.value, json.loads(document))
    assert fold.is_complete
    assert fold.open_paths == ()
    assert set(fold.status.values()) == {"complete"}


@given(st.data())
def test_the_ops_keep_invariants_2_to_7(data: st.DataObject) -> None:
    check_protocol(stream_ops(data.draw(chunks(data.draw(documents())))))


@given(st.data())
def test_chunking_changes_only_where_text_is_cut(data: st.DataObject) -> None:
    document = data.draw(documents())
    assert coalesce(stream_ops(data.draw(chunks(document)))) == coalesce(stream_ops([document.encode()]))


@given(st.data())
def test_the_ops_tell_the_events_that_ijson_tells(data: st.DataObject) -> None:
    document = data.draw(documents())
    ops = stream_ops(data.draw(chunks(document)))
    assert _events(ops) == [_plain(*event) for event in ijson.basic_parse(BytesIO(document.encode()))]


@given(st.data())
def test_strings_only_grow_and_scalars_come_whole(data: st.DataObject) -> None:
    """At every moment the value is the final one with its last open string cut, or its end missing."""
    document = data.draw(documents())
    final = json.loads(document)
    stream = DeltaStream()
    for part in data.draw(chunks(document)):
        stream.feed(part)
        if stream.fold.started:
            assert _is_beginning(stream.fold.snapshot().value, final, is_open=bool(stream.open_paths))


@given(st.data())
def test_a_snapshot_is_the_fold_so_far_and_can_be_gone_on_from(data: st.DataObject) -> None:
    document = data.draw(documents())
    ops = stream_ops(data.draw(chunks(document)))
    at = data.draw(st.integers(0, len(ops)))
    first = fold_ops(ops[:at])
    snapshot = first.snapshot()
    for op in ops[at:]:
        first.apply(op)
    assert same(snapshot.value, fold_ops(ops[:at]).value)
    assert snapshot == fold_ops(ops[:at]).snapshot()
    event = SnapshotEvent.model_validate({"seq": at, **json.loads(json.dumps(snapshot.to_wire()))})
    resumed = Fold.restore(Snapshot.from_wire(event.model_dump()))
    for op in ops[at:]:
        resumed.apply(op)
    assert same(resumed.value, first.value)
    assert resumed.snapshot() == first.snapshot()


@given(st.data())
def test_coalescing_keeps_the_fold(data: st.DataObject) -> None:
    ops = stream_ops(data.draw(chunks(data.draw(documents()))))
    merged = coalesce(ops)
    assert fold_ops(merged).snapshot() == fold_ops(ops).snapshot()
    assert not any(isinstance(a, Text) and isinstance(b, Text) for a, b in pairwise(merged))


@given(st.data())
def test_every_op_goes_over_the_wire_and_back(data: st.DataObject) -> None:
    for op in stream_ops(data.draw(chunks(data.draw(documents())))):
        wire = json.loads(json.dumps(op.to_wire(), allow_nan=False))
        assert OP.validate_python(wire).model_dump(exclude_unset=True) == wire
        assert same(from_wire(wire), op)


def _events(ops: list[Op]) -> list[tuple[str, Any]]:
    """The ops as ijson's events."""
    events: list[tuple[str, Any]] = []
    kinds: dict[str, str] = {}
    pieces: list[str] = []
    for op in ops:
        if isinstance(op, Open | Set):
            parent, slash, token = op.path.rpartition("/")
            if slash and kinds[parent] == "object":
                events.append(("map_key", token.replace("~1", "/").replace("~0", "~")))
        if isinstance(op, Open):
            kinds[op.path] = op.type
            if op.type != "string":
                events.append(("start_map" if op.type == "object" else "start_array", None))
            pieces = []
        elif isinstance(op, Text):
            pieces.append(op.add)
        elif isinstance(op, Close):
            ends = {"object": ("end_map", None), "array": ("end_array", None), "string": ("string", "".join(pieces))}
            events.append(ends[kinds[op.path]])
        elif isinstance(op, Set):
            name = "null" if op.value is None else "boolean" if isinstance(op.value, bool) else "number"
            events.append((name, op.value))
    return events


def _plain(name: str, value: Any) -> tuple[str, Any]:
    return name, float(value) if isinstance(value, Decimal) else value


def _is_beginning(partial: Any, final: Any, *, is_open: bool) -> bool:
    if not is_open:
        return same(partial, final)
    if isinstance(partial, str):
        return isinstance(final, str) and final.startswith(partial)
    if isinstance(partial, list):
        pairs = list(zip(partial, final, strict=False))
        return len(partial) <= len(final) and all(
            _is_beginning(mine, whole, is_open=index == len(partial) - 1) for index, (mine, whole) in enumerate(pairs)
        )
    if isinstance(partial, dict):
        names = list(partial)
        return names == list(final)[: len(names)] and all(
            _is_beginning(partial[name], final[name], is_open=name == names[-1]) for name in names
        )
    return same(partial, final)
