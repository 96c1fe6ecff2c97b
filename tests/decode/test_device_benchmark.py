"""The device benchmark runs at small shapes on a CPU, judges its answers, and refuses to measure there."""

from __future__ import annotations

import json

import pytest

from benchmarks.decode_runs import CheckError
from benchmarks.device import SMALL, Bench, main, make_model, random_table


def test_it_runs_and_prints_a_table_and_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small", "--device", "cpu", "--batches", "1,3", "--steps", "2", "--context", "40"]) == 0
    result = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert [row["batch"] for row in result["rows"]] == [1, 3]
    assert all(row["masked_ms"] > 0 for row in result["rows"])


def test_a_mask_that_is_not_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    bench = Bench(make_model(SMALL, torch.device("cpu")), 2, 20, random_table(8, SMALL["vocab_size"]))
    bench.check()
    monkeypatch.setattr(bench, "masked", bench.free)
    with pytest.raises(CheckError):
        bench.check()
    bench.runner.close()


def test_a_cpu_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu"]) == 2
    assert "--small" in capsys.readouterr().err
