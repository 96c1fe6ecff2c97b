"""A smaller model of the same vocabulary guesses for a larger one.

It holds KV memory of its own and follows each sequence's tokens by itself. Its guesses are drawn under the grammar's
masks, by the same uniform numbers and the same parameters as the larger model's draws: where both agree on the
distribution they draw the same token, also at a high temperature.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from constrained.decode.batch import Span
from constrained.decode.blocks import BlockManager, BlockTable
from constrained.decode.choices import Choice
from constrained.decode.decisions import LogitRow, RowDecider
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.preparation import prepare
from constrained.decode.rows import RowTable
from constrained.decode.runner import ModelRunner
from constrained.decode.sampler import Sampler
from constrained.decode.sequence import Sequence
from constrained.errors import OptionError

_CHUNK = 512  # tokens that the draft model catches up on in one pass


@dataclass(slots=True)
class _Follower:
    """How far the draft model has followed one sequence: `tokens` are those whose keys and values `table` holds."""

    table: BlockTable = field(default_factory=BlockTable)
    tokens: list[int] = field(default_factory=list)


class DraftModel:
    """A `Speculator`. Raises `OptionError` where the two vocabularies differ."""

    def __init__(self, draft: ServedModel, target: ServedModel, options: EngineOptions) -> None:
        if draft.vocabulary.fingerprint != target.vocabulary.fingerprint:
            raise OptionError(f"{draft.name} has another vocabulary than {target.name}: it cannot guess for it", "draft_model")
        self._max_len = draft.context_len
        self._runner = ModelRunner(draft.hf, draft.name, options.kv_bytes, options.limits.max_running * draft.context_len)
        prepare(self._runner, options, draft.context_len)
        self._blocks = BlockManager(self._runner.num_blocks, self._runner.block_len)
        self._rows = RowTable(options.mask_rows + options.limits.max_running, draft.vocabulary.num_words, self._runner.device)
        self._decider = RowDecider(self._rows, Sampler(self._rows.table))
        self._ends = draft.eos_token_ids
        self._followers: dict[Sequence, _Follower] = {}

    def propose(self, sequences: Seq[Sequence], num_tokens: int) -> list[list[int]]:
        """Guesses under the masks; fewer where budget, grammar or memory end before."""
        drafts: dict[Sequence, list[int]] = {sequence: [] for sequence in sequences}
        active = [s for s in sequences if self._make_room(s, num_tokens)]
        self._catch_up(active)
        try:
            for _ in range(num_tokens):
                active = [s for s in active if _may_guess(s, drafts[s])]
                if not active:
                    break
                active = self._guess(active, drafts)
        finally:
            for sequence in sequences:
                _take_back(sequence, drafts[sequence])
        return [drafts[sequence] for sequence in sequences]

    def forget(self, sequence: Sequence) -> None:
        follower = self._followers.pop(sequence, None)
        if follower is not None:
            self._blocks.release(follower.table)

    def close(self) -> None:
        self._runner.close()

    def _make_room(self, sequence: Sequence, num_tokens: int) -> bool:
        """Memory for the sequence and its drafts; what the follower holds is cut to what the sequence still says."""
        follower = self._followers.setdefault(sequence, _Follower())
        del follower.tokens[_num_common(follower.tokens, sequence.tokens[:-1]) :]
        end = len(sequence.tokens) + num_tokens
        return end <= self._max_len and self._blocks.grow(follower.table, end)

    def _catch_up(self, sequences: Seq[Sequence]) -> None:
        """Compute long stretches in parts; the rest is left for the first guess."""
        for sequence in sequences:
            follower = self._followers[sequence]
            while len(sequence.tokens) - len(follower.tokens) > _CHUNK:
                self._runner.forward([self._span(follower, sequence.tokens[len(follower.tokens) :][:_CHUNK], 0)])

    def _guess(self, sequences: list[Sequence], drafts: dict[Sequence, list[int]]) -> list[Sequence]:
        """One more guess for each; those that can go on."""
        spans = []
        for sequence in sequences:
            follower, guessed = self._followers[sequence], drafts[sequence]
            spans.append(self._span(follower, guessed[-1:] or sequence.tokens[len(follower.tokens) :], 1))
        logits = self._runner.forward(spans)
        rows = [LogitRow(i, s, tuple(drafts[s]), _choice(s)) for i, s in enumerate(sequences)]
        self._decider.decide(logits, rows)
        going = []
        for row in rows:
            if not isinstance(row.outcome, Exception) and _accepts(row.sequence, row.outcome):
                drafts[row.sequence].append(row.outcome)
                if row.outcome not in self._ends:
                    going.append(row.sequence)
        return going

    def _span(self, follower: _Follower, tokens: list[int], num_logits: int) -> Span:
        span = Span(tokens, len(follower.tokens), follower.table.blocks, num_logits)
        follower.tokens += tokens
        return span


def _choice(sequence: Sequence) -> Choice:
    try:
        return sequence.matcher.mask_row() if sequence.matcher is not None else None
    except Exception as error:
        return error


def _accepts(sequence: Sequence, token_id: int) -> bool:
    try:
        return sequence.matcher is None or sequence.matcher.accept_token(token_id)
    except Exception:
        # Whatever is wrong with this grammar, the step itself will meet it, and fail for this sequence alone.
        return False


def _may_guess(sequence: Sequence, drafts: list[int]) -> bool:
    """Whether another guess could be of use: the last token of the budget, or of the document, is never guessed at."""
    matcher, remaining = sequence.matcher, sequence.remaining - len(drafts)
    if matcher is None or remaining <= 1:
        return remaining > 1
    try:
        return not (matcher.is_terminated or matcher.is_complete or matcher.min_tokens_to_end >= remaining)
    except Exception:
        return False


def _take_back(sequence: Sequence, drafts: list[int]) -> None:
    if drafts and sequence.matcher is not None:
        sequence.matcher.rollback(len(drafts))


def _num_common(a: list[int], b: list[int]) -> int:
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next(i for i in range(length) if a[i] != b[i])
