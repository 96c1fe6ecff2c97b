"""The fold as the protocol's guard, its status and snapshots, and ops on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from constrained.errors import FoldError
from constrained.stream import Close, Field, Fold, Op, Open, Set, Snapshot, Text, Variant, coalesce, from_wire

from .documents import fold_ops, same

OBJECT = Open("", "object")
ARRAY = Open("", "array")
STRING = Open("", "string")


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ([Set("/a", 1)], "parent must be the innermost open path, None"),
        ([Set("a", 1)], "parent must be the innermost open path"),
        ([OBJECT, Set("a", 1)], "parent must be the innermost open path"),
        ([OBJECT, Set("/a/b", 1)], "parent must be the innermost open path, ''"),
        ([OBJECT, Set("/a", 1), Set("/a", 2)], "has begun already"),
        ([OBJECT, Set("/a", 1), Open("/a", "string")], "has begun already"),
        ([OBJECT, Set("/~2", 1)], "not a JSON Pointer token"),
        ([OBJECT, Set("/a", {})], "a scalar is set whole; dict"),
        ([OBJECT, Text("", "x")], "a container is open"),
        ([OBJECT, OBJECT], "the root has begun already"),
        ([Set("", 1), Set("", 1)], "the root has begun already"),
        ([Set("", 1), Close("")], "the innermost open path is None"),
        ([OBJECT, Close(""), Set("/a", 1)], "parent must be the innermost open path, None"),
        ([OBJECT, Close(""), Close("")], "the innermost open path is None"),
        ([OBJECT, Open("/a", "object"), Close("")], "the innermost open path is '/a'"),
        ([OBJECT, Open("/a", "object"), Set("/b", 1)], "parent must be the innermost open path, '/a'"),
        ([OBJECT, Open("/a", "object"), Close("/a"), Set("/a/b", 1)], "parent must be the innermost open path, ''"),
        ([ARRAY, Set("/1", 1)], "the next element is 0"),
        ([ARRAY, Set("/0", 1), Set("/0", 1)], "the next element is 1"),
        ([ARRAY, Set("/00", 1)], "the next element is 0"),
        ([ARRAY, Set("/-", 1)], "the next element is 0"),
        ([STRING, Set("/0", 1)], "a string is open"),
        ([STRING, Text("", "\ud83d")], "whole Unicode scalar values"),
        ([STRING, Close(""), Text("", "x")], "the innermost open path is None"),
        ([Open("", "number")], "not 'number'"),  # type: ignore[arg-type]
        ([OBJECT, Field("/a", ()), Field("/a", ())], "announced twice"),
        ([OBJECT, Field("/a", ()), Set("/b", 1)], "'/a' was announced as the next location"),
        ([OBJECT, Field("/a", ()), Close("")], "'/a' was announced and has no value"),
        ([OBJECT, Set("/a", 1), Field("/a", ())], "has begun already"),
        ([OBJECT, Set("/a", 1), Variant("/a", "")], "has begun already"),
        ([OBJECT, Variant("/a/b", "")], "parent must be the innermost open path"),
    ],
)
def test_ops_that_break_the_protocol_are_refused_and_change_nothing(ops: list[Op], message: str) -> None:
    fold = fold_ops(ops[:-1])
    before = fold.snapshot()
    with pytest.raises(FoldError, match=message) as caught:
        fold.apply(ops[-1])
    assert caught.value.path == ops[-1].path
    assert fold.snapshot() == before


def test_status_follows_each_path() -> None:
    fold = Fold()
    seen = []
    for op in [OBJECT, Field("/a", ("string",)), Open("/a", "string"), Text("/a", "x"), Close("/a"), Set("/b", 1), Close("")]:
        fold.apply(op)
        seen.append(dict(fold.status))
    assert seen == [
        {"": "streaming"},
        {"": "streaming", "/a": "next"},
        {"": "streaming", "/a": "streaming"},
        {"": "streaming", "/a": "streaming"},
        {"": "streaming", "/a": "complete"},
        {"": "streaming", "/a": "complete", "/b": "complete"},
        {"": "complete", "/a": "complete", "/b": "complete"},
    ]


def test_a_variant_may_come_before_and_inside_its_value() -> None:
    fold = fold_ops([Variant("", "/anyOf/0"), OBJECT, Variant("", "/anyOf/0/anyOf/1"), Variant("/a", "/x"), Set("/a", None)])
    assert fold.value == {"a": None}


def test_before_the_first_op_there_is_nothing() -> None:
    fold = Fold()
    assert (fold.started, fold.is_complete, fold.value, fold.open_paths, dict(fold.status)) == (False, False, None, (), {})
    assert fold.snapshot() == Snapshot()
    assert not Fold.restore(Snapshot()).started


def test_a_null_document_is_not_nothing() -> None:
    fold = Fold.restore(fold_ops([Set("", None)]).snapshot())
    assert fold.started
    assert fold.is_complete


def test_at_finds_partial_and_whole_values() -> None:
    fold = fold_ops([OBJECT, Open("/a~1", "array"), Open("/a~1/0", "string"), Text("/a~1/0", "x"), Text("/a~1/0", "y")])
    assert fold.at("/a~1/0") == "xy"
    assert fold.at("") == {"a/": ["xy"]}
    for missing in ("/b", "/a~1/1", "/a~1/x", "/a~1/0/0", "b"):
        with pytest.raises(KeyError):
            fold.at(missing)


def test_a_snapshot_is_apart_from_its_fold() -> None:
    fold = fold_ops([OBJECT, Open("/a", "array"), Open("/a/0", "string"), Text("/a/0", "x")])
    snapshot = fold.snapshot()
    resumed = Fold.restore(snapshot)
    for later in (fold, resumed):
        later.apply(Text("/a/0", "y"))
        later.apply(Close("/a/0"))
        later.apply(Set("/a/1", 2))
        assert later.value == {"a": ["xy", 2]}
    assert snapshot == Snapshot({"a": ["x"]}, ("", "/a", "/a/0"), {"": "streaming", "/a": "streaming", "/a/0": "streaming"})


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot({"a": "x", "b": "y"}, ("", "/a"), {"": "streaming"}),
        Snapshot({"a": 1}, ("", "/a"), {"": "streaming"}),
        Snapshot({"a": "x"}, ("/a",), {"": "streaming"}),
        Snapshot([[]], ("", "/1"), {"": "streaming"}),
        Snapshot([], ("", "/0"), {"": "streaming"}),
        Snapshot(None, ("",), {}),
    ],
)
def test_a_snapshot_whose_open_paths_lie_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(FoldError):
        Fold.restore(snapshot)


def test_snapshots_hold_finite_numbers_on_the_wire() -> None:
    fold = fold_ops(
        [
            OBJECT,
            Open("/a", "array"),
            Set("/a/0", float("-inf"), "-1e999"),
            Set("/a/1", True),
            Set("/a/2", 10**400, "1" + "0" * 400),
        ]
    )
    assert fold.snapshot().to_wire()["value"] == {"a": [-1.7976931348623157e308, True, 1.7976931348623157e308]}
    assert fold.value["a"][2] == 10**400


def test_coalescing_keeps_structure_and_other_paths() -> None:
    ops = [
        ARRAY,
        Open("/0", "string"),
        Text("/0", "a"),
        Text("/0", "b"),
        Close("/0"),
        Open("/1", "string"),
        Text("/1", "c"),
        Text("/1", "d"),
    ]
    assert coalesce(ops) == [ARRAY, Open("/0", "string"), Text("/0", "ab"), Close("/0"), Open("/1", "string"), Text("/1", "cd")]
    assert coalesce([]) == []
    assert coalesce([Text("", "a"), Text("/0", "b")]) == [Text("", "a"), Text("/0", "b")]


@pytest.mark.parametrize(
    ("op", "wire"),
    [
        (Field("/a", ("null", "string")), {"op": "field", "path": "/a", "types": ["null", "string"]}),
        (
            Field("/a", ("string",), "/properties/a", ("x", "y")),
            {"op": "field", "path": "/a", "types": ["string"], "schema_pointer": "/properties/a", "enum": ["x", "y"]},
        ),
        (Variant("/a", "/anyOf/0"), {"op": "variant", "path": "/a", "schema_pointer": "/anyOf/0"}),
        (Open("", "array"), {"op": "open", "path": "", "type": "array"}),
        (Text("/a", "é"), {"op": "text", "path": "/a", "add": "é"}),
        (Set("/a", None), {"op": "set", "path": "/a", "value": None}),
        (Set("/a", float("inf"), "1e400"), {"op": "set", "path": "/a", "value": 1.7976931348623157e308, "raw": "1e400"}),
        (Set("/a", 2**53 + 1, str(2**53 + 1)), {"op": "set", "path": "/a", "value": 2**53 + 1, "raw": str(2**53 + 1)}),
        (Close("/a"), {"op": "close", "path": "/a"}),
    ],
)
def test_ops_on_the_wire(op: Op, wire: dict[str, Any]) -> None:
    assert same(op.to_wire(), wire)
    assert same(from_wire(wire), op)


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"op": "replace", "path": ""},
        {"op": "open"},
        {"op": "open", "path": "", "type": "number"},
        {"op": "text", "path": 3, "add": "x"},
        {"op": "text", "path": "", "add": None},
        {"op": "set", "path": ""},
        {"op": "set", "path": "", "value": 1, "raw": "one"},
        {"op": "field", "path": "/a", "types": None},
    ],
)
def test_what_is_no_op_on_the_wire(wire: dict[str, Any]) -> None:
    with pytest.raises(FoldError, match=r"unknown op|malformed op"):
        from_wire(wire)
