"""From answers of engines to numbers and tables: verdicts against the flags, times over all and over what is comparable."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cases import Case

BASE = "llguidance"
TTFM_POINTS = ("n", "p50", "p90", "p99", "max")
TBM_POINTS = ("n", "avg", "p50", "p90", "p99", "p99.9", "max")
NUM_REASONS = 8


@dataclass(frozen=True, slots=True)
class Judged:
    """One engine's answer on one schema, held against the flags of its documents."""

    answer: dict[str, Any]
    wrongly_accepted: list[int]  # indices of documents
    wrongly_rejected: list[int]

    @property
    def compiled(self) -> bool:
        return "ttfm_ns" in self.answer

    @property
    def passes(self) -> bool:
        return self.compiled and not self.wrongly_accepted and not self.wrongly_rejected

    def times_ns(self, name: str, indices: Iterable[int]) -> list[int]:
        return [time for index in indices for time in self.answer["documents"][index][f"{name}_ns"]]


def judge(case: Case, answer: dict[str, Any]) -> Judged:
    """An engine's verdict on a document is whether it accepted every token and then the end."""
    pairs = list(enumerate(zip(case.documents, answer.get("documents", ()), strict=False)))
    accepted = [index for index, (document, told) in pairs if told["accepted"] and not document.valid]
    rejected = [index for index, (document, told) in pairs if not told["accepted"] and document.valid]
    return Judged(answer, accepted, rejected)


@dataclass(slots=True)
class Results:
    """All answers of a run: one dict of engine name to `Judged` per case."""

    engines: list[str]
    cases: list[Case] = field(default_factory=list)
    judged: list[dict[str, Judged]] = field(default_factory=list)

    def add(self, case: Case, answers: dict[str, dict[str, Any]]) -> None:
        self.cases.append(case)
        self.judged.append({name: judge(case, answer) for name, answer in answers.items()})

    def of(self, engine: str) -> list[tuple[Case, Judged]]:
        return [(case, judged[engine]) for case, judged in zip(self.cases, self.judged, strict=True)]


def summary(results: Results) -> dict[str, Any]:
    """Everything that the tables show, as plain data."""
    set_apart = sum((case.set_apart for case in results.cases), Counter())
    return {
        "schemas": len(results.cases),
        "documents": sum(len(case.documents) for case in results.cases),
        "valid_documents": sum(document.valid for case in results.cases for document in case.documents),
        "set_apart": dict(set_apart.most_common()),
        "engines": {engine: _engine_summary(results.of(engine)) for engine in results.engines},
        "common": _common(results),
    }


def _engine_summary(pairs: list[tuple[Case, Judged]]) -> dict[str, Any]:
    compiled = [(case, judged) for case, judged in pairs if judged.compiled]
    documents = [told for _, judged in compiled for told in judged.answer["documents"]]
    return {
        "compiled": len(compiled),
        "refused": _reasons(judged.answer["refused"] for _, judged in pairs if "refused" in judged.answer),
        "ended": _reasons(judged.answer["ended"] for _, judged in pairs if "ended" in judged.answer),
        "document_errors": _reasons(told["error"] for told in documents if told["error"] and not told["accepted"]),
        "documents": len(documents),
        "wrongly_accepted": sum(len(judged.wrongly_accepted) for _, judged in pairs),
        "wrongly_rejected": sum(len(judged.wrongly_rejected) for _, judged in pairs),
        "wrong_schemas": [case.id for case, judged in compiled if not judged.passes],
        "passing": sum(judged.passes for _, judged in pairs),
        "passing_share": _share(sum(judged.passes for _, judged in pairs), len(pairs)),
        "ttfm_us": _points([judged.answer["ttfm_ns"] for _, judged in compiled]),
        "tbm_us": _points([time for told in documents for time in told["tbm_ns"]]),
    }


def _common(results: Results) -> dict[str, Any]:
    """Times over the same work: schemas that every engine compiles, valid documents that every engine accepts."""
    pairs = zip(results.cases, results.judged, strict=True)
    rows = [(case, judged) for case, judged in pairs if all(each.compiled for each in judged.values())]
    indices = [_accepted_by_all(case, judged) for case, judged in rows]
    ttfm: dict[str, list[list[int]]] = {}
    between: dict[str, dict[str, list[list[int]]]] = {"tbm": {}, "again": {}}
    for engine in results.engines:
        ttfm[engine] = [[judged[engine].answer["ttfm_ns"]] for _, judged in rows]
        for name, times in between.items():
            times[engine] = [judged[engine].times_ns(name, chosen) for (_, judged), chosen in zip(rows, indices, strict=True)]
    engines = {
        engine: _compared("ttfm", ttfm[engine], ttfm.get(BASE))
        | _compared("tbm", between["tbm"][engine], between["tbm"].get(BASE))
        | _compared("again", between["again"][engine], between["again"].get(BASE))
        for engine in results.engines
    }
    return {"schemas": len(rows), "documents": sum(map(len, indices)), "engines": engines}


def _compared(name: str, times: list[list[int]], base: list[list[int]] | None) -> dict[str, Any]:
    """Points of the times (a list per schema), beside those of the base: over all, and within each schema."""
    points = _points([time for per_schema in times for time in per_schema])
    told: dict[str, Any] = {f"{name}_us": points}
    if base is not None:
        base_points = _points([time for per_schema in base for time in per_schema])
        told[f"{name}_ratio"] = {point: _share(value, base_points[point]) for point, value in points.items() if point != "n"}
        ratios = [np.mean(mine) / np.mean(other) for mine, other in zip(times, base, strict=True) if mine and other]
        told[f"{name}_ratio_by_schema"] = {f"p{q}": round(float(np.percentile(ratios, q)), 4) for q in (10, 50, 90) if ratios}
    return told


def _accepted_by_all(case: Case, judged: dict[str, Judged]) -> list[int]:
    return [
        index
        for index, document in enumerate(case.documents)
        if document.valid and all(each.answer["documents"][index]["accepted"] for each in judged.values())
    ]


def _points(times_ns: Sequence[int]) -> dict[str, float]:
    if not times_ns:
        return {}
    times = np.array(times_ns) / 1000
    shares = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9}
    quantiles = {name: round(float(np.percentile(times, share)), 3) for name, share in shares.items()}
    return {"n": len(times), "avg": round(float(times.mean()), 3), **quantiles, "max": round(float(times.max()), 3)}


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Counts by reason, the most frequent first; names and numbers inside a reason are left out."""
    return dict(Counter(map(_general, reasons)).most_common())


def _general(reason: str) -> str:
    line = reason.strip().split("\n")[0]
    line = re.sub(r"\S*[/\\]\S+\.(?:cc|h|cpp|rs):\d+", "", line)
    line = re.sub(r"\[\d\d:\d\d:\d\d\]\s*:?\s*", "", line)
    return re.sub(r"\s+", " ", re.sub(r"\d+(?:\.\d+)?", "N", line)).strip()[:100]


# Tables


def show(data: dict[str, Any], console: Console) -> None:
    """Prints the tables of a `summary`."""
    console.print(_verdicts(data))
    for name in ("refused", "ended", "document_errors"):
        _print_reasons(data, name, console)
    if data["set_apart"]:
        console.print("set apart: " + "; ".join(f"{count} {reason}" for reason, count in data["set_apart"].items()))
    console.print(_times("TTFM, each engine on what it compiles", data["engines"], "ttfm_us", TTFM_POINTS))
    console.print(_times("TBM, each engine on what it compiles", data["engines"], "tbm_us", TBM_POINTS))
    common = data["common"]
    alike = f"{common['schemas']} schemas that all compile"
    console.print(_times(f"TTFM on the {alike}", common["engines"], "ttfm_us", TTFM_POINTS))
    same = f"{common['documents']} valid documents that all accept"
    console.print(_times(f"TBM on the {same}", common["engines"], "tbm_us", TBM_POINTS))
    console.print(_times("TBM on the same, walked once more", common["engines"], "again_us", TBM_POINTS))


def _verdicts(data: dict[str, Any]) -> Table:
    table = Table(title=f"{data['schemas']} schemas, {data['documents']} instances ({data['valid_documents']} valid)")
    columns = ("compiled", "refused", "ended", "wrongly accepted", "wrongly rejected", "passing schemas", "share")
    for name in ("engine", *columns):
        table.add_column(name, justify="left" if name == "engine" else "right")
    for engine, told in data["engines"].items():
        refused, ended = sum(told["refused"].values()), sum(told["ended"].values())
        counts = (told["compiled"], refused, ended, told["wrongly_accepted"], told["wrongly_rejected"], told["passing"])
        table.add_row(f"{engine} {told.get('version', '')}", *map(str, counts), f"{told['passing_share']:.1%}")
    return table


def _print_reasons(data: dict[str, Any], name: str, console: Console) -> None:
    for engine, told in data["engines"].items():
        reasons = list(told[name].items())
        for reason, count in reasons[:NUM_REASONS]:
            console.print(f"{engine} {name.replace('_', ' ')}: {count} x {reason}", markup=False)
        if len(reasons) > NUM_REASONS:
            rest = sum(count for _, count in reasons[NUM_REASONS:])
            console.print(f"{engine} {name.replace('_', ' ')}: {rest} x {len(reasons) - NUM_REASONS} other reasons")


def _times(title: str, engines: dict[str, Any], name: str, points: tuple[str, ...]) -> Table:
    table = Table(title=f"{title}, microseconds")
    for column in ("engine", *points):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine, told in engines.items():
        table.add_row(engine, *(_number(told[name].get(point)) for point in points))
    for engine, told in engines.items():
        ratio = told.get(name.replace("_us", "_ratio"))
        if ratio and engine != BASE:
            table.add_row(f"{engine} / {BASE}", *(_number(ratio.get(point)) for point in points), style="dim")
    return table


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
