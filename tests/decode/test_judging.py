"""Greedy rows that the forward pass judges itself: the same tokens, and nothing that was not known in time."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
import torch

from constrained.decode.batch import Span
from constrained.decode.choices import ChoiceWorker, Closing
from constrained.decode.decisions import LogitRow, RowDecider
from constrained.decode.mask_kernels import UNJUDGED, UNKNOWN, announce, greedy_rows
from constrained.decode.request import SamplingParams
from constrained.decode.rows import ALL_TOKENS, RowTable
from constrained.decode.runner import ModelRunner
from constrained.decode.sampler import Sampler
from constrained.decode.seeds import SeededStream
from constrained.decode.sequence import Sequence
from constrained.errors import InternalError
from tests.decode.mocks import EOS, ArrayGrammar, MockRow, TinyModel, byte_vocabulary, tiny_config
from tests.decode.stepping import together
from tests.decode.test_engine import engine, read_all
from tests.decode.test_fused import fused_runner

WORDS = byte_vocabulary().num_words


def table_of(*rows: MockRow) -> RowTable:
    table = RowTable(16, WORDS, torch.device("cpu"))
    table.slots(rows)
    return table


def random_rows(count: int) -> list[MockRow]:
    generator = np.random.default_rng(3)
    words = generator.integers(-(2**31), 2**31, (count, WORDS), np.int64).astype(np.int32)
    return [MockRow(i, row) for i, row in enumerate(words)]


def spans(runner: ModelRunner, count: int) -> list[Span]:
    return [Span([(7 * i + j) % 256 for j in range(1 + 9 * (i % 3))], 0, [i], 1) for i in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_pass_finds_what_the_sampler_finds(dtype: torch.dtype) -> None:
    runner, rows = fused_runner(tiny_config(), dtype), random_rows(4)
    rows.append(MockRow(4, np.zeros(WORDS, np.int32)))  # nothing is allowed
    table = table_of(*rows)
    known = np.array([ALL_TOKENS, *table.slots(rows), UNKNOWN], np.int64)
    greedy = greedy_rows(table.words, known)
    logits = runner.forward(spans(runner, len(known)), (), greedy)
    count = len(known) - 1
    assert greedy.tokens.tolist()[:count] == Sampler(table.table).argmax(logits, range(count), known[:count].tolist())
    assert greedy.tokens[-2] == -1
    assert greedy.tokens[-1] == UNJUDGED
    runner.unfuse()


def test_rows_are_announced_to_threads_that_run() -> None:
    slots = np.full(3, UNKNOWN, np.int64)
    announce(slots, np.array([2, 0], np.int64), np.array([7, 5], np.int64))
    assert slots.tolist() == [5, UNKNOWN, 7]


def sequence(grammar: ArrayGrammar | None, **params: object) -> Sequence:
    settings = SamplingParams(**({"temperature": 0.0} | params))  # type: ignore[arg-type]
    return Sequence([1], settings, 9, grammar.matcher() if grammar else None, SeededStream(0))


def test_the_worker_announces_plain_greedy_rows_of_grammars_alone() -> None:
    grammar, table = ArrayGrammar(byte_vocabulary()), RowTable(16, WORDS, torch.device("cpu"))
    worker = ChoiceWorker(table)
    broken = sequence(grammar)
    broken.matcher.mask_row = lambda: 1 / 0  # type: ignore[method-assign, union-attr]
    closing = sequence(grammar)
    closing.max_tokens = 3
    asked = [sequence(None), sequence(grammar), sequence(grammar, temperature=1.0), broken, closing, sequence(grammar)]
    drafts = [[], [ord("["), ord("1")], [], [], [], []]
    started = worker.start(asked, drafts, for_pass=True)
    choices, greedy = started.wait(60), started.greedy
    worker.close()
    rows = [row.id for row in choices[1] or ()]
    assert isinstance((choices[3] or [None])[0], ZeroDivisionError)
    assert choices[4] == [Closing(ord("["))]
    [first] = table.slots([grammar.matcher().mask_row()])
    assert len(rows) == 3
    assert greedy.slots[0] == ALL_TOKENS
    assert greedy.slots[4] == greedy.slots[5] == greedy.slots[6] == UNKNOWN
    assert greedy.slots[1] == greedy.slots[7] == first
    assert len(set(greedy.slots[1:4].tolist())) == 3


def test_rows_that_the_pass_has_judged_are_left_alone_and_others_settled() -> None:
    table = RowTable(16, WORDS, torch.device("cpu"))
    grammar = ArrayGrammar(byte_vocabulary())
    logits = torch.zeros(4, grammar.vocabulary.size)
    logits[:, ord("[")] = 1.0
    row, greedy = grammar.matcher().mask_row(), sequence(grammar)
    rows = [
        LogitRow(0, greedy, (), row, 65),
        LogitRow(1, greedy, (), row),
        LogitRow(2, greedy, (), Closing(EOS)),
        LogitRow(3, greedy, (), row, -1),
    ]
    RowDecider(table, Sampler(table.table)).decide(logits, rows)
    assert [row.outcome for row in rows[:3]] == [65, ord("["), EOS]
    assert isinstance(rows[3].outcome, InternalError)


def test_a_sequence_without_enough_blocks_is_an_error() -> None:
    runner = fused_runner(tiny_config())
    with pytest.raises(InternalError, match="a sequence of 33 tokens has 1 KV blocks only"):
        runner.forward([Span([1] * 33, 0, [0], 1)])
    runner.unfuse()


def test_a_mask_that_comes_after_the_pass_changes_no_token() -> None:
    """The same documents whether masks are known while the model computes or long afterwards."""
    model = TinyModel()
    grammar = ArrayGrammar(model.vocabulary)

    async def run(*, late: bool) -> list[tuple[int, ...]]:
        async with engine(model, mask_patience_s=60.0) as e:
            worker, forward = e._engine._stepper.worker, e._engine._runner.forward
            has_computed = threading.Event()
            choose = worker._announce

            def announce_late(*args: object) -> None:
                has_computed.wait(60)
                choose(*args)  # type: ignore[arg-type]

            def compute(*args: object) -> object:
                has_computed.clear()
                try:
                    return forward(*args)  # type: ignore[arg-type]
                finally:
                    has_computed.set()

            if late:
                worker._announce, e._engine._runner.forward = announce_late, compute  # type: ignore[method-assign, assignment]
            prompts = [[i, 2 * i + 1] for i in range(5)]
            params = SamplingParams(temperature=0.0, max_tokens=12)
            with together(e):
                generations = [e.submit(prompt, params, grammar) for prompt in prompts]
            chunks = await read_all(generations)
            return [chunk.token_ids for chunk in chunks]

    assert asyncio.run(run(late=True)) == asyncio.run(run(late=False))
