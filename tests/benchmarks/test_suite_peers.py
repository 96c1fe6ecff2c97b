"""The table of peers: which texts of an instance are tried, how verdicts count, and a small suite from end to end."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.suite_peers import Count, Tally, declared, run, table, texts

GROUP = {"description": "g", "tests": [{"description": "a", "valid": True}, {"description": "b", "valid": False}]}


def test_names_are_declared_where_they_are_met_first_and_required_ones_last() -> None:
    schema = {
        "required": ["z", "b"],
        "properties": {"b": {}, "a": {"properties": {"c": {}}}},
        "allOf": [{"properties": {"d": {}}}],
    }
    assert declared(schema) == ["b", "a", "c", "d", "z"]


def test_an_instance_is_tried_as_it_stands_and_in_declared_order() -> None:
    schema = {"properties": {"b": {}, "a": {}}}
    assert texts(schema, {"a": 1.0, "x": [2.5], "b": True}) == [
        b'{"a": 1, "x": [2.5], "b": true}',
        b'{"b": true, "a": 1, "x": [2.5]}',
    ]
    assert texts(schema, {"b": 1}) == [b'{"b": 1}']
    assert texts(True, "é") == [b'"\\u00e9"', '"é"'.encode()]


def test_verdicts_are_counted() -> None:
    tally = Tally()
    tally.add("one", "k", GROUP, [True, False])
    tally.add("one", "k", GROUP, [False, True])
    tally.add("one", "j", GROUP, None)
    assert tally.counts["one"] == {"k": Count(2, 0, 2), "j": Count(0, 2, 0)}
    assert tally.wrong["one"] == ["k: g: a", "k: g: b"]
    assert table(tally, {"one": "1.0"}).split("\n")[2:] == ["| `k` | 2 / 0 / 2 |", "| `j` | 0 / 2 / 0 |", "| all | 2 / 2 / 2 |"]


def test_a_small_suite_from_end_to_end(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "draft2020-12"
    folder.mkdir(parents=True)
    (tmp_path / "remotes").mkdir()
    (tmp_path / "remotes" / "whole.json").write_text('{"type": "integer"}')
    suite = {
        "type": ({"type": "integer"}, [(1.0, True), ("1", False)]),
        "not": ({"not": {}}, [(1, False)]),
        "ref": ({"items": {"$ref": "http://localhost:1234/whole.json"}}, [([1], True), (["a"], False)]),
        "bad": ({"minimum": "a"}, [(1, True)]),
    }
    for name, (schema, tests) in suite.items():
        cases = [{"description": str(data), "data": data, "valid": valid} for data, valid in tests]
        (folder / f"{name}.json").write_text(json.dumps([{"description": name, "schema": schema, "tests": cases}]))
    tally, versions = run(tmp_path, "draft2020-12", ["ours"], 60.0)
    assert tally.counts["ours"] == {"bad": Count(0, 1, 0), "not": Count(1, 0, 0), "ref": Count(2, 0, 0), "type": Count(2, 0, 0)}
    assert versions["ours"]
