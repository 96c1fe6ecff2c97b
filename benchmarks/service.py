"""What the service itself costs: from an engine's chunk to the bytes of an event stream, and back into a value.

The engine is synthetic and gives fixed tokens, so that no model, mask or tokenizer is in the numbers. Service and load
generator are processes of their own; beside wall time everything is told as time on the processor of the service's process,
the engine's thread apart, which other work on the machine changes least. A *delta* is one token that brings operations, sent
as an event of its own (coalescing off). What each side is held to:

- throughput: deltas a second on one core (deltas by processor time), to a bare FastAPI response that streams the same bytes,
  driven by the same engine. The two alternate, round by round; the median of the rounds' ratios counts.
- latency: the time between events at each reader to the time between the engine's steps, and from the step to the reader.
- length: the cost of a delta where the document is 10 KB long, and where it is 1 MB.
- wire: the bytes of a 10 KB document, as they come with the default window and without one, to the chunks of OpenAI's chat
  protocol, one for each token.
- fold: what our client does with the events of that document (read, fold), to `json.loads` of its text.

Every event of every stream is compared with what the tokens must bring; what is wrong makes the exit status 1. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from benchmarks.mask_time import about_machine
from benchmarks.service_document import SCHEMA, Expected, document, tokens
from benchmarks.service_load import Side, Stream, open_streams, side, until
from constrained.client import replay
from constrained.stream import coalesce, from_wire

STREAM_PATH = "/v1/structured/stream"
CHAT_PATH = "/v1/chat/completions"
TOKEN_CHARS = 4
SKIPPED_CHARS = 4000  # of a token that leads to the far end of a long document
WARM_STEPS = 20
RECORDINGS, RECORDING_MS = 5, 4.0
SETTINGS = {"heartbeat_s": 600.0, "chat_coalesce_ms": 0, "grammar_cache_size": 8}


def body(coalesce_ms: int) -> dict[str, Any]:
    return {"schema": SCHEMA, "prompt": "-", "max_tokens": 1 << 20, "coalesce_ms": coalesce_ms}


@dataclass(frozen=True, slots=True)
class Window:
    """Some steps under measurement: how many events came, what they cost the service, when the steps were."""

    num_events: int
    cpu_ns: int
    step_times: list[float]

    @property
    def us_per_event(self) -> float:
        return self.cpu_ns / 1e3 / self.num_events


async def measure(running: Side, streams: list[Stream], seq: int, steps: int, interval_ms: float) -> Window:
    """Take steps that bring each stream to the operation `seq`."""
    before = [stream.num_events for stream in streams]
    started_ns = running.cpu_ns()
    times = await running.steps(steps, interval_ms, TOKEN_CHARS)
    await until(lambda: all(stream.seq >= seq for stream in streams))
    cpu_ns = running.cpu_ns() - started_ns
    return Window(sum(stream.num_events for stream in streams) - sum(before), cpu_ns, times)


def wrong_streams(streams: Sequence[Stream], expected: Expected) -> int:
    """How many streams did not bring exactly the expected operations, in order."""
    wanted = expected.wire()
    return sum(told_ops(stream) != wanted for stream in streams)


def told_ops(stream: Stream) -> list[dict[str, Any]]:
    ops = [op for _, frame in stream.frames() if (event := data_of(frame)) and "ops" in event for op in event["ops"]]
    return [op.to_wire() for op in coalesce([from_wire(op) for op in ops])]


def data_of(frame: str) -> dict[str, Any]:
    """The data of an event of ours; empty where it has none."""
    data = next((line[5:] for line in frame.splitlines() if line.startswith("data:")), "{}")
    return {} if "[DONE]" in data else json.loads(data)


# -- throughput and latency


async def throughput(rounds: int, num_streams: int, steps: int, interval_ms: float) -> dict[str, Any]:
    """Ours and the bare response in turn."""
    text = document(TOKEN_CHARS * (WARM_STEPS + rounds * steps) + 4000)
    expected = Expected.of(tokens(text, [TOKEN_CHARS] * (WARM_STEPS + rounds * steps)))
    frames = await _recorded_frames(text, expected)
    with side("ours", text, **SETTINGS) as ours, side("bare", text, frames) as bare:
        by_side = {"ours": ours, "bare": bare}
        streams = {name: await open_streams(each.port, num_streams, STREAM_PATH, body(0)) for name, each in by_side.items()}
        windows: dict[str, list[Window]] = {name: [] for name in by_side}
        first = 0
        for count in [WARM_STEPS, *[steps] * rounds]:
            first += count
            for name, each in by_side.items():
                windows[name].append(await measure(each, streams[name], expected.seq(first), count, interval_ms))
    wrong = wrong_streams(streams["ours"], expected)
    wrong += sum([frame for _, frame in s.frames()][1:] != [f for f in frames if f] for s in streams["bare"])
    return {
        "ours_us": median(w.us_per_event for w in windows["ours"][1:]),
        "bare_us": median(w.us_per_event for w in windows["bare"][1:]),
        "ratio": median(b.us_per_event / o.us_per_event for o, b in zip(windows["ours"][1:], windows["bare"][1:], strict=True)),
        "streams": num_streams,
        "wrong": wrong,
        **latency(streams["ours"], windows["ours"], expected),
    }


async def _recorded_frames(text: str, expected: Expected) -> list[str]:
    """What ours sends for each token; taken slowly, and again where tokens came together."""
    for _ in range(RECORDINGS):
        with side("ours", text, **SETTINGS) as running:
            streams = await open_streams(running.port, 1, STREAM_PATH, body(0))
            await measure(running, streams, expected.seq(), len(expected.ops), RECORDING_MS)
        frames = [frame for _, frame in streams[0].frames()][1:]
        if len(frames) == sum(bool(ops) for ops in expected.ops):
            told = iter(frames)
            return [next(told) if ops else "" for ops in expected.ops]
    raise RuntimeError("this machine is too busy to tell one token from the next")


def latency(streams: Sequence[Stream], windows: Sequence[Window], expected: Expected) -> dict[str, float]:
    """Between a reader's events and between the engine's steps, and from one to the other; without the warm steps."""
    step_times = np.array([at for window in windows for at in window.step_times])
    seqs = np.cumsum([len(ops) for ops in expected.ops])
    engine_ms, reader_ms, late_ms = [], [], []
    for stream in streams:
        told = [(at, event["seq"]) for at, frame in stream.frames() if "ops" in (event := data_of(frame))]
        steps = np.searchsorted(seqs, [seq for _, seq in told])
        is_warm = steps >= WARM_STEPS
        came, given = np.array([at for at, _ in told])[is_warm], step_times[steps[is_warm]]
        engine_ms.append(1e3 * np.diff(given))
        reader_ms.append(1e3 * np.diff(came))
        late_ms.append(1e3 * (came - given))
    engine, reader, late = (np.concatenate(each) for each in (engine_ms, reader_ms, late_ms))
    return {
        "engine_itl_p50_ms": float(np.median(engine)),
        "itl_p50_ms": float(np.median(reader)),
        "added_itl_p50_ms": float(np.median(reader - engine)),
        "added_itl_p99_ms": float(np.percentile(reader - engine, 99)),
        "delivery_p50_ms": float(np.median(late)),
        "delivery_p99_ms": float(np.percentile(late, 99)),
        "merged": float(len(streams) * sum(bool(ops) for ops in expected.ops[WARM_STEPS:]) - sum(map(len, late_ms))),
    }


# -- length


async def at_length(num_chars: int, num_streams: int, steps: int, interval_ms: float) -> dict[str, Any]:
    """The cost of a delta where a document is `num_chars` long: most of it comes in long tokens, the end in short ones."""
    num_skipped = max(0, (num_chars - 2 * steps * TOKEN_CHARS) // SKIPPED_CHARS)
    lens = [TOKEN_CHARS] * WARM_STEPS + [SKIPPED_CHARS] * num_skipped + [TOKEN_CHARS] * (WARM_STEPS + steps)
    text = document(num_chars + 4000)
    expected = Expected.of(tokens(text, lens))
    with side("ours", text, **SETTINGS) as running:
        streams = await open_streams(running.port, num_streams, STREAM_PATH, body(0))
        await running.steps(WARM_STEPS, interval_ms, TOKEN_CHARS)
        for _ in range(num_skipped):
            await running.steps(1, 0.0, SKIPPED_CHARS)
            await asyncio.sleep(0.01)
        await running.steps(WARM_STEPS, interval_ms, TOKEN_CHARS)
        await until(lambda: all(stream.seq == expected.seq(-steps) for stream in streams))
        window = await measure(running, streams, expected.seq(), steps, interval_ms)
    return {"us": window.us_per_event, "wrong": wrong_streams(streams, expected)}


# -- wire and fold


async def recorded(text: str, path: str, request: dict[str, Any], interval_ms: float) -> list[str]:
    """The events of one whole stream."""
    with side("ours", text, **SETTINGS) as running:
        (stream,) = await open_streams(running.port, 1, path, request)
        await running.steps(-(-len(text) // TOKEN_CHARS), interval_ms, TOKEN_CHARS)
        await until(lambda: stream.pieces[-1][1].endswith(b"0\r\n\r\n"))
    return [frame for _, frame in stream.frames()]


async def wire(interval_ms: float) -> dict[str, Any]:
    """Bytes on the wire, without those of HTTP; and the cost of the fold."""
    text = document(10_000)
    schema = {"type": "json_schema", "json_schema": {"name": "report", "schema": SCHEMA}}
    asked = {"messages": [{"role": "user", "content": "-"}], "stream": True, "max_tokens": 1 << 20, "response_format": schema}
    chat = await recorded(text, CHAT_PATH, asked, interval_ms)
    ours = {window: await recorded(text, STREAM_PATH, body(window), interval_ms) for window in (0, 16)}
    said = "".join(c["delta"].get("content") or "" for f in chat for c in data_of(f).get("choices", []))
    values = [folded(frames) for frames in ours.values()]
    told = {
        "chat_bytes": num_bytes(chat),
        "ours_bytes": num_bytes(ours[16]),
        "ours_uncoalesced_bytes": num_bytes(ours[0]),
        "interval_ms": interval_ms,
        "wrong": (said != text) + sum(value != json.loads(text) for value in values),
    }
    return {**told, **{f"fold_{window}": fold_cost(frames, text) for window, frames in ours.items()}}


def num_bytes(frames: Sequence[str]) -> int:
    return sum(len(frame.encode()) for frame in frames)


def folded(frames: Sequence[str]) -> Any:
    """The document, by all that our client does but for the network."""
    return replay(frame.encode() for frame in frames)


def fold_cost(frames: Sequence[str], text: str, rounds: int = 15) -> dict[str, float]:
    """The best times of either, which alternate."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_timed(lambda: folded(frames)))
        theirs.append(_timed(lambda: [json.loads(text) for _ in range(20)]) / 20)
    return {"fold_us": min(ours) / 1e3, "loads_us": min(theirs) / 1e3, "ratio": min(ours) / min(theirs), "events": len(frames)}


def _timed(call: Any) -> float:
    started = time.thread_time_ns()
    call()
    return time.thread_time_ns() - started


# -- the whole


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, one after the other."""
    speed = await throughput(options.rounds, options.streams, options.steps, options.interval_ms)
    num_streams = min(options.streams, 8)
    lengths = {str(chars): await at_length(chars, num_streams, 3 * options.steps, 5.0) for chars in (10_000, options.long)}
    sizes = await wire(options.wire_interval_ms)
    wrong = speed["wrong"] + sizes["wrong"] + sum(each["wrong"] for each in lengths.values())
    return {"throughput": speed, "length": lengths, "wire": sizes, "wrong": wrong, "machine": about_machine()}


def show(data: dict[str, Any], console: Console) -> None:
    speed, lengths, sizes = data["throughput"], data["length"], data["wire"]
    short, long = lengths.values()
    table = Table("what", "ours", "the other", "ratio", title="the service, without a model")
    per_s = [1e6 / speed["ours_us"], 1e6 / speed["bare_us"]]
    table.add_row("deltas/s on one core, to a bare response", *(f"{n:,.0f}" for n in per_s), f"{speed['ratio']:.2f}")
    table.add_row("processor time a delta, us", f"{speed['ours_us']:.1f}", f"{speed['bare_us']:.1f}", "")
    itl = (f"{speed['itl_p50_ms']:.2f}", f"{speed['engine_itl_p50_ms']:.2f}", f"added {speed['added_itl_p50_ms']:+.2f}")
    table.add_row(f"time between tokens p50, {speed['streams']} streams, ms", *itl)
    table.add_row(
        "from the step to the reader p50 / p99, ms", f"{speed['delivery_p50_ms']:.2f} / {speed['delivery_p99_ms']:.2f}"
    )
    names = list(lengths)
    title = f"a delta at {int(names[1]):,} / {int(names[0]):,} characters, us"
    table.add_row(title, f"{long['us']:.1f}", f"{short['us']:.1f}", f"{long['us'] / short['us']:.2f}")
    for name, title in (("ours_bytes", "window of 16 ms"), ("ours_uncoalesced_bytes", "an event a token")):
        ratio = f"{sizes[name] / sizes['chat_bytes']:.2f}"
        table.add_row(f"bytes of 10 KB, {title}, to chat chunks", f"{sizes[name]:,}", f"{sizes['chat_bytes']:,}", ratio)
    for window in (16, 0):
        fold = sizes[f"fold_{window}"]
        title = f"fold of {fold['events']} events, to json.loads, us"
        table.add_row(title, f"{fold['fold_us']:,.0f}", f"{fold['loads_us']:,.0f}", f"{fold['ratio']:.0f}")
    table.add_row("wrong streams", str(data["wrong"]))
    console.print(table)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100, help="engine steps in each round")
    parser.add_argument("--interval-ms", type=float, default=25.0, help="between two steps")
    parser.add_argument("--wire-interval-ms", type=float, default=8.0, help="between two steps where bytes are weighed")
    parser.add_argument("--long", type=int, default=1_000_000, help="characters of the long document")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    data = asyncio.run(run(options))
    show(data, Console(width=None if sys.stdout.isatty() else 140))
    print(json.dumps(data))
    return 1 if data["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
