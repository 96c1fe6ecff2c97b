"""A small run of the batch benchmark; a side that is wrong must show."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import batch_accept, vocabularies


def run(rows: list[dict[str, Any]], sides: list[str]) -> dict[str, Any]:
    return batch_accept.run(rows, vocabularies.load("byte"), sides, 5, 2, 30, "cpu")


@pytest.mark.parametrize("sides", [["batch", "loop"], ["batch", "llguidance"]])
def test_all_sides_are_right(rows: list[dict[str, Any]], sides: list[str]) -> None:
    if "llguidance" in sides:
        pytest.importorskip("llguidance")
    data = run(rows, sides)
    assert (data["sequences"], data["schemas"], data["steps"]) == (5, 2, 30)
    for side in sides:
        assert data["sides"][side]["wrong_steps"] == 0
        assert 0 < data["sides"][side]["p50_us"] <= data["sides"][side]["max_us"]


def test_a_side_that_refuses_is_counted(rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    class Slack(batch_accept.Loop):
        """Accepts the first sequence's tokens twice."""

        def step(self, token_ids: list[int]) -> bool:
            self.matchers[0].accept_token(token_ids[0])
            return super().step(token_ids)

    monkeypatch.setitem(batch_accept.SIDES, "slack", Slack)
    monkeypatch.setattr(batch_accept, "_goes_through", lambda *_: True)
    data = run(rows, ["batch", "slack"])
    assert data["sides"]["batch"]["wrong_steps"] == 0
    assert data["sides"]["slack"]["wrong_steps"] > 0


def test_the_command_prints_a_table_and_one_line_of_json(
    tmp_path: Path, rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    command = ["--vocabulary", "byte", "--data", str(path), "--sides", "batch,loop", "--sequences", "3", "--steps", "4"]
    assert batch_accept.main(command) == 0
    *table, last = capsys.readouterr().out.splitlines()
    assert any("wrong steps" in line for line in table)
    assert set(json.loads(last)["sides"]) == {"batch", "loop"}
    with pytest.raises(SystemExit):
        batch_accept.main(["--sides", "nothing"])
