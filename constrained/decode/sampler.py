"""From logits to tokens: the mask first, then temperature, top-k, top-p, min-p, and a draw by each sequence's own number.

Knows rows of logits and what to do with each, nothing of sequences. The vocabulary is never sorted: top-k and top-p look
at as many of the best tokens as they need. Truncations act as in transformers, each on what the one before has left.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from constrained.decode import mask_kernels, masking
from constrained.decode.request import SamplingParams

_FIRST_LOOK = 64
_LOOK_GROWTH = 8
# dtype -> (integers of the same bits, magnitude bits, bits of +inf)
_ORDERED = {torch.float32: (torch.int32, 0x7FFFFFFF, 0x7F800000), torch.bfloat16: (torch.int16, 0x7FFF, 0x7F80)}


@dataclass(frozen=True, slots=True)
class Pick:
    """How to sample one row of logits: its slot in the row table, its parameters, its uniform number in [0, 1)."""

    slot: int
    params: SamplingParams
    uniform: float


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
        greedy = np.array([i for i, pick in enumerate(picks) if pick.params.temperature == 0], np.int64)
        random = [i for i, pick in enumerate(picks) if pick.params.temperature > 0]
        if len(greedy):
            tokens[greedy] = self._argmax(logits, greedy, slots)
        if random:
            tokens[random] = self._draw(logits[random], [picks[i] for i in random], slots[random])
        return [int(token) for token in tokens]

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

    def _draw(self, logits: Tensor, picks: Seq[Pick], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        weights = self._probabilities(logits, picks, slots)
        for i, pick in enumerate(picks):
            _truncate(weights[i], pick.params)
        uniforms = np.array([pick.uniform for pick in picks])
        if not self._kernels:
            return np.asarray(masking.draw(weights, torch.from_numpy(uniforms).to(weights.device)).cpu().numpy())
        out = np.empty(len(picks), np.int64)
        mask_kernels.draw(weights.numpy(), uniforms, out)
        return out

    def _probabilities(self, logits: Tensor, picks: Seq[Pick], slots: NDArray[np.int64]) -> Tensor:
        """Float32 [B, V] of the masked distributions at each row's temperature."""
        scores = logits.to(torch.float32, copy=True)
        if self._kernels:
            mask_kernels.mask_logits(scores.numpy(), self._table.numpy(), slots)
        else:
            scores = masking.mask_logits(scores, self._table, torch.from_numpy(slots).to(scores.device))
        temperatures = torch.tensor([[pick.params.temperature] for pick in picks], device=scores.device)
        # The peak is subtracted first: a tiny temperature must not overflow.
        scores -= scores.amax(dim=-1, keepdim=True)
        return torch.softmax(scores.div_(temperatures), dim=-1)


def _truncate(weights: Tensor, params: SamplingParams) -> None:
    """In place: zero what top-k, top-p and min-p cut off one row of probabilities [V]."""
    if params.top_k or params.top_p < 1.0:
        best, tokens = _nucleus(weights, params)
        weights.zero_()
        weights[tokens] = best
    if params.min_p:
        weights.masked_fill_(weights < params.min_p * weights.max(), 0.0)


def _nucleus(weights: Tensor, params: SamplingParams) -> tuple[Tensor, Tensor]:
    """The probabilities and ids that top-k, then top-p leave, best first; at least one."""
    width = weights.shape[0]
    if params.top_k:
        best, tokens = weights.topk(min(params.top_k, width))
        goal = params.top_p * best.sum()
    else:
        goal = params.top_p * weights.sum()
        look = min(_FIRST_LOOK, width)
        best, tokens = weights.topk(look)
        while look < width and best.sum() < goal:
            look = min(look * _LOOK_GROWTH, width)
            best, tokens = weights.topk(look)
    kept = best.cumsum(dim=0) - best < goal if params.top_p < 1.0 else torch.ones_like(best, dtype=torch.bool)
    kept[0] = True
    return best[kept], tokens[kept]
