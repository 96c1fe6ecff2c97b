"""Recorded decode steps, on a CPU by a recorder that calls instead of replaying: the same tokens as step by step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from constrained.decode import preparation
from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.batch import PackedBatch, Span, pack
from constrained.decode.graphs import DecodeGraphs, HostRecorder, Recording, StaticStep, sizes_up_to, widths_up_to
from constrained.decode.options import EngineOptions
from constrained.decode.request import SamplingParams
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from tests.decode.mocks import ArrayGrammar, TinyModel, random_model, tiny_config
from tests.decode.test_engine import engine, read_all
from tests.decode.test_runner import CONFIGS

MAX_LEN = 256


def portable_runner(config: Any, *, records: bool = True, most: int = 8) -> ModelRunner:
    runner = ModelRunner(random_model(config), "tiny", 1 << 22, 2048, portable=True)
    if records:
        runner.record(HostRecorder(), most, MAX_LEN)
    return runner


def graphs_of(runner: ModelRunner) -> DecodeGraphs:
    assert runner.graphs is not None
    return runner.graphs


def test_sizes_and_widths_leave_little_unused() -> None:
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(9) == [1, 2, 4, 8, 12]
    assert sizes_up_to(64) == [1, 2, 4, 8, 12, 16, 24, 32, 48, 64]
    assert sizes_up_to(10_000)[-1] == 512
    assert widths_up_to(3) == [3]
    assert widths_up_to(50) == [8, 16, 32, 50]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_self_test_passes_with_recorded_steps(config: Any) -> None:
    runner = portable_runner(config)
    check_model(runner)
    assert graphs_of(runner).num_replays == 2


def play(runner: ModelRunner) -> list[list[int]]:
    """Greedy text of sequences that join, leave and outgrow a table's first width."""
    tokens = [[(7 * i + 3 * j) % 250 for j in range(1 + 11 * i)] for i in range(7)]
    joins, leaves = [0, 0, 1, 2, 2, 3, 9], [99, 6, 20, 99, 5, 12, 30]
    computed = [0] * len(tokens)
    for step in range(40):
        present = [i for i in range(len(tokens)) if joins[i] <= step < leaves[i]]
        spans = [Span(tokens[i][computed[i] :], computed[i], range(9 * i, 9 * i + 9), 1) for i in present]
        for i, token in zip(present, runner.forward(spans).argmax(dim=-1).tolist(), strict=True):
            computed[i] = len(tokens[i])
            tokens[i].append(token)
    return tokens


@pytest.mark.parametrize("most", [2, 8])
def test_replays_agree_with_steps_that_run_as_they_come(most: int) -> None:
    """Batches of up to seven: with two rows at most the larger ones run as they come, in the same text."""
    runner = portable_runner(tiny_config(), most=most)
    assert play(runner) == play(portable_runner(tiny_config(), records=False))
    sizes = {size for size, _ in graphs_of(runner)._recordings}
    assert sizes == set(sizes_up_to(most))
    assert graphs_of(runner).num_replays > 5


def test_tables_of_a_long_context_have_a_recording_of_their_own() -> None:
    runner, plain = portable_runner(tiny_config(max_position_embeddings=1024)), portable_runner(tiny_config(), records=False)
    runner.record(HostRecorder(), 2, 640)
    for start in range(0, 600, 100):
        span = Span([(3 * i) % 250 for i in range(start, start + 100)], start, range(20), 1)
        runner.forward([span])
        plain.forward([span])
    short = Span([9], 4, range(30, 31), 1)
    long = Span([5], 600, range(20), 1)
    for spans in ([long], [short], [short, long]):
        assert torch.allclose(runner.forward(spans), plain.forward(spans), atol=1e-4)
    assert {width for _, width in graphs_of(runner)._recordings} == {8, 20}
    replays = graphs_of(runner).num_replays
    runner.forward([Span([5], 640, range(21), 1)])  # longer than any table
    assert graphs_of(runner).num_replays == replays


def memory_of(runner: ModelRunner) -> list[Tensor]:
    backend: Any = runner._backend
    return [*backend._keys.values(), *backend._values.values()]


def test_padding_writes_into_its_own_block_and_changes_no_other_row() -> None:
    runner = portable_runner(tiny_config())
    spans = [Span([5 + i] * 40, 0, [2 * i, 2 * i + 1], 1) for i in range(5)]
    runner.forward(spans)
    before = [memory.clone() for memory in memory_of(runner)]
    step = [Span([9 + i], 40, span.blocks, 1) for i, span in enumerate(spans)]
    padded = runner.forward(step).clone()
    runner.stop_replaying()
    for row, span in zip(padded, step, strict=True):
        assert torch.allclose(runner.forward([span])[0], row, atol=1e-4)
    scratch = runner.num_blocks
    for old, new in zip(before, memory_of(runner), strict=True):
        changed = {tuple(place) for place in (old != new).flatten(2).any(dim=2).nonzero().tolist()}
        assert changed == {(2 * i + 1, 40 - BLOCK_LEN) for i in range(5)} | {(scratch, 0)}


def test_padding_of_a_fuller_step_before_leaves_nothing_behind() -> None:
    """Rows that held a sequence in the last step must not write for it in this one."""
    runner = portable_runner(tiny_config())
    runner.forward([Span([5], 0, [i], 1) for i in range(8)])
    for memory in memory_of(runner):  # the blocks have other owners now
        memory.zero_()
    before = [memory.clone() for memory in memory_of(runner)]
    runner.forward([Span([6], 1, [i], 1) for i in range(5)])
    for old, new in zip(before, memory_of(runner), strict=True):
        changed = {block for block, _ in (old != new).flatten(2).any(dim=2).nonzero().tolist()}
        assert changed <= {0, 1, 2, 3, 4, runner.num_blocks}


def test_prefill_and_drafts_are_not_replayed() -> None:
    runner = portable_runner(tiny_config())
    runner.forward([Span([1, 2], 0, [0], 1)])
    runner.forward([Span([3, 4], 2, [0], 2), Span([1], 0, [1], 1)])
    runner.forward([Span([1], 0, [2], 0), Span([1], 0, [1], 1)])
    assert graphs_of(runner).num_replays == 0


class Failing(HostRecorder):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def record(self, step: Callable[[], Tensor]) -> Recording:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("operation not permitted when stream is capturing")
        return super().record(step)


@pytest.mark.parametrize("after", [0, 2])
def test_a_capture_that_fails_is_logged_and_steps_go_on(after: int, caplog: pytest.LogCaptureFixture) -> None:
    runner = portable_runner(tiny_config(), records=False)
    with caplog.at_level(logging.WARNING):
        runner.record(Failing(after), 8, MAX_LEN)
    assert [record.message for record in caplog.records] == [
        f"a decode step of {(8, 4, 2, 1)[after]} rows cannot be recorded; steps run one by one"
    ]
    assert play(runner) == play(portable_runner(tiny_config(), records=False))
    assert graphs_of(runner).num_replays == 0


def test_a_step_is_replayed_from_memory_that_never_moves() -> None:
    """As a CUDA graph would: what the first call saw is all that later ones read."""
    seen: list[StaticStep] = []

    def compute(step: StaticStep) -> Tensor:
        seen.append(step)
        return torch.stack([step.token_ids, step.positions, step.slots, step.ends, step.tables.sum(dim=1)], dim=1)

    graphs = DecodeGraphs(compute, HostRecorder(), [1, 2, 4], [3], scratch_block=50)
    first = graphs.logits(decode([(7, 33, [4, 5])]))
    assert first is not None
    assert first.tolist() == [[7, 33, 5 * BLOCK_LEN + 1, 34, 4 + 5 + 50]]
    both = graphs.logits(decode([(1, 0, [9]), (2, 1, [8]), (3, 2, [7])]))
    assert both is not None
    assert both.tolist() == [
        [1, 0, 9 * BLOCK_LEN, 1, 9 + 100],
        [2, 1, 8 * BLOCK_LEN + 1, 2, 8 + 100],
        [3, 2, 7 * BLOCK_LEN + 2, 3, 7 + 100],
    ]
    assert graphs._recordings[4, 3][1].output[3].tolist() == [0, 0, 50 * BLOCK_LEN, 1, 150]
    full = graphs.logits(decode([(1, i, [i, 1]) for i in range(40, 44)]))
    fewer = graphs.logits(decode([(1, i, [i, 1]) for i in range(40, 43)]))
    assert full is not None
    assert fewer is not None
    assert graphs._recordings[4, 3][1].output[3].tolist() == [0, 0, 50 * BLOCK_LEN, 1, 150]
    again = graphs.logits(decode([(8, 0, [3])]))
    assert again is not None
    assert again.data_ptr() == first.data_ptr()
    assert again[0].tolist()[:4] == [8, 0, 3 * BLOCK_LEN, 1]
    places = [[t.data_ptr() for t in (s.token_ids, s.positions, s.slots, s.ends, s.tables)] for s in seen]
    assert places[0] == places[1] == places[-1] != places[2] == places[4]


def decode(rows: list[tuple[int, int, list[int]]]) -> PackedBatch:
    return pack([Span([token], position, blocks, 1) for token, position, blocks in rows])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_step_asks_nothing_of_the_host(config: Any) -> None:
    """Tensors without contents go through: no shape, loop or branch hangs on numbers that only the device knows."""
    runner = ModelRunner(random_model(config, torch.bfloat16), "tiny", 1 << 22, 2048, portable=True)
    numbers = [torch.ones(4, dtype=torch.int64) for _ in range(4)]
    step = StaticStep(*numbers, torch.zeros(4, 8, dtype=torch.int64))
    with torch.inference_mode(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        logits = runner._compute_static(step)
        with pytest.raises(DataDependentOutputException):
            mode.from_tensor(step.ends).tolist()
    assert logits.shape[0] == 4


def test_an_engine_over_recorded_steps_gives_the_same_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*, records: bool) -> list[tuple[int, ...]]:
        graphs = []

        def make(*args: Any) -> ModelRunner:
            runner = ModelRunner(*args, portable=True)
            if records:
                runner.record(HostRecorder(), 4, MAX_LEN)
                graphs.append(graphs_of(runner))
            return runner

        monkeypatch.setattr("constrained.decode.engine.ModelRunner", make)
        model = TinyModel()
        grammar = ArrayGrammar(model.vocabulary)

        async def answer() -> list[tuple[int, ...]]:
            async with engine(model, fuse=False, pack_linears=False) as e:
                prompts = [[i, 2 * i + 1, 3] for i in range(6)]
                greedy, drawn = SamplingParams(temperature=0.0, max_tokens=30), SamplingParams(seed=3, max_tokens=20)
                jobs = [e.submit(p, drawn if p[0] % 2 else greedy, grammar if p[0] < 4 else None) for p in prompts]
                return [chunk.token_ids for chunk in await read_all(jobs)]

        answers = asyncio.run(answer())
        assert all(each.num_replays > 10 for each in graphs)
        return answers

    assert run(records=True) == run(records=False)


def test_whatever_a_device_is_too_odd_for_is_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded steps, then the kernel that reads blocks in place; what is left computes the model or refuses it."""
    runner = portable_runner(tiny_config(), records=False)

    def broken(*_: Any) -> Tensor:
        raise RuntimeError("out of shared memory")

    def ways(runner: ModelRunner, *_: Any) -> list[tuple[str, Callable[[], None]]]:
        return [("replays are", lambda: runner.record(HostRecorder(), 4, MAX_LEN)), ("the kernel is", runner.stop_replaying)]

    monkeypatch.setattr(runner._backend, "_decode", broken)
    monkeypatch.setattr(preparation, "_quick_ways", ways)
    with caplog.at_level(logging.WARNING):
        preparation.prepare(runner, EngineOptions(fuse=False), MAX_LEN)
    assert runner.graphs is None
    said = [record.message for record in caplog.records]
    assert said[-2:] == ["replays are left out: out of shared memory", "the kernel is left out: out of shared memory"]


def test_graphs_are_for_cuda_devices_alone() -> None:
    runner = portable_runner(tiny_config(), records=False)
    assert preparation._quick_ways(runner, EngineOptions(), MAX_LEN) == []
    on_cuda: Any = type("Cuda", (), {"device": torch.device("cuda"), "reads_in_place": False})()
    assert preparation._quick_ways(on_cuda, EngineOptions(cuda_graphs=False), MAX_LEN) == []
