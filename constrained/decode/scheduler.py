"""Who computes what in the next step. Decides only: it touches block numbers and counters, never tensors.

Running sequences that decode come first, one token each. What the step's token budget leaves goes to prefill, in
order of arrival, in chunks: small ones while others decode, so that a long prompt never stalls running streams. A
waiting sequence is admitted when the pool holds all its tokens and a spare block for each running one. When a running
sequence cannot grow, the youngest one gives its blocks back and is computed anew later (preemption by recompute).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from constrained.decode.batch import Span
from constrained.decode.blocks import BlockManager
from constrained.decode.sequence import Sequence
from constrained.errors import OptionError


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """`prefill_busy` and `prefill_idle` are prefill tokens per step while others decode and while none does."""

    max_running: int = 32
    prefill_busy: int = 64
    prefill_idle: int = 512

    def __post_init__(self) -> None:
        for name in ("max_running", "prefill_busy", "prefill_idle"):
            if getattr(self, name) < 1:
                raise OptionError(f"{getattr(self, name)} is too few: at least 1 is needed", name)


@dataclass(frozen=True, slots=True)
class Work:
    """What one sequence does in a step: compute its tokens from `num_computed` to `end`; sample if that is all of them."""

    sequence: Sequence
    end: int

    @property
    def samples(self) -> bool:
        return self.end == len(self.sequence.tokens)

    def span(self) -> Span:
        sequence = self.sequence
        return Span(sequence.tokens[sequence.num_computed : self.end], sequence.num_computed, sequence.blocks, self.samples)


class Scheduler:
    """`waiting` and `running`, both in order of arrival."""

    def __init__(self, blocks: BlockManager, limits: SchedulerLimits) -> None:
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.num_preemptions = 0
        self._blocks = blocks
        self._limits = limits

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence and free its slot and blocks."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._blocks.release(sequence.blocks)

    def schedule(self) -> list[Work]:
        """The next step's work; empty only when nothing is waiting or running."""
        decoding = self._grow_decoding()
        self._admit()
        budget = self._limits.prefill_busy if decoding else self._limits.prefill_idle
        return decoding + self._prefill(budget)

    def _grow_decoding(self) -> list[Work]:
        """Give each decoding sequence room for its next token, from the oldest on."""
        for sequence in list(self.running):
            while sequence in self.running and not self._blocks.grow(sequence.blocks, len(sequence.tokens)):
                self._preempt(self.running[-1])
        return [Work(s, len(s.tokens)) for s in self.running if _is_decoding(s)]

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._blocks.release(sequence.blocks)
        sequence.num_computed = 0
        self.waiting.appendleft(sequence)
        self.num_preemptions += 1

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._limits.max_running:
            sequence = self.waiting[0]
            spare = len(self.running)
            if self._blocks.blocks_for(len(sequence.tokens)) + spare > self._blocks.num_free:
                return
            self.waiting.popleft()
            self._blocks.grow(sequence.blocks, len(sequence.tokens))
            self.running.append(sequence)
            if not sequence.num_output:
                sequence.usage.queue_ms = sequence.elapsed_ms()

    def _prefill(self, budget: int) -> list[Work]:
        work = []
        for sequence in self.running:
            if _is_decoding(sequence) or budget <= 0:
                continue
            end = min(len(sequence.tokens), sequence.num_computed + budget)
            budget -= end - sequence.num_computed
            work.append(Work(sequence, end))
        return work


def _is_decoding(sequence: Sequence) -> bool:
    return sequence.num_computed == len(sequence.tokens) - 1 and sequence.num_computed > 0
