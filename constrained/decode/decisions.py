"""From a step's logits to one decision per row: a token, or what went wrong for that row alone."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import cast

from torch import Tensor

from constrained.decode.choices import Choice, Closing
from constrained.decode.mask_kernels import UNJUDGED
from constrained.decode.request import TokenLogprob
from constrained.decode.rows import RowTable
from constrained.decode.sampler import LogprobAsk, Pick, Sampler
from constrained.decode.sequence import MaskRowLike, Sequence
from constrained.errors import InternalError

_NONE_FINITE = -1


@dataclass(slots=True)
class LogitRow:
    """Row `index` of a step's logits: whose it is, the drafts that it takes for granted, what its grammar allows there.

    `outcome` is the token, where the forward pass has found it, until `RowDecider.decide` settles all others.
    """

    index: int
    sequence: Sequence
    drafts: Seq[int]
    choice: Choice
    outcome: int | Exception = UNJUDGED
    slot: int | None = None  # of the choice in the table of mask rows, once it was asked for

    @property
    def position(self) -> int:
        """How many tokens of output come before what this row says."""
        return self.sequence.num_output + len(self.drafts)

    def pick(self) -> Pick:
        sequence = self.sequence
        adjustment = sequence.shaper.adjustment(self.position, self.drafts) if sequence.shaper is not None else None
        params = sequence.params
        uniform = sequence.stream.uniform(self.position) if params.temperature else 0.0
        return Pick(self.slot or 0, params, uniform, adjustment)


class RowDecider:
    """Settles rows by the sampler, under the mask rows of `table`."""

    def __init__(self, table: RowTable, sampler: Sampler) -> None:
        self._table = table
        self._sampler = sampler

    def decide(self, logits: Tensor, rows: Seq[LogitRow]) -> None:
        """Set the outcome of every row that has none."""
        drawn = []
        for row in rows:
            if row.outcome == UNJUDGED:
                if isinstance(row.choice, Closing):
                    row.outcome = row.choice.token_id
                elif isinstance(row.choice, Exception):
                    row.outcome = row.choice
                else:
                    drawn.append(row)
        try:
            self._draw(logits, drawn)
        except Exception:
            # One row is to blame; alone, each fails or succeeds for itself.
            for row in drawn:
                self._draw_alone(logits, row)
        for row in rows:
            if row.outcome == _NONE_FINITE:
                row.outcome = InternalError("no allowed token has a finite logit")

    def logprobs(self, logits: Tensor, tokens: Seq[tuple[LogitRow, int]]) -> list[TokenLogprob]:
        """Of one token each, at its row, as its sequence's parameters ask."""
        self._find_slots([row for row, _ in tokens if row.slot is None and not isinstance(row.choice, (Closing, Exception))])
        asks = [(row, LogprobAsk(row.index, _mask_of(row), token, row.sequence.params.logprobs or 0)) for row, token in tokens]
        certain = {i: certain_logprob(ask.token_id, ask.num_top) for i, (row, ask) in enumerate(asks) if _is_certain(row)}
        asked = iter(self._sampler.logprobs(logits, rest) if (rest := [a for r, a in asks if not _is_certain(r)]) else ())
        return [certain[i] if i in certain else next(asked) for i in range(len(asks))]

    def _draw(self, logits: Tensor, rows: Seq[LogitRow]) -> None:
        if not rows:
            return
        self._find_slots(rows)
        greedy = [row for row in rows if row.sequence.is_plain_greedy]
        if greedy:
            best = self._sampler.argmax(logits, [row.index for row in greedy], [row.slot or 0 for row in greedy])
            for row, token in zip(greedy, best, strict=True):
                row.outcome = token
        if len(greedy) < len(rows):
            others = [row for row in rows if not row.sequence.is_plain_greedy]
            indices = [row.index for row in others]
            chosen = logits if indices == list(range(len(logits))) else logits[indices]
            for row, token in zip(others, self._sampler.sample(chosen, [row.pick() for row in others]), strict=True):
                row.outcome = token

    def _find_slots(self, rows: Seq[LogitRow]) -> None:
        slots = self._table.slots([cast("MaskRowLike | None", row.choice) for row in rows])
        for row, slot in zip(rows, slots, strict=True):
            row.slot = slot

    def _draw_alone(self, logits: Tensor, row: LogitRow) -> None:
        try:
            self._draw(logits, [row])
        except Exception as error:
            row.outcome = error


def certain_logprob(token_id: int, num_top: int) -> TokenLogprob:
    """Of a token beside which none was allowed."""
    return TokenLogprob(token_id, 0.0, ((token_id, 0.0),) if num_top else ())


def _is_certain(row: LogitRow) -> bool:
    return isinstance(row.choice, Closing) and not row.sequence.params.unmasked_logprobs


def _mask_of(row: LogitRow) -> int | None:
    return None if row.sequence.params.unmasked_logprobs else row.slot
