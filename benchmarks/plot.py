"""Runs of benchmarks as pictures, and those of `mask_time.py` in Markdown: TTFM and TBM of all engines, on what all compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import BASE

POINTS = ("p50", "p90", "p99", "p99.9", "max")
# A title, and by name what it was at each point (None: nothing is known).
Panel = tuple[str, Mapping[str, Sequence[float | None]]]
TITLES = {"ttfm": "Time to first mask", "tbm": "Time between masks"}
AGAIN = ("again", "The same, walked once more")


def draw(data: dict[str, Any], path: Path) -> None:
    """Write the plot of a `summary`; the suffix of `path` decides the format. Times are on a logarithmic scale."""
    common = data["common"]
    panels: list[Panel] = [
        (title, {engine: [told[f"{name}_us"].get(point) for point in POINTS] for engine, told in common["engines"].items()})
        for name, title in TITLES.items()
    ]
    heading = f"{common['schemas']} schemas, {common['documents']} documents, {data['vocabulary_size']:,} tokens"
    lines(POINTS, panels, "", "microseconds", path, heading)


def lines(points: Sequence[str], panels: Sequence[Panel], x: str, y: str, path: Path, heading: str = "") -> None:
    """Write panels side by side, a line per name, on a logarithmic scale; the suffix of `path` decides the format."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Text stays text, and equal runs give equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "constrained"}):
        figure = Figure(figsize=(4.5 * len(panels), 4), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (title, values) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            for name, numbers in values.items():
                axes.plot(points, numbers, marker="o", label=name)
            axes.set_yscale("log")
            axes.set_title(title)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            axes.grid(visible=True, which="both", axis="y", alpha=0.3)
            axes.legend()
        figure.suptitle(heading)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def markdown(data: dict[str, Any]) -> str:
    """The times on what all engines compile and accept, in microseconds, and each engine's beside those of `BASE`."""
    parts = [_table(name, title, data["common"]["engines"]) for name, title in (*TITLES.items(), AGAIN)]
    return "\n\n".join(parts)


def _table(name: str, title: str, engines: dict[str, Any]) -> str:
    points = ("avg", *POINTS)
    rows = [f"| {title}, us | {' | '.join(points)} |", "|---" * (len(points) + 1) + "|"]
    for engine, told in engines.items():
        rows.append(_row(engine, [told[f"{name}_us"].get(point) for point in points]))
    for engine, told in engines.items():
        ratio = told.get(f"{name}_ratio")
        if ratio and engine != BASE:
            rows.append(_row(f"{engine} / {BASE}", [ratio.get(point) for point in points]))
    return "\n".join(rows)


def _row(title: str, values: list[float | None]) -> str:
    cells = ("" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in values)
    return f"| {title} | {' | '.join(cells)} |"
