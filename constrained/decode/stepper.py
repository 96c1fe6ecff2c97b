"""One decode step: compute a plan's logits and masks side by side, decide on tokens, move the sequences on.

Knows neither threads nor queues; what it ends or emits goes through two callbacks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from torch import Tensor

from constrained.decode.advance import advance, jump
from constrained.decode.choices import Asked, Choice, ChoiceWorker, Closing
from constrained.decode.decisions import LogitRow, RowDecider, certain_logprob
from constrained.decode.mask_kernels import UNJUDGED
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
    """What one step added to one sequence: `data` to show, `token_ids`, of which the first `num_sampled` are from `rows`.

    The KV memory holds the first `num_computed` tokens of the sequence, and the sampled ones but for the last.
    """

    sequence: Sequence
    num_computed: int
    rows: Seq[LogitRow]
    token_ids: list[int]
    data: bytes = b""
    num_sampled: int = 0
    error: Exception | None = None


class Stepper:
    """`outbox` gathers the chunks of a step."""

    def __init__(self, model: ServedModel, options: EngineOptions, runner: ModelRunner, scheduler: Scheduler) -> None:
        self._model = model
        self._runner = runner
        self._scheduler = scheduler
        self._patience_s = options.mask_patience_s
        rows_per_sequence = 1 + (options.speculation or Speculation()).num_tokens
        # A late step's rows may come in beside those of the next one, and must not take their places.
        capacity = max(options.mask_rows, 2 * options.limits.max_running * rows_per_sequence) + 1
        self.rows = RowTable(capacity, model.vocabulary.num_words, runner.device)
        self.sampler = Sampler(self.rows.table)
        self.sampler.warm_up(model.vocabulary.size, runner.dtype)
        self.decider = RowDecider(self.rows, self.sampler)
        self.worker = ChoiceWorker(self.rows)
        self._data = _shown_bytes(model)
        self.clock = StepClock()
        self.outbox: Delivery = []
        self.num_steps = self.num_tokens = self.num_prefill = self.num_sat_out = 0

    def run(self, plan: Plan) -> None:
        """Compute, decide, move on."""
        sampling = [w for w in plan.work if w.samples]
        is_fused = self._runner.is_fused
        asked = self.worker.start([w.sequence for w in sampling], [w.drafts for w in sampling], for_pass=is_fused)
        try:
            logits = self._runner.forward([w.span() for w in plan.work], plan.copies, asked.greedy)
        except Exception as error:
            _log.exception("a forward pass of %d sequences failed", len(plan.work))
            for w in plan.work:
                self.end(w.sequence, error, is_sound=False)
            return
        self.clock.lap("forward_ms")
        choices = asked.wait(self._patience_s)
        self.clock.lap("mask_wait_ms")
        self._count(plan.work)
        rows = self._rows_of(sampling, choices, asked)
        self.decider.decide(logits, [row for each in rows for row in each])
        self.clock.lap("sample_ms")
        self._move_on(logits, [self._take(w, each) for w, each in zip(sampling, rows, strict=True) if each])
        self.clock.lap("advance_ms")

    def jump(self, sequence: Sequence) -> None:
        """Emit what is certain without the model."""
        try:
            tokens = jump(sequence)
        except Exception as error:
            self.end(sequence, error)
            return
        if tokens:
            self._emit(Taken(sequence, sequence.num_computed, (), tokens, self._bytes(tokens)), [])

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

    def _rows_of(self, sampling: list[Work], choices: list[list[Choice] | None], asked: Asked) -> list[list[LogitRow]]:
        """The rows of each sequence; none where its masks are late: its last token is then computed once more."""
        rows: list[list[LogitRow]] = []
        tokens = asked.greedy.tokens.tolist() or [UNJUDGED] * sum(w.num_logits for w in sampling)
        index = 0
        for i, w in enumerate(sampling):
            options, drafts = choices[i], w.drafts
            if options is None:
                w.sequence.thinking = self.worker.thinking(asked, i)
                self.num_sat_out += 1
                self._scheduler.computed(w.sequence, w.end - 1)
                rows.append([])
            elif not drafts:
                rows.append([LogitRow(index, w.sequence, drafts, options[0], tokens[index])])
            else:
                each = enumerate(options)
                rows.append([LogitRow(index + k, w.sequence, drafts[:k], choice, tokens[index + k]) for k, choice in each])
            index += 1 + len(drafts)
        return rows

    def _take(self, work: Work, rows: list[LogitRow]) -> Taken:
        """Move one sequence on, draft by draft as long as they are right, then through what is certain."""
        sequence, drafts, tokens = work.sequence, work.drafts, list[int]()
        taken = Taken(sequence, work.end, rows, tokens)
        try:
            for i, row in enumerate(rows):
                if isinstance(row.outcome, Exception):
                    raise row.outcome
                token = advance(sequence, row.outcome, self._model.eos_token_ids, is_closing=isinstance(row.choice, Closing))
                tokens.append(token)
                taken.num_sampled += 1
                taken.data += self._shown(sequence, token)
                if sequence.finish_reason is not None or i == len(drafts) or token != drafts[i]:
                    break
            if drafts:
                sequence.usage.drafted_tokens += len(drafts)
                sequence.usage.accepted_tokens += max(0, len(tokens) - 1)
            certain = jump(sequence)
            if certain:
                tokens += certain
                taken.data += self._bytes(certain)
        except Exception as error:
            taken.error = error
        return taken

    def _move_on(self, logits: Tensor, taken: list[Taken]) -> None:
        asked = [
            pair
            for t in taken
            if t.sequence.params.logprobs is not None
            for pair in zip(t.rows, t.token_ids[: t.num_sampled], strict=False)
        ]
        logprobs = iter(self.decider.logprobs(logits, asked) if asked else ())
        for t in taken:
            self._scheduler.computed(t.sequence, t.num_computed + max(0, t.num_sampled - 1))
            self._emit(t, [next(logprobs) for _ in range(t.num_sampled)] if t.sequence.params.logprobs is not None else ())
            if t.error is not None:
                self.end(t.sequence, t.error)

    def _emit(self, taken: Taken, logprobs: Seq[TokenLogprob]) -> None:
        sequence, tokens = taken.sequence, taken.token_ids
        self.num_tokens += len(tokens)
        if sequence.finish_reason is not None:
            self._scheduler.remove(sequence)
        if not tokens:
            return
        stop, num_top, found = sequence.stop, sequence.params.logprobs, None
        if stop is not None:
            found = stop.found
            if sequence.finish_reason is not None:
                taken.data += stop.flush()
        if num_top is not None:
            logprobs = [*logprobs, *(certain_logprob(token, num_top) for token in tokens[taken.num_sampled :])]
        reason, usage = sequence.finish_reason, sequence.usage.so_far()
        self.outbox.append((sequence, Chunk(taken.data, tuple(tokens), reason, None, usage, tuple(logprobs), found)))

    def _shown(self, sequence: Sequence, token: int) -> bytes:
        """What may go out of the token's bytes now; a stop string in it ends the sequence."""
        data = b"" if token in sequence.params.stop_token_ids else self._data[token]
        if sequence.stop is None:
            return data
        data = sequence.stop.feed(data)
        if sequence.stop.found is not None:
            sequence.finish("stop")
        return data

    def _bytes(self, tokens: Iterable[int]) -> bytes:
        return b"".join([self._data[token] for token in tokens])


def _shown_bytes(model: ServedModel) -> list[bytes]:
    """What each token shows: its bytes, nothing where it ends the text."""
    shown: list[bytes] = list(model.vocabulary.token_bytes)
    for token in model.eos_token_ids:
        shown[token] = b""
    return shown
