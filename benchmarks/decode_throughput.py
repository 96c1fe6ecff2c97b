"""Tokens per second of the decoding engine: with a schema, without, and of transformers' own `generate`.

    python benchmarks/decode_throughput.py [--quick] [--batches 1,8,16,32] [--tokens 128] [--rounds 3] [--threads 2]
        [--sides generate,batching,agnostic,free,schema] [--measures bandwidth,busy,document,host,ttft,gap,lookup,cancel]
        [--plot FILE.svg]

Method
    One model, one dtype, one process, the same chat prompts for all sides. For each batch size the sides take turns, round
    by round, so that whatever else the machine does meets all of them; a side's figure is the median of its rounds.
    "generate" is transformers' batched `generate` (dynamic cache, SDPA, prompts padded on the left). "free" is our engine
    without a schema, end-of-sequence ignored: it decodes as many tokens as generate, exactly `--tokens` per sequence.
    "agnostic" is the same without the fused forward pass: the path that any architecture takes. "batching" is transformers'
    continuous batching (`generate_batch`). Prompts are computed anew each time: prefix caching is off for all of these.
    "Decode only" leaves the prefill out: the tokens after the first, over the time beyond that of a run of one token each.
    `--measures` adds a third table, see `decode_measures.py`; "none" leaves it out.
    "schema" is our engine under the schema of a person. A document ends where it is complete, so its lengths are its own;
    "same" is our engine without a schema on the very same lengths, the fair partner of "schema". Times are wall clock from
    the first submit to the last chunk, prefill included, and tokens are counted as delivered. All decode greedily.

Checks, each fatal
    Every document that ended is valid by `jsonschema`; one cut by its budget is a prefix that the grammar accepts. Lengths
    are what the method says. In float32 our greedy tokens equal those of `generate` on every prompt of a small batch.

Bias
    Static batches, which suit `generate`: requests that come and go would make it wait for its longest. The engine streams
    every token to an event loop while it is timed; generate returns all at the end.

Prints a table, then one line of JSON. Exit status 1 where a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Read when the OpenMP library loads: threads that spin while they wait would take each other's core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

import jsonschema
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.decode_measures import MEASURES, Bench, Measure, run_measures
from benchmarks.decode_runs import (
    PERSON,
    CheckError,
    Run,
    check_documents,
    check_lengths,
    endless,
    prompts,
    run_batching,
    run_engine,
    run_generate,
)
from constrained import compile_json_schema, warm_up
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.model import LoadedModel, load_model
from constrained.decode.options import EngineOptions
from constrained.decode.scheduler import SchedulerLimits
from constrained.decode.stats import EngineStats

if TYPE_CHECKING:
    from constrained import CompiledGrammar

EXACT_TOKENS, EXACT_PROMPTS = 16, 4


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens per second by side, and what masks cost, at one batch size."""

    batch: int
    generate: float | None
    batching: float | None
    agnostic: float | None
    free: float
    same: float | None
    schema: float | None
    free_to_generate: float | None
    agnostic_to_generate: float | None
    free_to_batching: float | None
    schema_to_same: float | None
    schema_tokens: int
    closed_by_budget: int
    mask_share: float
    mask_wait_share: float
    sample_share: float
    decode_only: dict[str, float]  # tokens a second by side


async def check_exact(name: str | None) -> None:
    """In float32, where no near-tie hangs on the order of sums, our greedy tokens are those of generate."""
    ours, theirs = load_model(name, dtype="float32"), load_model(name, dtype="float32")
    engine = AsyncEngine(endless(ours))
    batch = prompts(ours, EXACT_PROMPTS)
    run = await run_engine(engine, batch, [EXACT_TOKENS] * len(batch), None)
    await engine.close()
    for prompt, chunk in zip(batch, run.chunks, strict=True):
        expected = run_generate(theirs, [prompt], EXACT_TOKENS).chunks[0]
        if chunk.token_ids != expected.token_ids:
            raise CheckError(f"greedy tokens {chunk.token_ids} differ from generate's {expected.token_ids}")


Shares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Sides:
    """The engines and models that take turns; a side that was not asked for is None."""

    engine: AsyncEngine
    agnostic: AsyncEngine | None
    other: LoadedModel
    grammar: CompiledGrammar
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of every side; `first` are runs of one token each."""

    runs: dict[str, Run]
    first: dict[str, Run]
    shares: Shares

    def decode_only(self, side: str) -> float:
        whole, first = self.runs[side], self.first[side]
        return (whole.num_tokens - first.num_tokens) / (whole.seconds - first.seconds)


async def run_round(sides: Sides, batch: list[list[int]], lengths: list[int]) -> Round:
    """One turn of every side, checked; and the shares of the steps under the schema."""
    runs, first = await run_sides(sides, batch, lengths), await run_sides(sides, batch, [1] * len(batch))
    shares = (0.0, 0.0, 0.0)
    if "schema" in sides.names:
        before = sides.engine.stats()
        runs["schema"] = await run_engine(sides.engine, batch, lengths, sides.grammar)
        shares = step_shares(before, sides.engine.stats())
        check_documents(runs["schema"], sides.grammar)
        schema_lengths = [len(chunk.token_ids) for chunk in runs["schema"].chunks]
        runs["same"] = await run_engine(sides.engine, batch, schema_lengths, None)
        check_lengths(runs["same"], schema_lengths, "same")
    return Round(runs, first, shares)


async def run_sides(sides: Sides, batch: list[list[int]], lengths: list[int]) -> dict[str, Run]:
    """Those that decode as many tokens as they are told, and no others."""
    runs = {"free": await run_engine(sides.engine, batch, lengths, None)}
    if "generate" in sides.names:
        runs["generate"] = run_generate(sides.other, batch, lengths[0])
    if "batching" in sides.names:
        runs["batching"] = run_batching(sides.other, batch, lengths[0])
    if sides.agnostic is not None:
        runs["agnostic"] = await run_engine(sides.agnostic, batch, lengths, None)
    for side, run in runs.items():
        check_lengths(run, lengths, side)
    return runs


async def measure(sides: Sides, size: int, options: Any) -> Row:
    batch, lengths = prompts(sides.other, size), [options.tokens] * size
    rounds = [await run_round(sides, batch, lengths) for _ in range(options.rounds)]
    schema = rounds[-1].runs.get("schema")
    mask, wait, sample = (statistics.median(values) for values in zip(*(each.shares for each in rounds), strict=True))

    def rate(side: str) -> float | None:
        return statistics.median(each.runs[side].tokens_per_s for each in rounds) if side in rounds[0].runs else None

    def ratio(a: str, b: str) -> float | None:
        if a not in rounds[0].runs or b not in rounds[0].runs:
            return None
        return statistics.median(each.runs[a].tokens_per_s / each.runs[b].tokens_per_s for each in rounds)

    return Row(
        batch=size,
        generate=rate("generate"),
        batching=rate("batching"),
        agnostic=rate("agnostic"),
        free=rate("free") or 0.0,
        same=rate("same"),
        schema=rate("schema"),
        free_to_generate=ratio("free", "generate"),
        agnostic_to_generate=ratio("agnostic", "generate"),
        free_to_batching=ratio("free", "batching"),
        schema_to_same=ratio("schema", "same"),
        schema_tokens=schema.num_tokens if schema is not None else 0,
        closed_by_budget=sum(chunk.usage.closed_by_budget for chunk in schema.chunks) if schema is not None else 0,
        mask_share=mask,
        mask_wait_share=wait,
        sample_share=sample,
        decode_only={side: statistics.median(each.decode_only(side) for each in rounds) for side in rounds[0].first},
    )


def step_shares(before: EngineStats, after: EngineStats) -> tuple[float, float, float]:
    """Of the steps' time: masks (beside the forward pass), waiting for masks, sampling."""
    steps = after.step_ms - before.step_ms
    parts: tuple[Callable[[EngineStats], float], ...] = (
        lambda s: s.mask_ms,
        lambda s: s.mask_wait_ms,
        lambda s: s.sample_ms,
    )
    mask, wait, sample = ((part(after) - part(before)) / steps for part in parts)
    return mask, wait, sample


async def run_all(options: argparse.Namespace) -> tuple[list[Row], list[Measure]]:
    sizes = [int(size) for size in options.batches.split(",") if size]
    names = tuple(options.sides.split(","))
    await check_exact(options.model)
    ours = load_model(options.model)
    warm_up(ours.vocabulary)  # as a server does; the collector no longer looks through what has been loaded
    rows = await run_rows(ours, sizes, names, options) if sizes else []
    show(rows, [])  # a check that fails later takes nothing away
    chosen = [] if options.measures == "none" else options.measures.split(",")
    return rows, await run_measures(Bench(ours, options.rounds, options.tokens), chosen)


async def run_rows(ours: LoadedModel, sizes: list[int], names: tuple[str, ...], options: argparse.Namespace) -> list[Row]:
    other = load_model(options.model)
    grammar = compile_json_schema(PERSON, ours.vocabulary)
    settings = EngineOptions(SchedulerLimits(max_running=max(sizes)), kv_bytes=1 << 30, prefix_caching=False)
    engine = AsyncEngine(endless(ours), settings)
    agnostic = None
    if "agnostic" in names:
        agnostic = AsyncEngine(endless(load_model(options.model)), replace(settings, fuse=False))
    sides = Sides(engine, agnostic, other, grammar, names)
    await run_round(sides, prompts(ours, 2), [8] * 2 if "schema" not in names else [options.tokens] * 2)
    rows = []
    for size in sizes:
        rows.append(await measure(sides, size, options))
        print(f"batch {size} done", file=sys.stderr)
    await engine.close()
    if agnostic is not None:
        await agnostic.close()
    return rows


RATES = ("generate", "batching", "agnostic", "free", "same", "schema")
RATIOS = ("free_to_generate", "agnostic_to_generate", "free_to_batching", "schema_to_same")


def show(rows: list[Row], measures: list[Measure]) -> None:
    console = Console(width=160)
    if rows:
        table = Table(title="tokens/s (median of rounds; ratios are medians of each round's own)")
        for head in (
            "batch",
            *RATES,
            *(ratio.replace("_to_", "/") for ratio in RATIOS),
            "masks",
            "waits",
            "sampling",
            "closed",
        ):
            table.add_column(head, justify="right")
        for row in rows:
            table.add_row(
                str(row.batch),
                *(_cell(getattr(row, name), ".1f") for name in RATES),
                *(_cell(getattr(row, name), ".2f") for name in RATIOS),
                *(f"{value:.1%}" for value in (row.mask_share, row.mask_wait_share, row.sample_share)),
                f"{row.closed_by_budget}/{row.batch}",
            )
        console.print(table)
        console.print(decode_only_table(rows))
    if measures:
        table = Table("measure", "value", "aim", "made of", title="other measures")
        for each in measures:
            table.add_row(each.name, f"{each.value:.3g}", each.aim, each.detail)
        console.print(table)


def decode_only_table(rows: list[Row]) -> Table:
    sides = [side for side in RATES if side in rows[0].decode_only]
    heads = [f"{side}/generate" for side in sides if side != "generate"] if "generate" in sides else []
    table = Table("batch", *sides, *heads, title="decode only, tokens/s")
    for row in rows:
        rates = [row.decode_only[side] for side in sides]
        ratios = [row.decode_only[head.partition("/")[0]] / row.decode_only["generate"] for head in heads]
        table.add_row(str(row.batch), *(f"{value:.1f}" for value in rates), *(f"{value:.2f}" for value in ratios))
    return table


def draw(rows: list[Row], path: Path) -> None:
    """Tokens a second against the batch, by side."""
    from benchmarks.plot import lines

    sides = {side: [getattr(row, side) for row in rows] for side in RATES if getattr(rows[0], side) is not None}
    lines([str(row.batch) for row in rows], [("Throughput", sides)], "sequences in the batch", "tokens a second", path)


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="folder or hub id; the default model where not given")
    parser.add_argument("--batches", default="1,8,16,32")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sides", default="generate,agnostic,free,schema", help="also: batching")
    parser.add_argument("--measures", default=",".join(MEASURES), help="of these, or none")
    parser.add_argument("--plot", type=Path, help="draw tokens a second by batch (matplotlib, of the `bench` extra)")
    parser.add_argument("--quick", action="store_true", help="batches 1 and 4, one round: a smoke test, no measurement")
    options = parser.parse_args(argv)
    if options.quick:
        options.batches, options.tokens, options.rounds, options.measures = "1,4", 96, 1, "none"
    torch.set_num_threads(options.threads)
    started_load = os.getloadavg()[0]
    try:
        rows, measures = asyncio.run(run_all(options))
    except (CheckError, jsonschema.ValidationError) as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    show([], measures)
    if options.plot is not None:
        draw(rows, options.plot)
    context = {"threads": options.threads, "cpus": os.cpu_count(), "tokens": options.tokens, "load_at_start": started_load}
    results = {"rows": [asdict(row) for row in rows], "measures": [asdict(each) for each in measures]}
    print(json.dumps({"benchmark": "decode_throughput", **context, **results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
