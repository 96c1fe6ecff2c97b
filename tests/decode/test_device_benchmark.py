"""The device benchmark runs at small shapes on a CPU, judges its answers, and refuses to measure there."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.decode_runs import CheckError
from benchmarks.device import SMALL, Bench, main, make_model, random_table


def test_it_runs_and_prints_a_table_and_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small", "--device", "cpu", "--batches", "1,3", "--steps", "2", "--context", "40"]) == 0
    result = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert [row["batch"] for row in result["rows"]] == [1, 3]
    assert all(row["masked_ms"] > 0 and row["graph_ratio"] > 0 for row in result["rows"])


def test_a_mask_that_is_not_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(make_model(SMALL, torch.device("cpu")), 2, 20, random_table(8, SMALL["vocab_size"]))
    bench.check()
    monkeypatch.setattr(bench, "masked", bench.free)
    with pytest.raises(CheckError):
        bench.check()
    bench.runner.close()


def test_a_replay_that_differs_and_a_step_that_is_not_recorded_are_seen() -> None:
    bench = Bench(make_model(SMALL, torch.device("cpu")), 3, 20, random_table(8, SMALL["vocab_size"]))
    bench.check()
    graphs = bench.runner.graphs
    assert graphs is not None
    assert graphs.num_replays == 3
    for memory, _ in graphs._recordings.values():
        with torch.inference_mode():
            memory.step.token_ids.fill_(3)
        memory.fill = lambda *_: None  # type: ignore[method-assign]
    with pytest.raises(CheckError, match="differ"):
        bench.check()
    graphs.is_broken = True
    with pytest.raises(CheckError, match="recorded"):
        bench.check()
    bench.runner.close()


def test_a_cpu_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu"]) == 2
    assert "--small" in capsys.readouterr().err
