"""The hard schemas compile and take their documents; a document that is not valid shows."""

from __future__ import annotations

import json

import pytest

from benchmarks import vocabularies
from benchmarks.hard_schemas import COLUMNS, SCHEMAS, Hard, main, measure


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_takes_its_document(name: str) -> None:
    told = measure(SCHEMAS[name](), vocabularies.load("byte"), runs=1)
    assert tuple(told) == COLUMNS
    assert told["steps"] > 20
    assert told["compile_ms"] > 0 < told["p50_us"] <= told["p99_us"] <= told["max_us"]


def test_a_document_that_is_not_valid_is_an_error() -> None:
    with pytest.raises(ValueError, match="not valid"):
        measure(Hard({"type": "integer"}, "x"), vocabularies.load("byte"), runs=1)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--vocabularies", "byte", "--runs", "1", "--only", "oneOf 8 x 8"]) == 0
    *rows, last = capsys.readouterr().out.strip().splitlines()
    assert rows[0] == "| byte | steps | compile ms | p50 us | p99 us | max us | first max us |"
    assert json.loads(last)["byte"]["oneOf 8 x 8"]["steps"] > 20
