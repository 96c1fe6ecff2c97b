"""Time to the first mask (TTFM) and between masks (TBM), ours beside llguidance and xgrammar, with what each gets wrong.

    python benchmarks/mask_time.py [--vocabulary llama3] [--schemas 200] [--seed 1] [--engines ours,llguidance,xgrammar]
        [--plot FILE.svg]

Method
    Data: MaskBench schemas with instances flagged valid or invalid (`benchmarks.cases`: how they are spelled, tokenised and
    checked). Each schema goes to all engines in turn, the first one changing from schema to schema, before the next schema is
    touched; so whatever else the machine does meets all engines alike. Each engine runs in a process of its own, which lives
    for the whole run, has one thread and one core (the same for all: only one of them works at a time), and sees the same
    token bytes. Each has compiled and walked one small schema before the first measured one.

    TTFM: from the text of the schema to the first mask: parse, compile, open a sequence, fill its first row.
    TBM: for each token of an instance, `accept_token` and the mask after it. Each instance is walked token by token: the
    token's bit must be set in the mask; after the last token the end-of-sequence bit must be. The walk stops where the bit
    is not set. All instances of a schema share one compiled grammar, so every engine may keep what it learned from earlier
    ones. Afterwards all are walked once more: what a schema costs that is in use ("again"). Each step is timed from Python,
    through the engine's own Python interface, with about 0.2 us of the loop's own. The clock is the wall's. `--clock cpu` takes
    the process's CPU time instead, for a machine that others use at the same time; it adds about 0.5 us to each time.
    `num_preemptions` says how often an engine was put aside.

    An engine's verdict on an instance is that the walk reached its end. "Wrongly accepted": an invalid instance accepted.
    "Wrongly rejected": a valid instance refused. A schema passes where the engine compiles it and has no wrong verdict.
    A schema that an engine refuses to compile counts as refused, under its own words; an engine that fails otherwise,
    dies or is over the time limit is counted as ended; its worker is started anew.

Bias
    Tables over "what it compiles" compare different sets: an engine that refuses the hard schemas looks faster there. The
    tables over what all compile and accept compare the same tokens. Options are the engines' defaults with flexible
    whitespace, except where `benchmarks.engines` says and why. All three generate properties in declared order, so valid
    instances in another order do not count (`--engines ours-any-order --any-order` judges those too, by our engine alone).
    MaskBench served the development of our engine, and may have served that of the others.

Prints tables, those of the times once more in Markdown, then one line of JSON. `--plot` draws them (matplotlib, of the `bench`
extra). Exit status 1 where our engine was wrong on any instance, 0 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from benchmarks import vocabularies
from benchmarks.cases import Case, build_case, read_rows, sample
from benchmarks.engines import MODULES
from benchmarks.engines.worker import CLOCKS, Options
from benchmarks.plot import draw, markdown
from benchmarks.report import Results, show, summary
from benchmarks.vocabularies import NamedVocabulary
from benchmarks.workers import Worker

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
QUICK_SCHEMAS = 12
OURS = ("ours", "ours-any-order")


@dataclass(frozen=True, slots=True)
class How:
    """How a run measures: the hard limit per schema and engine, the engines' core (None: any), the clock, the order of keys."""

    limit_s: float = 60.0
    cpu: int | None = None
    clock: str = "wall"
    any_order: bool = False


def measure(cases: Iterator[Case], workers: Sequence[Worker]) -> Results:
    """Every case through every worker, in turn."""
    results = Results([worker.engine for worker in workers])
    for number, case in enumerate(cases):
        documents = [document.token_ids for document in case.documents]
        turn = number % len(workers)
        in_turn = [*workers[turn:], *workers[:turn]]
        results.add(case, {worker.engine: worker.ask(case.schema, documents) for worker in in_turn})
    return results


def run(rows: list[dict[str, Any]], vocabulary: NamedVocabulary, engines: Sequence[str], how: How) -> dict[str, Any]:
    """The summary of a whole run."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "vocabulary.npz"
        vocabularies.write_vocabulary(vocabulary.vocabulary, path)
        workers = [
            Worker(Options(engine, path, vocabulary.tokenizer_file, how.clock), how.limit_s, how.cpu) for engine in engines
        ]
        try:
            for worker in workers:
                worker.start()
            shown = track(rows, "schemas", console=Console(stderr=True), disable=not sys.stderr.isatty())
            data = summary(measure((build_case(row, vocabulary, any_order=how.any_order) for row in shown), workers))
        finally:
            for worker in workers:
                worker.stop()
    for worker in workers:
        data["engines"][worker.engine] |= _about(worker)
    size = vocabulary.vocabulary.size
    return {"vocabulary": vocabulary.name, "vocabulary_size": size, "machine": about_machine(), **asdict(how), **data}


def _about(worker: Worker) -> dict[str, Any]:
    names = ("version", "start_s", "clock_ns", "num_starts", "num_preemptions", "peak_mb")
    return {name: getattr(worker, name) for name in names}


def about_machine() -> dict[str, Any]:
    return {"python": platform.python_version(), "cpu": _cpu_name(), "load": round(os.getloadavg()[0], 2)}


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vocabulary", choices=vocabularies.NAMES, default="llama3")
    parser.add_argument("--schemas", type=int, default=200, help="number of schemas drawn from the data; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument(
        "--engines", default="ours,llguidance,xgrammar", help="comma-separated: " + ", ".join(MODULES) + ", or a module's path"
    )
    parser.add_argument("--limit-s", type=float, default=60.0, help="hard limit per schema and engine")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="core that the engines run on; -1: any")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: for a machine that others use at the same time")
    parser.add_argument("--data", type=Path, default=DATA, help="a MaskBench file")
    parser.add_argument("--wrong", action="store_true", help="name the schemas on which our engine is wrong")
    parser.add_argument("--plot", type=Path, help="draw the percentiles of all engines into this file, an SVG or PNG")
    parser.add_argument("--any-order", action="store_true", help="instances count however their keys are ordered")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SCHEMAS} schemas: does it run at all")
    options = parser.parse_args(arguments)
    options.engines = options.engines.split(",")
    if unknown := [name for name in options.engines if name not in MODULES and "." not in name]:
        parser.error(f"unknown engines: {', '.join(unknown)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = sample(read_rows(options.data), QUICK_SCHEMAS if options.quick else options.schemas, options.seed)
    cpu = None if options.cpu < 0 else options.cpu
    how = How(options.limit_s, cpu, options.clock, options.any_order)
    data = run(rows, vocabularies.load(options.vocabulary), options.engines, how)
    console = Console(width=None if sys.stdout.isatty() else 140)
    show(data, console)
    print(markdown(data))
    if options.plot is not None:
        draw(data, options.plot)
    ours = [name for engine in OURS for name in data["engines"].get(engine, {"wrong_schemas": []})["wrong_schemas"]]
    if options.wrong:
        console.print("ours is wrong on: " + (", ".join(ours) or "none"), markup=False)
    print(json.dumps({"seed": options.seed, **data}))
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
