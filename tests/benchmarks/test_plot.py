"""The picture and the Markdown tables of a run show every engine's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.plot import draw, markdown
from benchmarks.report import summary
from tests.benchmarks.test_report import results


@pytest.fixture
def data() -> dict[str, Any]:
    return {"vocabulary_size": 257, **summary(results())}


def test_the_tables_hold_times_and_ratios(data: dict[str, Any]) -> None:
    text = markdown(data)
    first, second, third = text.split("\n\n")
    assert "| Time to first mask, us | avg | p50 | p90 | p99 | p99.9 | max |" in first.splitlines()
    assert "| ours | 10 | 10 | 10 | 10 | 10 | 10 |" in first.splitlines()
    assert "| llguidance | 40 | 40 | 40 | 40 | 40 | 40 |" in first.splitlines()
    assert "| ours / llguidance | 0.25 | 0.25 | 0.25 | 0.25 | 0.25 | 0.25 |" in first.splitlines()
    assert "| ours | 2 | 2 |" in second
    assert "| The same, walked once more, us | avg |" in third
    assert "| ours | 1 | 1 |" in third
    assert all(line.count("|") == 8 for line in text.splitlines() if line)


def test_the_plot_names_every_engine(data: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "times.svg"
    draw(data, path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    for words in ("ours", "llguidance", "Time to first mask", "Time between masks", "p99.9"):
        assert words in text, words
    again = tmp_path / "again.svg"
    draw(data, again)
    assert again.read_text(encoding="utf-8") == text
