"""The decoding loop: one thread that schedules, computes, samples and delivers, step by step.

Knows nothing of asyncio or HTTP. Other threads only submit, cancel, ask for stats and close.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Seq
from copy import copy
from typing import Any, cast

from torch import Tensor

from constrained.decode.admission import admit
from constrained.decode.advance import advance
from constrained.decode.blocks import BlockManager
from constrained.decode.choices import Choice, ChoiceWorker, Closing
from constrained.decode.linears import pack_linears
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.rows import RowTable
from constrained.decode.runner import ModelRunner
from constrained.decode.sampler import Pick, Sampler
from constrained.decode.scheduler import Scheduler, Work
from constrained.decode.selftest import check_model
from constrained.decode.sequence import GrammarLike, MaskRowLike, Sequence
from constrained.decode.stats import EngineStats, StepClock
from constrained.errors import InternalError, OverloadedError

_log = logging.getLogger(__name__)
Delivery = list[tuple[Sequence, Chunk]]


class Engine:
    """`deliver` is called on the engine's thread, once per step, with every chunk of that step."""

    def __init__(self, model: ServedModel, deliver: Callable[[Delivery], None], options: EngineOptions | None = None) -> None:
        self.model = model
        self.options = options or EngineOptions()
        limits = self.options.limits
        self._runner = ModelRunner(model.hf, model.name, self.options.kv_bytes, limits.max_running * model.context_len)
        check_model(self._runner, pack_linears if self.options.pack_linears else None)
        self._blocks = BlockManager(self._runner.num_blocks, self._runner.block_len)
        self._max_len = min(model.context_len, self._blocks.capacity, self._runner.max_positions or model.context_len)
        self._scheduler = Scheduler(self._blocks, limits)
        capacity = max(self.options.mask_rows, limits.max_running) + 1
        self._rows = RowTable(capacity, model.vocabulary.num_words, self._runner.device)
        self._sampler = Sampler(self._rows.table)
        self._sampler.warm_up(model.vocabulary.size, self._runner.dtype)
        self._worker = ChoiceWorker()
        self._deliver = deliver
        self._inbox: deque[Sequence] = deque()
        self._outbox: Delivery = []
        self._wake = threading.Condition()
        self._is_closing = False
        self._death: BaseException | None = None
        self._clock = StepClock()
        self._num_steps = self._num_tokens = self._num_prefill = 0
        self._thread = threading.Thread(target=self._run, name="constrained-engine", daemon=True)
        self._thread.start()

    def submit(
        self,
        prompt_token_ids: Seq[int],
        params: SamplingParams,
        grammar: GrammarLike | None = None,
        owner: Any = None,
        prefix: bytes = b"",
    ) -> Sequence:
        """Queue one sequence; see `admit` for what is refused. Raises `OverloadedError` where the queue is full."""
        sequence = admit(self.model, self._max_len, prompt_token_ids, params, grammar, owner, prefix)
        with self._wake:
            self._check_open()
            self._inbox.append(sequence)
            self._wake.notify()
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """The sequence ends before the next step, unless it has ended already."""
        sequence.is_cancelled = True

    def close(self) -> None:
        """Stop after the present step; what has not ended is cancelled. Idempotent; waits for the thread."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def stats(self) -> EngineStats:
        return EngineStats(
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting) + len(self._inbox),
            free_blocks=self._blocks.num_free,
            total_blocks=self._blocks.num_blocks,
            steps=self._num_steps,
            tokens=self._num_tokens,
            prefill_tokens=self._num_prefill,
            preemptions=self._scheduler.num_preemptions,
            row_uploads=self._rows.num_uploads,
            mask_ms=self._worker.busy_ms,
            **self._clock.sums,
        )

    def step(self) -> None:
        """One iteration: drop what is cancelled, compute, sample, move on."""
        self._clock.start()
        self._drop_cancelled()
        work = self._scheduler.schedule()
        if work:
            self._advance(work, *self._compute(work))
        self._clock.stop()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._await_work():
                self.step()
                self._flush()
        except BaseException as error:
            _log.exception("the engine's thread died")
            self._death = error
        finally:
            self._end_all()
            self._worker.close()
            self._runner.close()

    def _await_work(self) -> bool:
        """Sleep until there is something to do; False when closing."""
        with self._wake:
            while not (self._inbox or self._scheduler.has_work or self._is_closing):
                self._wake.wait()
            while self._inbox:
                self._scheduler.add(self._inbox.popleft())
            return not self._is_closing

    def _end_all(self) -> None:
        """Nobody is left waiting: every sequence gets its last chunk, also when the thread died."""
        with self._wake:
            self._is_closing = True
            left = [*self._scheduler.running, *self._scheduler.waiting, *self._inbox]
            self._inbox.clear()
        death = self._death
        error = None if death is None else InternalError(f"the engine's thread died: {death!r}")
        if error is not None:
            error.__cause__ = death
        for sequence in left:
            self._end(sequence, error)
        self._flush()

    def _flush(self) -> None:
        delivery, self._outbox = self._outbox, []
        if delivery:
            self._deliver(delivery)

    def _check_open(self) -> None:
        if self._death is not None:
            raise InternalError(f"the engine's thread died: {self._death!r}") from self._death
        if self._is_closing:
            raise OverloadedError("the engine is closing down")
        num_waiting = len(self._inbox) + len(self._scheduler.waiting)
        if num_waiting >= self.options.max_waiting:
            raise OverloadedError(f"{num_waiting} sequences wait already, the most that may; try again later")

    # -- the parts of a step ---------------------------------------------------------------------------------------

    def _drop_cancelled(self) -> None:
        for sequence in [s for s in (*self._scheduler.running, *self._scheduler.waiting) if s.is_cancelled]:
            self._end(sequence)

    def _compute(self, work: list[Work]) -> tuple[Tensor | Exception, list[Choice]]:
        """Logits and choices of the sequences that sample, made side by side."""
        pending = self._worker.start([w.sequence for w in work if w.samples])
        logits: Tensor | Exception
        try:
            logits = self._runner.forward([w.span() for w in work])
        except Exception as error:
            _log.exception("a forward pass of %d sequences failed", len(work))
            logits = error
        self._clock.lap("forward_ms")
        choices = pending.result()
        self._clock.lap("mask_wait_ms")
        return logits, choices

    def _advance(self, work: list[Work], logits: Tensor | Exception, choices: list[Choice]) -> None:
        if isinstance(logits, Exception):
            for w in work:
                self._end(w.sequence, logits)
            return
        self._num_steps += 1
        for w in work:
            self._num_prefill += w.end - w.sequence.num_computed - w.samples
            w.sequence.num_computed = w.end
        sampling = [w.sequence for w in work if w.samples]
        tokens = self._sample(logits, sampling, choices)
        self._clock.lap("sample_ms")
        for sequence, choice, token in zip(sampling, choices, tokens, strict=True):
            self._take(sequence, choice, token)

    def _sample(self, logits: Tensor, sequences: list[Sequence], choices: list[Choice]) -> list[int | Exception]:
        """One token per sequence, or what went wrong for it alone."""
        outcomes: list[int | Exception] = [_settled(choice) for choice in choices]
        drawn = [i for i, outcome in enumerate(outcomes) if outcome == _UNSETTLED]
        if not drawn:
            return outcomes
        try:
            tokens = self._draw(logits, sequences, choices, drawn)
        except Exception:
            # One row is to blame; alone, each fails or succeeds for itself.
            tokens = [self._draw_alone(logits, sequences, choices, i) for i in drawn]
        for i, token in zip(drawn, tokens, strict=True):
            outcomes[i] = token if token != _UNSETTLED else InternalError("no allowed token has a finite logit")
        return outcomes

    def _draw_alone(self, logits: Tensor, sequences: list[Sequence], choices: list[Choice], index: int) -> int | Exception:
        try:
            return self._draw(logits, sequences, choices, [index])[0]
        except Exception as error:
            return error

    def _draw(self, logits: Tensor, sequences: list[Sequence], choices: list[Choice], drawn: list[int]) -> Seq[int | Exception]:
        rows = [cast("MaskRowLike | None", choices[i]) for i in drawn]
        slots = self._rows.slots(rows)
        picks = [_pick(sequences[i], slot) for i, slot in zip(drawn, slots, strict=True)]
        return self._sampler.sample(logits if len(drawn) == len(sequences) else logits[drawn], picks)

    def _take(self, sequence: Sequence, choice: Choice, outcome: int | Exception) -> None:
        if isinstance(outcome, Exception):
            self._end(sequence, outcome)
            return
        try:
            token = advance(sequence, outcome, self.model.eos_token_ids, is_closing=isinstance(choice, Closing))
        except Exception as error:
            self._end(sequence, error)
            return
        self._num_tokens += 1
        if sequence.finish_reason is not None:
            self._scheduler.remove(sequence)
        data = b"" if token in self.model.eos_token_ids else self.model.vocabulary.token_bytes[token]
        self._outbox.append((sequence, Chunk(data, (token,), sequence.finish_reason, usage=copy(sequence.usage))))

    def _end(self, sequence: Sequence, error: Exception | None = None) -> None:
        """End a sequence that yields no token: cancelled, or with its error."""
        self._scheduler.remove(sequence)
        sequence.finish("cancelled" if error is None else "error", error)
        self._outbox.append((sequence, Chunk(b"", (), sequence.finish_reason, error, copy(sequence.usage))))


_UNSETTLED = -1


def _settled(choice: Choice) -> int | Exception:
    """The outcome where it needs no sampling."""
    if isinstance(choice, Closing):
        return choice.token_id
    return choice if isinstance(choice, Exception) else _UNSETTLED


def _pick(sequence: Sequence, slot: int) -> Pick:
    return Pick(slot, sequence.params, sequence.stream.uniform(sequence.num_output))
