"""From logits to tokens: the mask first, then penalties, temperature, truncation, and a draw by each sequence's own number.

Knows rows of logits and what to do with each, nothing of sequences.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from constrained.decode import mask_kernels, masking
from constrained.decode.request import SamplingParams, TokenLogprob
from constrained.decode.shaping import Adjustment, adjust
from constrained.decode.truncation import truncate

_LEAST_TEMPERATURE = 1e-30  # its inverse times a logit is a number still
# dtype -> (integers of the same bits, magnitude bits, bits of +inf)
_ORDERED = {torch.float32: (torch.int32, 0x7FFFFFFF, 0x7F800000), torch.bfloat16: (torch.int16, 0x7FFF, 0x7F80)}


class Pick(NamedTuple):
    """How to sample one row of logits: its slot in the row table, its parameters, its uniform number in [0, 1)."""

    slot: int
    params: SamplingParams
    uniform: float
    adjustment: Adjustment | None = None

    @property
    def is_plain_greedy(self) -> bool:
        return self.params.temperature == 0 and self.adjustment is None


@dataclass(frozen=True, slots=True)
class LogprobAsk:
    """The log-probability of `token_id` and of the `num_top` likeliest in row `row` of the logits; `slot` None: no mask."""

    row: int
    slot: int | None
    token_id: int
    num_top: int


class Sampler:
    """Samples a step's rows of logits under the rows of `table` [capacity, num_words].

    `kernels`: numba (a CPU's) or torch (any device's); by default what the table's device takes.
    """

    def __init__(self, table: Tensor, kernels: bool | None = None) -> None:
        self._table = table
        self._kernels = table.device.type == "cpu" if kernels is None else kernels

    def warm_up(self, width: int, dtype: torch.dtype) -> None:
        """Compile, so that no request waits for it."""
        logits = torch.zeros(2, width, dtype=dtype, device=self._table.device)
        self.sample(logits, [Pick(0, SamplingParams(temperature=t), 0.5) for t in (0.0, 1.0)])

    def sample(self, logits: Tensor, picks: Seq[Pick]) -> list[int]:
        """One token for each row of logits [B, V]; -1 where no allowed token has a finite logit."""
        tokens = np.full(len(picks), -1, np.int64)
        slots = np.array([pick.slot for pick in picks], np.int64)
        are_greedy = [pick.is_plain_greedy for pick in picks]
        greedy = np.flatnonzero(are_greedy)
        if len(greedy):
            tokens[greedy] = self._argmax(logits, greedy, slots)
        if len(greedy) < len(picks):
            others = [i for i, is_greedy in enumerate(are_greedy) if not is_greedy]
            tokens[others] = self._choose(logits[others], [picks[i] for i in others], slots[others])
        found: list[int] = tokens.tolist()
        return found

    def argmax(self, logits: Tensor, rows: Seq[int], slots: Seq[int]) -> list[int]:
        """The likeliest allowed token of some rows of logits [B, V], whose slots are given; -1 where none is finite."""
        chosen, by_row = np.array(rows, np.int64), np.zeros(len(logits), np.int64)
        by_row[chosen] = slots
        found: list[int] = self._argmax(logits, chosen, by_row).tolist()
        return found

    def logprobs(self, logits: Tensor, asks: Seq[LogprobAsk]) -> list[TokenLogprob]:
        """What `asks` want to know of logits [B, V]; a token that its mask forbids has -inf."""
        scores = logits[[ask.row for ask in asks]].to(torch.float32, copy=True)
        masked = [i for i, ask in enumerate(asks) if ask.slot is not None]
        if masked:
            scores[masked] = self._masked(scores[masked], np.array([asks[i].slot for i in masked], np.int64))
        scores -= scores.logsumexp(dim=-1, keepdim=True)
        chosen = scores[torch.arange(len(asks)), [ask.token_id for ask in asks]].tolist()
        most = min(max(ask.num_top for ask in asks), scores.shape[1])
        best = scores.topk(most)
        tops = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [
            TokenLogprob(ask.token_id, value, tuple(_finite(ids, values, ask.num_top)))
            for ask, value, (ids, values) in zip(asks, chosen, tops, strict=True)
        ]

    def _argmax(self, logits: Tensor, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self._kernels or logits.dtype not in _ORDERED:
            places = torch.from_numpy(slots[rows]).to(logits.device)
            best = masking.masked_argmax(logits[torch.from_numpy(rows).to(logits.device)], self._table, places)
            return np.asarray(best.cpu().numpy())
        integers, magnitude, infinity = _ORDERED[logits.dtype]
        out = np.empty(len(rows), np.int64)
        bits = logits.contiguous().view(integers).numpy()
        mask_kernels.masked_argmax(bits, rows, self._table.numpy(), slots, magnitude, infinity, out)
        return out

    def _choose(self, logits: Tensor, picks: Seq[Pick], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whatever is not plainly greedy, on a float32 copy of its rows."""
        if self._kernels:
            temperatures = [pick.params.temperature for pick in picks]
            scores = self._masked(logits.to(torch.float32, copy=True), slots)
        else:
            # What no penalty waits for is divided by its temperature in the same pass.
            early = [pick.params.temperature if pick.adjustment is None else 1.0 for pick in picks]
            temperatures = [pick.params.temperature if pick.adjustment is not None else 1.0 for pick in picks]
            inverses = torch.tensor([1.0 / max(t, _LEAST_TEMPERATURE) for t in early], device=logits.device)
            scores = masking.masked_scores(logits, self._table, torch.from_numpy(slots).to(logits.device), inverses)
        adjust(scores, [pick.adjustment for pick in picks])
        tokens = np.empty(len(picks), np.int64)
        greedy = [i for i, pick in enumerate(picks) if pick.params.temperature == 0]
        random = [i for i, pick in enumerate(picks) if pick.params.temperature > 0]
        if greedy:
            tokens[greedy] = masking.finite_argmax(scores[greedy]).cpu().numpy()
        if random:
            chosen = scores[random] if greedy else scores
            tokens[random] = self._draw(chosen, [picks[i] for i in random], [temperatures[i] for i in random])
        return tokens

    def _draw(self, scores: Tensor, picks: Seq[Pick], temperatures: Seq[float]) -> NDArray[np.int64]:
        # The peak is subtracted first: a tiny temperature must not overflow.
        scores -= scores.amax(dim=-1, keepdim=True)
        weights = torch.softmax(scores.div_(torch.tensor(temperatures, device=scores.device)[:, None]), dim=-1)
        truncate(weights, [pick.params for pick in picks])
        uniforms = np.array([pick.uniform for pick in picks])
        if not self._kernels:
            return np.asarray(masking.draw(weights, torch.from_numpy(uniforms).to(weights.device)).cpu().numpy())
        out = np.empty(len(picks), np.int64)
        mask_kernels.draw(weights.numpy(), uniforms, out)
        return out

    def _masked(self, scores: Tensor, slots: NDArray[np.int64]) -> Tensor:
        """Float32 [B, V] with -inf where the rows of `slots` forbid; may be done in place."""
        if self._kernels:
            mask_kernels.mask_logits(scores.numpy(), self._table.numpy(), slots)
            return scores
        return masking.mask_logits(scores, self._table, torch.from_numpy(slots).to(scores.device))


def _finite(ids: list[int], values: list[float], num_top: int) -> list[tuple[int, float]]:
    return [(token, value) for token, value in zip(ids[:num_top], values, strict=False) if value > float("-inf")]
