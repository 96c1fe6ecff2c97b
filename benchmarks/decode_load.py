"""Time to the first token and gaps between tokens while requests come and go, by how many come.

    python benchmarks/decode_load.py [--rates 0.25,0.5,1,2] [--seconds 30] [--tokens 48] [--prompt 200] [--plot FILE.svg]

Method
    One engine, one model. For each rate, requests arrive for so many seconds at random (a Poisson process of that many a
    second, the same draws for every run), each with a prompt of its own, and take so many tokens under the schema of a
    person. TTFT is from the arrival to the first token, queue and prefill included; a gap is the time between two deliveries
    to one stream. A rate that the engine cannot serve shows as a TTFT that grows with the seconds; `tokens/s` then is what it
    can serve. Times are wall clock.

Checks, each fatal
    Every request ends, with at most the tokens it may take; every document is valid by `jsonschema`.

Prints a table, then one line of JSON; `--plot` draws the percentiles (matplotlib, of the `bench` extra).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

# Read when the OpenMP library loads: threads that spin while they wait would take each other's core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

import jsonschema
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.decode_measures import filler, with_engine
from benchmarks.decode_runs import PERSON, CheckError
from constrained import CompiledGrammar, compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.model import LoadedModel, load_model
from constrained.decode.request import SamplingParams
from constrained.decode.scheduler import SchedulerLimits

POINTS = (50, 90, 99)


@dataclass(slots=True)
class Stream:
    """One request: when it came, when each chunk of it was there, and its text."""

    arrived: float
    times: list[float] = field(default_factory=list)
    text: bytes = b""
    num_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """What one rate of arrivals came to; percentiles in milliseconds, by `POINTS`."""

    rate: float
    requests: int
    ttft_ms: list[float]
    gap_ms: list[float]
    tokens_per_s: float
    most_running: int


async def _follow(engine: AsyncEngine, prompt: list[int], grammar: CompiledGrammar, tokens: int) -> Stream:
    stream = Stream(time.perf_counter())
    async for chunk in engine.submit(prompt, SamplingParams(max_tokens=tokens), grammar):
        stream.times.append(time.perf_counter())
        stream.text += chunk.data
        stream.num_tokens += len(chunk.token_ids)
        if chunk.error is not None:
            raise CheckError(f"a request failed: {chunk.error!r}")
    return stream


async def offer(engine: AsyncEngine, prompts: list[list[int]], rate: float, options: Any, grammar: CompiledGrammar) -> Level:
    """Let requests arrive at a rate until the time is over, then wait for all of them."""
    pick = random.Random(f"{rate}")
    streams: list[asyncio.Task[Stream]] = []
    most_running, began = 0, time.perf_counter()
    due = began
    while (due := due + pick.expovariate(rate)) < began + options.seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        prompt = prompts[len(streams) % len(prompts)]
        streams.append(asyncio.create_task(_follow(engine, prompt, grammar, options.tokens)))
        most_running = max(most_running, engine.stats().running)
    done = await asyncio.gather(*streams)
    _check(done, options.tokens)
    gaps = [b - a for stream in done for a, b in pairwise(stream.times)]
    ends = max(stream.times[-1] for stream in done)
    return Level(
        rate,
        len(done),
        _percentiles([stream.times[0] - stream.arrived for stream in done]),
        _percentiles(gaps),
        sum(stream.num_tokens for stream in done) / (ends - began),
        most_running,
    )


def _check(streams: Sequence[Stream], tokens: int) -> None:
    if not streams:
        raise CheckError("no request arrived: more seconds or a higher rate are needed")
    for stream in streams:
        if not 0 < stream.num_tokens <= tokens:
            raise CheckError(f"a request took {stream.num_tokens} of {tokens} tokens")
        jsonschema.validate(json.loads(stream.text), PERSON)


def _percentiles(times: list[float]) -> list[float]:
    if len(times) < 2:
        return [round(1e3 * time_s, 2) for time_s in times * len(POINTS)]
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return [round(1e3 * cuts[point - 1], 2) for point in POINTS]


async def run(model: LoadedModel, options: argparse.Namespace) -> list[Level]:
    grammar = compile_json_schema(PERSON, model.vocabulary)
    prompts = [filler(model, options.prompt, seed) for seed in range(64)]
    rates = [float(rate) for rate in options.rates.split(",")]

    async def act(engine: AsyncEngine) -> list[Level]:
        await _follow(engine, prompts[-1], grammar, options.tokens)
        return [await offer(engine, prompts, rate, options, grammar) for rate in rates]

    return await with_engine(model, act, limits=SchedulerLimits(max_running=options.batch), prefix_caching=False)


def show(levels: list[Level]) -> None:
    heads = [f"{name} p{point}" for name in ("TTFT", "gap") for point in POINTS]
    table = Table("requests/s", "requests", "at most at once", *heads, "tokens/s", title="milliseconds")
    for level in levels:
        times = [f"{value:,.0f}" for value in (*level.ttft_ms, *level.gap_ms)]
        table.add_row(f"{level.rate:g}", str(level.requests), str(level.most_running), *times, f"{level.tokens_per_s:.0f}")
    Console(width=140).print(table)


def draw(levels: list[Level], path: Path) -> None:
    """TTFT and gap percentiles against the rate of arrivals."""
    from benchmarks.plot import lines

    panels = []
    for title, name in (("Time to first token", "ttft_ms"), ("Gap between tokens", "gap_ms")):
        panels.append((title, {f"p{p}": [getattr(level, name)[i] for level in levels] for i, p in enumerate(POINTS)}))
    lines([f"{level.rate:g}" for level in levels], panels, "requests a second", "milliseconds", path)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="folder or hub id; the default model where not given")
    parser.add_argument("--rates", default="0.25,0.5,1,2", help="requests a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--tokens", type=int, default=96, help="at most, of each request")
    parser.add_argument("--prompt", type=int, default=200, help="tokens of each prompt")
    parser.add_argument("--batch", type=int, default=32, help="sequences at once")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    started_load = os.getloadavg()[0]
    try:
        levels = asyncio.run(run(load_model(options.model), options))
    except (CheckError, jsonschema.ValidationError) as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    show(levels)
    if options.plot is not None:
        draw(levels, options.plot)
    context = {"threads": options.threads, "cpus": os.cpu_count(), "load_at_start": started_load}
    print(json.dumps({"benchmark": "decode_load", **context, "levels": [asdict(level) for level in levels]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
