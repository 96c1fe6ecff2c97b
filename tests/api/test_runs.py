"""A run between engine and reader: merging, failing, ending, and what is told of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from api.metrics import Metrics, SequenceMeter
from api.runs import Frame, Outcome, Run, RunRegistry, finish_reason_of, timings_of, usage_of
from constrained.decode.request import Chunk, Usage
from constrained.errors import InternalError, UnknownRunError


class Scripted:
    """A generation that gives what it is told; an exception in the script is raised, an awaitable awaited."""

    def __init__(self, *script: Chunk | Exception | Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.num_cancels = 0
        self._script = script

    def cancel(self) -> None:
        self.num_cancels += 1

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        for step in self._script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Chunk):
                yield step
            else:
                await step()


class Letters:
    """A translator whose items are the bytes as letters; `!` is what it cannot take."""

    def feed(self, data: bytes) -> list[str]:
        if b"!" in data:
            raise ValueError("no letter")
        return list(data.decode())

    def finish(self) -> list[str]:
        return ["."]


STOP = Chunk(b"", (0,), "stop")


def run_of(*generations: Scripted) -> Run[str]:
    metrics = Metrics()
    return Run("run_1", generations, [Letters() for _ in generations], [SequenceMeter(metrics) for _ in generations])


async def frames_of(run: Run[str], window_s: float = 0.0) -> list[Frame[str]]:
    return [frame async for frame in run.frames(window_s)]


def read(*generations: Scripted, window_s: float = 0.0) -> tuple[Run[str], list[Frame[str]]]:
    """A run and its frames, read to the end."""

    async def main() -> tuple[Run[str], list[Frame[str]]]:
        run = run_of(*generations)
        return run, await frames_of(run, window_s)

    return asyncio.run(main())


def test_without_a_window_each_chunk_is_a_frame() -> None:
    run, frames = read(Scripted(Chunk(b"ab"), Chunk(b"c"), STOP))
    assert frames == [Frame(0, ["a", "b"], 2), Frame(0, ["c"], 3), Frame(0, ["."], 4)]
    assert run.outcomes[0].text == b"abc"
    assert run.seq == 4


def test_within_a_window_the_chunks_of_a_choice_are_one_frame() -> None:
    _, frames = read(Scripted(Chunk(b"ab"), Chunk(b"c"), STOP), Scripted(Chunk(b"x"), Chunk(b"y"), STOP), window_s=20.0)
    assert frames == [Frame(0, ["a", "b", "c", "."], 4), Frame(1, ["x", "y", "."], 7)]


def test_the_end_does_not_wait_for_the_window() -> None:
    async def main() -> list[Frame[str]]:
        gate = asyncio.Event()
        run = run_of(Scripted(Chunk(b"a"), gate.wait, Chunk(b"b"), STOP))
        frames = run.frames(1e6)
        first = await anext(frames)
        gate.set()
        return [first, *[frame async for frame in frames]]

    assert asyncio.run(main()) == [Frame(0, ["a"], 1), Frame(0, ["b", "."], 3)]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([Chunk(b"a"), RuntimeError("torn")], RuntimeError),
        ([Chunk(b"a"), Chunk(b"", (), "error", ValueError("step"))], ValueError),
        ([Chunk(b"a"), Chunk(b"", (), "error")], InternalError),
        ([Chunk(b"a"), Chunk(b"!")], ValueError),
        ([Chunk(b"a")], InternalError),
    ],
)
def test_every_failure_ends_the_run_and_stops_the_other_choices(script: list[Any], error: type[Exception]) -> None:
    other = Scripted(asyncio.Event().wait)

    async def main() -> None:
        run = run_of(other, Scripted(*script))
        frames = await frames_of(run)
        assert frames == [Frame(1, ["a"], 1)]
        assert isinstance(run.error, error)
        assert run.failed_choice == 1
        assert run.outcomes[1].finish_reason == "error"
        assert other.num_cancels == 1

    asyncio.run(main())


def test_what_comes_after_a_failure_is_not_told() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        run = run_of(Scripted(RuntimeError("torn")), Scripted(gate.wait, Chunk(b"late"), STOP))
        assert await frames_of(run) == []
        gate.set()
        await asyncio.sleep(0)
        assert run.outcomes[0].finish_reason == "error"

    asyncio.run(main())


def test_a_cut_document_is_not_finished() -> None:
    _, frames = read(Scripted(Chunk(b"12"), Chunk(b"3", (1,), "length")))
    assert [item for frame in frames for item in frame.items] == ["1", "2", "3"]


def test_the_gravest_reason_stands_for_the_run() -> None:
    outcomes = [Outcome(finish_reason="stop"), Outcome(finish_reason="length"), Outcome(finish_reason="stop")]
    assert finish_reason_of(outcomes) == "length"
    assert finish_reason_of([*outcomes, Outcome(finish_reason="cancelled")]) == "cancelled"
    assert finish_reason_of(outcomes[:1]) == "stop"


def test_usage_counts_the_prompt_once_and_times_span_the_choices() -> None:
    outcomes = [
        Outcome(usage=Usage(7, 10, 2, 5, queue_ms=100, ttft_ms=150, total_ms=600)),
        Outcome(usage=Usage(7, 20, 3, 5, queue_ms=120, ttft_ms=140, total_ms=1100)),
    ]
    usage, times = usage_of(outcomes), timings_of(outcomes)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 30, 37)
    assert (usage.forced_tokens, usage.cached_tokens) == (5, 5)
    assert (times.queue_ms, times.ttft_ms, times.total_ms, times.tokens_per_s) == (100, 140, 1100, 30.0)


def test_times_of_a_run_that_never_ran() -> None:
    assert timings_of([Outcome()]).tokens_per_s == 0.0


def test_the_registry_keeps_the_ids_that_ended_last() -> None:
    async def main() -> None:
        registry = RunRegistry(num_kept=2)
        runs = []
        for number in range(3):
            run = run_of(Scripted(STOP))
            run.id = f"run_{number}"
            registry.add(run)
            await run.wait()
            assert registry.cancel(run.id) == "finished"
            registry.remove(run)
            registry.remove(run)
            runs.append(run)
        assert [registry.cancel(run.id) for run in runs[1:]] == ["finished", "finished"]
        with pytest.raises(UnknownRunError):
            registry.cancel("run_0")

    asyncio.run(main())
