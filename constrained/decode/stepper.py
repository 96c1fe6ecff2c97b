"""One decode step: compute a plan's logits and masks side by side, decide on tokens, move the sequences on.

Knows neither threads nor queues; what it ends or emits goes through two callbacks.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from torch import Tensor

from constrained.decode.advance import advance, jump
from constrained.decode.choices import Choice, ChoiceWorker, Closing, Pending, wait_for
from constrained.decode.decisions import LogitRow, RowDecider, certain_logprob
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.request import Chunk, FinishReason, TokenLogprob
from constrained.decode.rows import RowTable
from constrained.decode.runner import ModelRunner
from constrained.decode.sampler import Sampler
from constrained.decode.scheduler import Plan, Scheduler, Work
from constrained.decode.sequence import Sequence
from constrained.decode.speculation import Speculation
from constrained.decode.stats import StepClock

_log = logging.getLogger(__name__)
Delivery = list[tuple[Sequence, Chunk]]


@dataclass(slots=True)
class Taken:
    """What one step added to one sequence: `data` that may be shown, `sampled` tokens at their rows, `certain` ones after."""

    sequence: Sequence
    data: bytes = b""
    sampled: list[tuple[LogitRow, int]] = field(default_factory=list)
    certain: list[int] = field(default_factory=list)
    error: Exception | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        return (*(token for _, token in self.sampled), *self.certain)


class Stepper:
    """`outbox` gathers the chunks of a step."""

    def __init__(self, model: ServedModel, options: EngineOptions, runner: ModelRunner, scheduler: Scheduler) -> None:
        self._model = model
        self._runner = runner
        self._scheduler = scheduler
        self._patience_s = options.mask_patience_s
        rows_per_sequence = 1 + (options.speculation or Speculation()).num_tokens
        capacity = max(options.mask_rows, options.limits.max_running * rows_per_sequence) + 1
        self.rows = RowTable(capacity, model.vocabulary.num_words, runner.device)
        self.sampler = Sampler(self.rows.table)
        self.sampler.warm_up(model.vocabulary.size, runner.dtype)
        self.decider = RowDecider(self.rows, self.sampler)
        self.worker = ChoiceWorker()
        self.clock = StepClock()
        self.outbox: Delivery = []
        self.num_steps = self.num_tokens = self.num_prefill = self.num_sat_out = 0

    def run(self, plan: Plan) -> None:
        """Compute, decide, move on."""
        sampling = [w for w in plan.work if w.samples]
        pending = self.worker.start([w.sequence for w in sampling], [w.drafts for w in sampling])
        try:
            logits = self._runner.forward([w.span() for w in plan.work], plan.copies)
        except Exception as error:
            _log.exception("a forward pass of %d sequences failed", len(plan.work))
            for w in plan.work:
                self.end(w.sequence, error, is_sound=False)
            return
        self.clock.lap("forward_ms")
        choices = wait_for(pending, self._patience_s)
        self.clock.lap("mask_wait_ms")
        self._count(plan.work)
        rows = self._rows_of(sampling, choices, pending)
        self.decider.decide(logits, [row for each in rows for row in each])
        self.clock.lap("sample_ms")
        self._move_on(logits, plan.work, [self._take(w, each) for w, each in zip(sampling, rows, strict=True) if each])
        self.clock.lap("advance_ms")

    def jump(self, sequence: Sequence) -> None:
        """Emit what is certain without the model."""
        try:
            tokens = jump(sequence)
        except Exception as error:
            self.end(sequence, error)
            return
        if tokens:
            self._emit(Taken(sequence, b"".join(map(self._bytes, tokens)), certain=tokens), [])

    def end(self, sequence: Sequence, error: Exception | None = None, *, is_sound: bool = True) -> None:
        """End a sequence that yields no token: cancelled, cut by its time limit, or with its error."""
        self._scheduler.remove(sequence, is_sound=is_sound)
        reason: FinishReason = "error" if error is not None else "cancelled"
        if error is None and not sequence.is_cancelled and sequence.is_late:
            reason = "length"
        sequence.finish(reason, error)
        data = sequence.stop.flush() if sequence.stop is not None else b""
        self.outbox.append((sequence, Chunk(data, (), sequence.finish_reason, error, sequence.usage.so_far())))

    def _count(self, work: list[Work]) -> None:
        self.num_steps += 1
        for w in work:
            self.num_prefill += w.end - w.sequence.num_computed - w.samples
            if not w.samples:
                self._scheduler.computed(w.sequence, w.end)

    def _rows_of(self, sampling: list[Work], choices: list[list[Choice] | None], pending: Pending) -> list[list[LogitRow]]:
        """The rows of each sequence; none where its masks are late: its last token is then computed once more."""
        rows: list[list[LogitRow]] = []
        index = 0
        for w, options, future in zip(sampling, choices, pending, strict=True):
            if options is None:
                w.sequence.thinking = future
                self.num_sat_out += 1
                self._scheduler.computed(w.sequence, w.end - 1)
                rows.append([])
            else:
                rows.append([LogitRow(index + i, w.sequence, w.drafts[:i], choice) for i, choice in enumerate(options)])
            index += w.num_logits
        return rows

    def _take(self, work: Work, rows: list[LogitRow]) -> Taken:
        """Move one sequence on, draft by draft as long as they are right, then through what is certain."""
        sequence, taken = work.sequence, Taken(work.sequence)
        try:
            for i, row in enumerate(rows):
                if isinstance(row.outcome, Exception):
                    raise row.outcome
                token = advance(sequence, row.outcome, self._ends, is_closing=isinstance(row.choice, Closing))
                taken.sampled.append((row, token))
                taken.data += self._shown(sequence, self._bytes_of(sequence, token))
                if sequence.finish_reason is not None or i == len(work.drafts) or token != work.drafts[i]:
                    break
            sequence.usage.drafted_tokens += len(work.drafts)
            sequence.usage.accepted_tokens += max(0, len(taken.sampled) - 1)
            taken.certain = jump(sequence)
            taken.data += b"".join(map(self._bytes, taken.certain))
        except Exception as error:
            taken.error = error
        return taken

    def _move_on(self, logits: Tensor, work: list[Work], taken: list[Taken]) -> None:
        ends = {id(w.sequence): w.end for w in work}
        asked = [pair for t in taken if t.sequence.params.logprobs is not None for pair in t.sampled]
        logprobs = iter(self.decider.logprobs(logits, asked) if asked else ())
        for t in taken:
            self._scheduler.computed(t.sequence, ends[id(t.sequence)] + max(0, len(t.sampled) - 1))
            self._emit(t, [next(logprobs) for _ in t.sampled] if t.sequence.params.logprobs is not None else [])
            if t.error is not None:
                self.end(t.sequence, t.error)

    def _emit(self, taken: Taken, logprobs: list[TokenLogprob]) -> None:
        sequence, tokens = taken.sequence, taken.token_ids
        self.num_tokens += len(tokens)
        if sequence.finish_reason is not None:
            self._scheduler.remove(sequence)
        if not tokens:
            return
        stop, num_top = sequence.stop, sequence.params.logprobs
        if stop is not None and sequence.finish_reason is not None:
            taken.data += stop.flush()
        if num_top is not None:
            logprobs = [*logprobs, *(certain_logprob(token, num_top) for token in taken.certain)]
        found = stop.found if stop is not None else None
        reason, usage = sequence.finish_reason, sequence.usage.so_far()
        self.outbox.append((sequence, Chunk(taken.data, tokens, reason, None, usage, tuple(logprobs), found)))

    def _shown(self, sequence: Sequence, data: bytes) -> bytes:
        """What of `data` may go out now; a stop string in it ends the sequence."""
        if sequence.stop is None:
            return data
        data = sequence.stop.feed(data)
        if sequence.stop.found is not None:
            sequence.finish("stop")
        return data

    @property
    def _ends(self) -> Collection[int]:
        return self._model.eos_token_ids

    def _bytes_of(self, sequence: Sequence, token: int) -> bytes:
        return b"" if token in sequence.params.stop_token_ids else self._bytes(token)

    def _bytes(self, token: int) -> bytes:
        vocabulary: bytes = self._model.vocabulary.token_bytes[token]
        return b"" if token in self._model.eos_token_ids else vocabulary
