"""A run of `mask_time.py` as a picture and in Markdown: percentiles of TTFM and TBM of all engines, on what all compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report import BASE

POINTS = ("p50", "p90", "p99", "p99.9", "max")
TITLES = {"ttfm": "Time to first mask", "tbm": "Time between masks"}


def draw(data: dict[str, Any], path: Path) -> None:
    """Write the plot of a `summary`; the suffix of `path` decides the format. Times are on a logarithmic scale."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Text stays text, and equal runs give equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "constrained"}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, name in zip(figure.subplots(1, 2), TITLES, strict=True):
            _panel(axes, name, data["common"]["engines"])
        common = data["common"]
        figure.suptitle(f"{common['schemas']} schemas, {common['documents']} documents, {data['vocabulary_size']:,} tokens")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Any, name: str, engines: dict[str, Any]) -> None:
    """One measure: a line per engine, marked at each percentile."""
    for engine, told in engines.items():
        times = [told[f"{name}_us"].get(point) for point in POINTS]
        axes.plot(POINTS, times, marker="o", label=engine)
    axes.set_yscale("log")
    axes.set_title(TITLES[name])
    axes.set_ylabel("microseconds")
    axes.grid(visible=True, which="both", axis="y", alpha=0.3)
    axes.legend()


def markdown(data: dict[str, Any]) -> str:
    """The times on what all engines compile and accept, in microseconds, and each engine's beside those of `BASE`."""
    parts = [_table(name, data["common"]["engines"]) for name in TITLES]
    return "\n\n".join(parts)


def _table(name: str, engines: dict[str, Any]) -> str:
    points = ("avg", *POINTS)
    rows = [f"| {TITLES[name]}, us | {' | '.join(points)} |", "|---" * (len(points) + 1) + "|"]
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
