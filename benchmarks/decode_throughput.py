"""Tokens per second of the decoding engine: with a schema, without, and of transformers' own `generate`.

    python benchmarks/decode_throughput.py [--quick] [--batches 1,8,16,32] [--tokens 128] [--rounds 3] [--threads 2]

Method
    One model, one dtype, one process, the same chat prompts for all sides. For each batch size the sides take turns, round
    by round, so that whatever else the machine does meets all of them; a side's figure is the median of its rounds.
    "generate" is transformers' batched `generate` (dynamic cache, SDPA, prompts padded on the left). "free" is our engine
    without a schema, end-of-sequence ignored: it decodes as many tokens as generate, exactly `--tokens` per sequence.
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
import time
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

from constrained import compile_json_schema
from constrained.decode.async_engine import AsyncEngine, Generation
from constrained.decode.model import LoadedModel, load_model
from constrained.decode.options import EngineOptions
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from constrained.decode.stats import EngineStats

if TYPE_CHECKING:
    from constrained import CompiledGrammar

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "maxLength": 40},
        "hobbies": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "maxLength": 40},
                    "level": {"enum": ["beginner", "intermediate", "expert"]},
                },
                "required": ["title", "level"],
                "additionalProperties": False,
            },
        },
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string", "maxLength": 40}, "zip": {"type": "string", "maxLength": 10}},
            "required": ["street", "zip"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "city", "hobbies", "address"],
    "additionalProperties": False,
}
PEOPLE = ("a nurse from Lyon", "a retired sailor", "a student of physics", "a baker with three cats")
EXACT_TOKENS, EXACT_PROMPTS = 16, 4


@dataclass(frozen=True, slots=True)
class Run:
    """One timed batch of one side."""

    seconds: float
    chunks: list[Chunk]

    @property
    def num_tokens(self) -> int:
        return sum(len(chunk.token_ids) for chunk in self.chunks)

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens per second by side, and what masks cost, at one batch size."""

    batch: int
    generate: float
    free: float
    same: float
    schema: float
    free_to_generate: float
    schema_to_same: float
    schema_tokens: int
    closed_by_budget: int
    mask_share: float
    mask_wait_share: float
    sample_share: float


class CheckError(Exception):
    """A side gave a wrong answer; its speed means nothing."""


def prompts(model: LoadedModel, count: int) -> list[list[int]]:
    texts = [f"Describe {PEOPLE[i % len(PEOPLE)]}, number {i}, as a JSON object." for i in range(count)]
    return [model.encode_chat([{"role": "user", "content": text}]) for text in texts]


async def read(generation: Generation) -> Chunk:
    """All chunks as one, taken one by one as a service does."""
    parts: list[Chunk] = [chunk async for chunk in generation]
    last = parts[-1]
    if last.error is not None:
        raise last.error
    token_ids = tuple(token for part in parts for token in part.token_ids)
    return Chunk(b"".join(part.data for part in parts), token_ids, last.finish_reason, None, last.usage)


async def run_engine(
    engine: AsyncEngine, batch: list[list[int]], lengths: Sequence[int], grammar: CompiledGrammar | None
) -> Run:
    started = time.perf_counter()
    generations = [
        engine.submit(prompt, SamplingParams(temperature=0, max_tokens=length), grammar)
        for prompt, length in zip(batch, lengths, strict=True)
    ]
    chunks = list(await asyncio.gather(*map(read, generations)))
    return Run(time.perf_counter() - started, chunks)


def run_generate(model: LoadedModel, batch: list[list[int]], num_tokens: int) -> Run:
    longest = max(map(len, batch))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in batch])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in batch])
    started = time.perf_counter()
    out = model.hf.generate(  # type: ignore[operator]
        ids, attention_mask=mask, max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False, pad_token_id=0
    )
    seconds = time.perf_counter() - started
    return Run(seconds, [Chunk(b"", tuple(row)) for row in out[:, longest:].tolist()])


def check_lengths(run: Run, lengths: Sequence[int], side: str) -> None:
    got = [len(chunk.token_ids) for chunk in run.chunks]
    if got != list(lengths):
        raise CheckError(f"{side} decoded {got} tokens instead of {list(lengths)}")


def check_documents(run: Run, grammar: CompiledGrammar) -> None:
    for chunk in run.chunks:
        if chunk.finish_reason == "stop":
            jsonschema.validate(json.loads(chunk.data), PERSON)
        elif not grammar.matcher().accept_bytes(chunk.data):
            raise CheckError(f"not a prefix of any document: {chunk.data!r}")


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


def endless(model: LoadedModel) -> LoadedModel:
    """The same model with no end of sequence, so that free text has the length that is asked for."""
    return replace(model, eos_token_ids=frozenset())


async def measure(engine: AsyncEngine, other: LoadedModel, grammar: CompiledGrammar, size: int, options: Any) -> Row:
    batch, lengths = prompts(other, size), [options.tokens] * size
    rates: dict[str, list[float]] = {"generate": [], "free": [], "same": [], "schema": []}
    shares: list[tuple[float, float, float]] = []
    for _ in range(options.rounds):
        other_run = run_generate(other, batch, options.tokens)
        free = await run_engine(engine, batch, lengths, None)
        before = engine.stats()
        schema = await run_engine(engine, batch, lengths, grammar)
        shares.append(step_shares(before, engine.stats()))
        schema_lengths = [len(chunk.token_ids) for chunk in schema.chunks]
        same = await run_engine(engine, batch, schema_lengths, None)
        check_lengths(other_run, lengths, "generate")
        check_lengths(free, lengths, "free")
        check_lengths(same, schema_lengths, "same")
        check_documents(schema, grammar)
        for side, run in (("generate", other_run), ("free", free), ("same", same), ("schema", schema)):
            rates[side].append(run.tokens_per_s)
    middle = {side: statistics.median(values) for side, values in rates.items()}
    mask, wait, sample = (statistics.median(values) for values in zip(*shares, strict=True))
    return Row(
        batch=size,
        **middle,
        free_to_generate=statistics.median(a / b for a, b in zip(rates["free"], rates["generate"], strict=True)),
        schema_to_same=statistics.median(a / b for a, b in zip(rates["schema"], rates["same"], strict=True)),
        schema_tokens=schema.num_tokens,
        closed_by_budget=sum(chunk.usage.closed_by_budget for chunk in schema.chunks),
        mask_share=mask,
        mask_wait_share=wait,
        sample_share=sample,
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


async def run_all(options: argparse.Namespace) -> list[Row]:
    sizes = [int(size) for size in options.batches.split(",")]
    await check_exact(options.model)
    ours, other = load_model(options.model), load_model(options.model)
    grammar = compile_json_schema(PERSON, ours.vocabulary)
    engine = AsyncEngine(endless(ours), EngineOptions(SchedulerLimits(max_running=max(sizes)), kv_bytes=1 << 30))
    await run_engine(engine, prompts(ours, 2), [options.tokens] * 2, grammar)
    run_generate(other, prompts(other, 2), 8)
    rows = []
    for size in sizes:
        rows.append(await measure(engine, other, grammar, size, options))
        print(f"batch {size} done", file=sys.stderr)
    await engine.close()
    return rows


def show(rows: list[Row]) -> None:
    table = Table(title="tokens/s (median of rounds; ratios are medians of each round's own)")
    heads = (
        "batch",
        "generate",
        "free",
        "same",
        "schema",
        "free/generate",
        "schema/same",
        "masks",
        "waits",
        "sampling",
        "closed",
    )
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            str(row.batch),
            *(f"{value:.1f}" for value in (row.generate, row.free, row.same, row.schema)),
            *(f"{value:.2f}" for value in (row.free_to_generate, row.schema_to_same)),
            *(f"{value:.1%}" for value in (row.mask_share, row.mask_wait_share, row.sample_share)),
            f"{row.closed_by_budget}/{row.batch}",
        )
    Console(width=140).print(table)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="folder or hub id; the default model where not given")
    parser.add_argument("--batches", default="1,8,16,32")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="batches 1 and 4, one round: a smoke test, no measurement")
    options = parser.parse_args(argv)
    if options.quick:
        options.batches, options.tokens, options.rounds = "1,4", 96, 1
    torch.set_num_threads(options.threads)
    started_load = os.getloadavg()[0]
    try:
        rows = asyncio.run(run_all(options))
    except (CheckError, jsonschema.ValidationError) as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    show(rows)
    context = {"threads": options.threads, "cpus": os.cpu_count(), "tokens": options.tokens, "load_at_start": started_load}
    print(json.dumps({"benchmark": "decode_throughput", **context, "rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
