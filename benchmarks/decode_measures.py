"""What the decoding engine is held to beside its throughput, each as a ratio within one run; see `decode_throughput.py`.

Every measure checks its own answers first: tokens equal, documents valid, prompts found again.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import jsonschema
import torch

from benchmarks.decode_runs import PERSON, CheckError, Run, check_documents, check_lengths, endless, prompts, read, run_engine
from constrained import CompileOptions, compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.model import LoadedModel
from constrained.decode.options import EngineOptions
from constrained.decode.request import SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from constrained.decode.speculation import Speculation
from constrained.decode.stats import PARTS

T = TypeVar("T")
HOST_PARTS = tuple(part for part in PARTS if part not in ("forward_ms", "step_ms"))
LONG_PROMPT, SHARED_PROMPT, STREAMS = 2000, 1000, 4
FIELDS = {"name": "Ada Lovelace", "city": "London", "street": "12 St James's Square", "email": "ada@analytical.example"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure beside its aim; `detail` says what it is made of."""

    name: str
    value: float
    aim: str
    detail: str


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measure needs: the model, and how much to run."""

    model: LoadedModel
    rounds: int
    tokens: int


async def with_engine(model: LoadedModel, action: Callable[[AsyncEngine], Awaitable[T]], **options: Any) -> T:
    """Run `action` in an engine of its own, warmed up."""
    engine = AsyncEngine(model, EngineOptions(**({"kv_bytes": 1 << 30} | options)))
    try:
        await run_engine(engine, [[1, 2, 3]], [4], None)
        return await action(engine)
    finally:
        await engine.close()


def filler(model: LoadedModel, num_tokens: int, seed: int) -> list[int]:
    """A prompt of exactly that many tokens, with a beginning that no other seed has."""
    text = f"Report {seed}. " + " ".join(
        f"In week {i} the {seed + i} sheep of farm {i * 7 % 31} ate grass." for i in range(400)
    )
    tokens = model.encode_text(text)
    if len(tokens) < num_tokens:
        raise CheckError(f"the text has {len(tokens)} tokens only")
    return tokens[:num_tokens]


# -- the measures ------------------------------------------------------------------------------------------------------


async def bandwidth(bench: Bench) -> Measure:
    """Bytes of weights per second at batch 1, to what all threads can read."""
    weights = sum(p.numel() * p.element_size() for p in {id(p): p for p in bench.model.hf.parameters()}.values())

    async def act(engine: AsyncEngine) -> list[float]:
        return [await _step_s(engine, bench, 1) for _ in range(bench.rounds)]

    step_s = min(await with_engine(endless(bench.model), act))
    limit = _read_bandwidth()
    share = weights / step_s / limit
    return Measure("bandwidth", share, ">= 0.55", f"{weights / step_s / 1e9:.1f} of {limit / 1e9:.1f} GB/s")


async def busy(bench: Bench) -> Measure:
    """Step time at batch 8 with another process busy on one core, to without."""

    async def act(engine: AsyncEngine) -> tuple[float, float]:
        quiet, loaded = [], []
        for _ in range(bench.rounds):
            quiet.append(await _step_s(engine, bench, 8))
            with _busy_process():
                loaded.append(await _step_s(engine, bench, 8))
        return statistics.median(quiet), statistics.median(loaded)

    quiet_s, busy_s = await with_engine(endless(bench.model), act)
    return Measure("busy", busy_s / quiet_s, "<= 1.7", f"{busy_s * 1e3:.1f} to {quiet_s * 1e3:.1f} ms a step")


async def document(bench: Bench) -> Measure:
    """Wall time of whole documents (compact, forced tokens jumped over) to unconstrained text of the same tokens."""
    grammar = compile_json_schema(PERSON, bench.model.vocabulary, CompileOptions(whitespace="compact"))
    batch = prompts(bench.model, 8)

    async def act(engine: AsyncEngine) -> tuple[list[float], int, int]:
        ratios, forced, total = [], 0, 0
        for _ in range(bench.rounds):
            whole = await run_engine(engine, batch, [400] * len(batch), grammar)
            check_documents(whole, grammar)
            lengths = [len(chunk.token_ids) for chunk in whole.chunks]
            free = await run_engine(engine, batch, lengths, None)
            check_lengths(free, lengths, "free")
            ratios.append(whole.seconds / free.seconds)
            forced += sum(chunk.usage.forced_tokens for chunk in whole.chunks)
            total += whole.num_tokens
        return ratios, forced, total

    ratios, forced, total = await with_engine(endless(bench.model), act, prefix_caching=False)
    return Measure("document", statistics.median(ratios), "<= 0.75", f"{forced} of {total} tokens forced, batch 8")


async def host(bench: Bench) -> Measure:
    """Of a step at batch 32 under a schema: what the host does while the model does not compute."""
    grammar = compile_json_schema(PERSON, bench.model.vocabulary)
    batch = prompts(bench.model, 32)

    async def act(engine: AsyncEngine) -> list[float]:
        check_documents(await run_engine(engine, batch, [bench.tokens] * 32, grammar), grammar)
        before = engine.stats()
        check_documents(await run_engine(engine, batch, [bench.tokens] * 32, grammar), grammar)
        after = engine.stats()
        steps = after.step_ms - before.step_ms
        return [(getattr(after, part) - getattr(before, part)) / steps for part in HOST_PARTS]

    shares = await with_engine(endless(bench.model), act, limits=SchedulerLimits(max_running=32), prefix_caching=False)
    detail = ", ".join(f"{part.removesuffix('_ms')} {share:.1%}" for part, share in zip(HOST_PARTS, shares, strict=True))
    return Measure("host", sum(shares), "< 0.03", detail)


async def ttft(bench: Bench) -> Measure:
    """Time to the first token of a 1,000-token prompt whose prefix is cached, to one that is not."""

    async def act(engine: AsyncEngine) -> tuple[list[float], list[float]]:
        cold: list[float] = []
        warm: list[float] = []
        for i in range(bench.rounds):
            prompt = filler(bench.model, SHARED_PROMPT, i)
            question = bench.model.encode_text(" What did the sheep eat?")
            for times, cached in ((cold, False), (warm, True)):
                usage = (await run_engine(engine, [[*prompt, *question]], [2], None)).chunks[0].usage
                if (usage.cached_tokens > SHARED_PROMPT) != cached:
                    raise CheckError(f"{usage.cached_tokens} tokens cached of {len(prompt)}")
                times.append(usage.ttft_ms)
        return cold, warm

    cold, warm = await with_engine(endless(bench.model), act)
    value = statistics.median(warm) / statistics.median(cold)
    return Measure("ttft", value, "<= 0.1", f"{statistics.median(warm):.0f} to {statistics.median(cold):.0f} ms")


async def gap(bench: Bench) -> Measure:
    """The 99th percentile of gaps between tokens of running streams while a 2,000-token prompt prefills, to without."""

    async def act(engine: AsyncEngine) -> tuple[list[float], list[float]]:
        quiet, disturbed = [], []
        for i in range(bench.rounds):
            quiet += await _gaps(engine, bench, None)
            disturbed += await _gaps(engine, bench, filler(bench.model, LONG_PROMPT, 100 + i))
        return quiet, disturbed

    quiet, disturbed = await with_engine(endless(bench.model), act)
    a, b = (statistics.quantiles(gaps, n=100)[98] for gaps in (disturbed, quiet))
    return Measure("gap", a / b, "<= 2", f"p99 {a * 1e3:.0f} to {b * 1e3:.0f} ms, {STREAMS} streams")


async def lookup(bench: Bench) -> Measure:
    """Tokens a step of prompt lookup on an extraction task; the same tokens as without it."""
    properties = {name: {"type": "string"} for name in FIELDS}
    schema = {"type": "object", "properties": properties, "required": list(FIELDS), "additionalProperties": False}
    grammar = compile_json_schema(schema, bench.model.vocabulary, CompileOptions(whitespace="compact"))
    facts = json.dumps(FIELDS, separators=(",", ":"))
    texts = [f"Repeat this record as JSON, number {i}: {facts}" for i in range(4)]
    batch = [bench.model.encode_chat([{"role": "user", "content": text}]) for text in texts]

    async def act(engine: AsyncEngine) -> tuple[Run, float]:
        runs, before = [], engine.stats()
        for prompt in batch:
            runs.append(await run_engine(engine, [prompt], [160], grammar))
        after = engine.stats()
        chunks = [chunk for run in runs for chunk in run.chunks]
        for chunk in chunks:
            jsonschema.validate(json.loads(chunk.data), schema)
        return Run(sum(run.seconds for run in runs), chunks), (after.tokens - before.tokens) / (after.steps - before.steps)

    plain, plain_per_step = await with_engine(bench.model, act)
    guessed, per_step = await with_engine(bench.model, act, speculation=Speculation())
    same = sum(a.token_ids == b.token_ids for a, b in zip(plain.chunks, guessed.chunks, strict=True))
    used = sum(chunk.usage.accepted_tokens for chunk in guessed.chunks)
    speed = plain.seconds / guessed.seconds
    detail = f"{plain_per_step:.1f} without; {used} guesses right, {speed:.2f} times as fast, {same}/4 texts the same"
    return Measure("lookup", per_step, ">= 1.8", detail)


async def cancel(bench: Bench) -> Measure:
    """Steps that begin after a cancellation until the slot is free."""

    async def act(engine: AsyncEngine) -> float:
        generation = engine.submit(prompts(bench.model, 1)[0], SamplingParams(temperature=0, max_tokens=500))
        await anext(generation)
        before = engine.stats().steps
        generation.cancel()
        chunk = await read(generation)
        if chunk.finish_reason != "cancelled" or engine.stats().running:
            raise CheckError(f"the sequence ended with {chunk.finish_reason!r}")
        return float(engine.stats().steps - before)

    return Measure("cancel", await with_engine(endless(bench.model), act), "<= 1", "the step under way")


MEASURES: dict[str, Callable[[Bench], Awaitable[Measure]]] = {
    action.__name__: action for action in (bandwidth, busy, document, host, ttft, gap, lookup, cancel)
}


async def run_measures(bench: Bench, names: list[str]) -> list[Measure]:
    measures = []
    for name in names:
        measures.append(await MEASURES[name](bench))
        print(f"{name} done", file=sys.stderr)
    return measures


# -- parts -------------------------------------------------------------------------------------------------------------


async def _step_s(engine: AsyncEngine, bench: Bench, batch: int) -> float:
    before = engine.stats()
    await run_engine(engine, prompts(bench.model, batch), [bench.tokens] * batch, None)
    after = engine.stats()
    return (after.step_ms - before.step_ms) / (after.steps - before.steps) / 1e3


def _read_bandwidth() -> float:
    """Bytes a second that torch's threads read of an array far larger than any cache."""
    array = torch.ones(1 << 28, dtype=torch.float32)
    best = min(_timed(array.sum) for _ in range(5))
    return array.numel() * array.element_size() / best


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _spin() -> None:
    while True:
        pass


@contextmanager
def _busy_process() -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


async def _gaps(engine: AsyncEngine, bench: Bench, disturbance: list[int] | None) -> list[float]:
    """Seconds between the chunks of running streams."""
    arrivals: list[list[float]] = [[] for _ in range(STREAMS)]

    async def follow(prompt: list[int], times: list[float]) -> None:
        async for _ in engine.submit(prompt, SamplingParams(temperature=0, max_tokens=bench.tokens)):
            times.append(time.perf_counter())

    followers = [
        asyncio.ensure_future(follow(prompt, times))
        for prompt, times in zip(prompts(bench.model, STREAMS), arrivals, strict=True)
    ]
    while min(map(len, arrivals)) < 8:
        await asyncio.sleep(0.005)
    if disturbance is not None:
        chunk = await read(engine.submit(disturbance, SamplingParams(temperature=0, max_tokens=1)))
        if chunk.usage.cached_tokens > len(disturbance) // 20:  # prompts may share their first words
            raise CheckError("the long prompt was cached")
    await asyncio.gather(*followers)
    return [b - a for times in arrivals for a, b in pairwise(times[4:])]
