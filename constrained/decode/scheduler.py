"""Who computes what in the next step. Decides only: it touches block numbers and counters, never tensors.

Running sequences that decode come first: a token each, or the few that were forced upon them. What the step's token
budget leaves goes to prefill, in order of admission, in chunks: small ones while others decode, by what `Pace` has learned
of their cost, so that a long prompt never stalls running streams. Where those who wait for their first token
gain more than those who decode lose by it, as when many arrive together, steps take in what a tenth of a second computes
until all of them are in.

A waiting sequence is admitted when the pool holds all its tokens and a spare block for each running one; higher priority
first, then in order of arrival. Each time that a later one is admitted before it, a sequence comes nearer to the next
higher priority, so that none starves. One whose prompt begins as another's does that is just being computed waits for it
and then shares its blocks.

When a running sequence cannot grow, the youngest of the lowest priority gives its blocks back; so does one that is
paused. What they held stays known as long as memory allows, and is found again when they go on.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

from constrained.decode.batch import Span
from constrained.decode.blocks import BlockManager, Copy
from constrained.decode.pace import Pace
from constrained.decode.sequence import Sequence
from constrained.errors import OptionError

SHORT_SPAN = 16  # tokens of output that one sequence may compute as a decode step
_CONTEXT_STEP = 512  # tokens of context that make a prefilled token half a token dearer
PATIENCE = 8  # overtakings that weigh as much as one level of priority


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """`prefill_busy` and `prefill_idle` are the most prefill tokens per step while others decode and while none does.

    Beside decoding there are fewer where a step would otherwise take more than `stretch` times as long as without prefill;
    while many come in together, where one would take more than a tenth of a second; while none decodes, half a second.
    """

    max_running: int = 32
    prefill_busy: int = 128
    prefill_idle: int = 2048
    stretch: float = 1.5

    def __post_init__(self) -> None:
        for name in ("max_running", "prefill_busy", "prefill_idle"):
            if getattr(self, name) < 1:
                raise OptionError(f"{getattr(self, name)} is too few: at least 1 is needed", name)
        if not self.stretch > 1:
            raise OptionError(f"{self.stretch} leaves no time for prefill: more than 1 is needed", "stretch")


@dataclass(slots=True)
class Work:
    """What one sequence does in a step: compute its tokens from `num_computed` to `end`; sample if that is all of them.

    `drafts` are guesses of what follows; each is computed too, and what follows it is sampled as well.
    """

    sequence: Sequence
    end: int
    drafts: Seq[int] = ()

    @property
    def samples(self) -> bool:
        return self.end == len(self.sequence.tokens)

    @property
    def num_logits(self) -> int:
        return 1 + len(self.drafts) if self.samples else 0

    def span(self) -> Span:
        sequence = self.sequence
        token_ids = sequence.tokens[sequence.num_computed : self.end]
        token_ids += self.drafts
        return Span(token_ids, sequence.num_computed, sequence.table.blocks, self.num_logits)


@dataclass(frozen=True, slots=True)
class Plan:
    """One step: first the copies of blocks, then the work: of `num_decoding` sequences that decode, and `num_prefill` tokens.

    Prefill tokens are weighted by the context that they attend to.
    """

    work: list[Work]
    copies: list[Copy]
    num_decoding: int = 0
    num_prefill: float = 0


class Scheduler:
    """`running` is in order of admission; `waiting` and `paused` hold no blocks."""

    def __init__(self, blocks: BlockManager, limits: SchedulerLimits) -> None:
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.paused: list[Sequence] = []
        self.num_preemptions = self.num_cached = 0
        self._num_arrivals = self._last_of_burst = 0
        self._blocks = blocks
        self._limits = limits
        self.pace = Pace(limits.prefill_busy, limits.stretch)
        self._copies: list[Copy] = []

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def sequences(self) -> list[Sequence]:
        return [*self.running, *self.waiting, *self.paused]

    def add(self, sequence: Sequence) -> None:
        self._num_arrivals += 1
        sequence.arrival = self._num_arrivals
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence, *, is_sound: bool = True) -> None:
        """Forget a sequence and free its slot and blocks. Where a step failed (not `is_sound`), its last blocks are unknown."""
        for queue in (self.running, self.waiting, self.paused):
            if sequence in queue:
                queue.remove(sequence)
        self._blocks.release(sequence.table, sequence.tokens, sequence.num_computed if is_sound else 0)

    def pause(self, sequence: Sequence) -> None:
        """Take a sequence out until `resume`; its slot goes to another."""
        if sequence in self.running or sequence in self.waiting:
            self._park(sequence, self.paused)

    def resume(self, sequence: Sequence) -> None:
        if sequence in self.paused:
            self._park(sequence, self.waiting)

    def replace(self, sequence: Sequence, tokens: list[int]) -> None:
        """Give a sequence other tokens to go on from; blocks that still hold are found again."""
        self._park(sequence, self.paused if sequence in self.paused else self.waiting)
        sequence.tokens = tokens

    def schedule(self) -> Plan:
        """The next step's work; empty only where nothing waits or runs, or all that runs is thinking."""
        self._copies = []
        self._grow_running()
        self._admit()
        decoding = [s for s in self.running if _is_decoding(s) and not s.is_thinking]
        prefill, spent = self._prefill(self._prefill_budget(len(decoding)))
        return Plan([Work(s, len(s.tokens)) for s in decoding] + prefill, self._copies, len(decoding), spent)

    def add_drafts(self, work: Work, drafts: Seq[int]) -> None:
        """Let the work try `drafts`, if there is memory to spare for them."""
        sequence = work.sequence
        spare = self._blocks.num_free - len(self.running)
        missing = self._blocks.blocks_for(len(sequence.tokens) + len(drafts)) - len(sequence.table)
        if missing <= max(spare, 0) and self._blocks.grow(sequence.table, len(sequence.tokens) + len(drafts)):
            work.drafts = list(drafts)

    def computed(self, sequence: Sequence, num_tokens: int) -> None:
        """The KV memory holds the first `num_tokens` of the sequence now."""
        was_prefilling = sequence.num_computed < sequence.usage.prompt_tokens
        sequence.num_computed = num_tokens
        if was_prefilling and num_tokens >= sequence.usage.prompt_tokens:
            self._blocks.register_tail(sequence.table, sequence.tokens, num_tokens)
        elif (sequence.table.num_known + 1) * self._blocks.block_len <= num_tokens:
            self._blocks.register(sequence.table, sequence.tokens, num_tokens)

    def _grow_running(self) -> None:
        """Give each running sequence room for its next tokens; the first of the order is served first."""
        block_len = self._blocks.block_len
        short = [s for s in self.running if len(s.tokens) > len(s.table.blocks) * block_len]
        for sequence in sorted(short, key=_turn):
            while sequence in self.running and not self._blocks.grow(sequence.table, len(sequence.tokens)):
                self._preempt(max(self.running, key=_turn))

    def _preempt(self, sequence: Sequence) -> None:
        self._park(sequence, self.waiting)
        self.num_preemptions += 1

    def _park(self, sequence: Sequence, queue: list[Sequence]) -> None:
        self.remove(sequence)
        sequence.num_computed = 0
        queue.append(sequence)

    def _admit(self) -> None:
        for sequence in sorted(self.waiting, key=_turn):
            if len(self.running) >= self._limits.max_running:
                return
            if self._blocks.remembers and self._is_being_computed(sequence):
                continue
            if not self._take_blocks(sequence):
                return
            self._start(sequence)

    def _take_blocks(self, sequence: Sequence) -> bool:
        """The known prefix and room for the rest, leaving one spare block for each running sequence."""
        table, num_cached, copies = self._blocks.reuse(sequence.tokens)
        missing = self._blocks.blocks_for(len(sequence.tokens)) - len(table)
        if missing + len(self.running) > self._blocks.num_free:
            self._blocks.release(table)
            return False
        self._blocks.grow(table, len(sequence.tokens))
        sequence.table, sequence.num_computed = table, num_cached
        self._copies += copies
        return True

    def _start(self, sequence: Sequence) -> None:
        self.waiting.remove(sequence)
        self.running.append(sequence)
        for other in self.waiting:
            other.num_overtaken += other.arrival < sequence.arrival
        if not sequence.was_admitted:
            sequence.was_admitted = True
            sequence.usage.queue_ms = sequence.elapsed_ms()
            sequence.usage.cached_tokens = min(sequence.num_computed, sequence.usage.prompt_tokens)
            self.num_cached += sequence.usage.cached_tokens

    def _is_being_computed(self, sequence: Sequence) -> bool:
        """Whether a running sequence is about to compute what both begin with, and enough of it to wait for."""
        block_len, tokens = self._blocks.block_len, sequence.tokens
        for other in self.running:
            if not _is_decoding(other):
                start = other.num_computed // block_len * block_len
                end = min(start + block_len, len(tokens) - 1, len(other.tokens))
                if end - start >= block_len // 2 and tokens[:end] == other.tokens[:end]:
                    return True
        return False

    def _prefill_budget(self, num_decoding: int) -> int:
        """By who gains more: prefill of t seconds, stretched over many steps, takes t / (stretch - 1) longer than at once.

        Each that waits would gain that, and each that decodes is silent for t; in all it is delayed by t either way. A single
        newcomer, who may bring any length, disturbs nobody's rhythm.
        """
        arrivals = [sequence.arrival for sequence in self.running if not _is_decoding(sequence)]
        if not num_decoding or len(arrivals) > max(1, (self._limits.stretch - 1) * num_decoding):
            self._last_of_burst = max(arrivals, default=0)
        elif all(arrival > self._last_of_burst for arrival in arrivals):
            self._last_of_burst = 0
        if not num_decoding:
            return self.pace.idle_budget(self._limits.prefill_idle)
        budget = self.pace.budget(num_decoding)
        return max(budget, self.pace.burst_budget(self._limits.prefill_idle)) if self._last_of_burst else budget

    def _prefill(self, budget: int) -> tuple[list[Work], float]:
        """Prefill for up to `budget` weighted tokens, and how many they are."""
        work, spent = [], 0.0
        for sequence in self.running:
            if _is_decoding(sequence) or sequence.is_thinking or budget <= 0:
                continue
            # A token costs more behind a long context: its attention grows with it.
            weight = 2 + sequence.num_computed // _CONTEXT_STEP
            end = min(len(sequence.tokens), sequence.num_computed + max(1, 2 * budget // weight))
            budget -= (end - sequence.num_computed) * weight // 2
            spent += (end - sequence.num_computed) * weight / 2
            work.append(Work(sequence, end))
        return work, spent


def _is_decoding(sequence: Sequence) -> bool:
    missing = len(sequence.tokens) - sequence.num_computed
    return sequence.num_computed > 0 and missing <= (SHORT_SPAN if sequence.num_output else 1)


def _turn(sequence: Sequence) -> tuple[int, int]:
    """Smaller goes first."""
    return -(sequence.params.priority + sequence.num_overtaken // PATIENCE), sequence.arrival
