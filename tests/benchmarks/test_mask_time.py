"""A small run from end to end: real engines in their processes, a byte vocabulary, no network."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import vocabularies
from benchmarks.mask_time import How, main, run

HOW = How(limit_s=600.0)


@pytest.mark.parametrize("engine", ["ours", "llguidance", "xgrammar"])
def test_each_engine_is_right_on_what_it_compiles(engine: str, rows: list[dict[str, Any]]) -> None:
    if engine != "ours":
        pytest.importorskip(engine)
    told = run(rows[:3], vocabularies.load("byte"), [engine], HOW)["engines"][engine]
    assert told["compiled"] == told["passing"] == 3, told
    assert told["documents"] == 12
    assert told["version"]
    assert told["ttfm_us"]["n"] == 3
    assert told["tbm_us"]["n"] > 50


def test_engines_side_by_side(rows: list[dict[str, Any]], fake_engine: str) -> None:
    """Beside an engine that accepts nearly everything, whose mistakes must show."""
    pytest.importorskip("llguidance")
    data = run(rows, vocabularies.load("byte"), ["llguidance", fake_engine], HOW)
    assert (data["schemas"], data["documents"], data["valid_documents"]) == (4, 14, 7)
    good, bad = data["engines"]["llguidance"], data["engines"][fake_engine]
    assert (good["passing"], good["wrongly_accepted"], good["wrongly_rejected"]) == (3, 0, 0)
    assert good["refused"] == {'Unimplemented keys: ["not"]': 1}
    assert bad["wrongly_accepted"] == 6
    assert bad["wrongly_rejected"] == 2  # the two that hold a comma
    common = data["common"]
    assert (common["schemas"], common["documents"]) == (3, 4)
    assert common["engines"][fake_engine]["tbm_us"]["n"] == common["engines"]["llguidance"]["tbm_us"]["n"]


def test_the_command_prints_tables_and_one_line_of_json(
    tmp_path: Path, rows: list[dict[str, Any]], fake_engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    status = main(["--quick", "--vocabulary", "byte", "--data", str(path), "--engines", fake_engine, "--cpu", "-1"])
    *tables, last = capsys.readouterr().out.splitlines()
    assert status == 0
    assert any("wrongly accepted" in line for line in tables)
    data = json.loads(last)
    assert (data["vocabulary"], data["vocabulary_size"], data["schemas"]) == ("byte", 257, 4)


def test_an_unknown_engine_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--engines", "nothing"])
    assert "unknown engines: nothing" in capsys.readouterr().err
