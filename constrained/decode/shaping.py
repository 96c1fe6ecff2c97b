"""What penalties, biases and a held-back end do to a sequence's logits, token by token, before the temperature acts.

Only tokens that were seen, biased or held back are touched: cost follows the text, not the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from constrained.decode.request import SamplingParams


@dataclass(frozen=True, slots=True)
class Adjustment:
    """For one row of logits: token `ids` [K], the `scale` [K] that weakens them, and what `shift` [K] adds afterwards."""

    ids: NDArray[np.int64]
    scale: NDArray[np.float32]
    shift: NDArray[np.float32]


class LogitShaper:
    """Counts one sequence's tokens; `adjustment` says what its next logits undergo."""

    def __init__(self, params: SamplingParams, prompt: Iterable[int], end_token_ids: Collection[int]) -> None:
        self._params = params
        self._places: dict[int, int] = {}  # token id -> index into the arrays
        self._ids = np.empty(64, np.int64)
        self._counts = np.zeros(64, np.int32)  # in the output
        self._in_prompt = np.zeros(64, np.bool_)
        self._bias = np.zeros(64, np.float32)
        self._ends = np.zeros(64, np.bool_)
        self.see(prompt)
        for token, bias in params.logit_bias.items():
            place = self._place(token)
            self._bias[place] = bias
        if params.min_tokens:
            for token in end_token_ids:
                place = self._place(token)
                self._ends[place] = True

    def see(self, prompt: Iterable[int]) -> None:
        """More tokens that the model sees and did not say."""
        if self._params.repetition_penalty != 1.0:
            for token in prompt:
                place = self._place(token)
                self._in_prompt[place] = True

    def add(self, token_id: int) -> None:
        """One more token of the output."""
        place = self._place(token_id)
        self._counts[place] += 1

    def adjustment(self, num_output: int, drafts: Seq[int] = ()) -> Adjustment:
        """For the logits after `num_output` tokens, the last of which are `drafts` that were not added."""
        for token in drafts:
            self.add(token)
        size, params = len(self._places), self._params
        counts = self._counts[:size].astype(np.float32)
        seen = self._in_prompt[:size] | (counts > 0)
        scale = np.where(seen, np.float32(params.repetition_penalty), np.float32(1.0))
        shift = self._bias[:size] - params.presence_penalty * (counts > 0) - params.frequency_penalty * counts
        if num_output < params.min_tokens:
            shift[self._ends[:size]] = -np.inf
        for token in drafts:
            self._counts[self._places[token]] -= 1
        return Adjustment(self._ids[:size].copy(), scale, shift.astype(np.float32))

    def _place(self, token_id: int) -> int:
        """The token's index into the arrays, which may be other ones afterwards."""
        place = self._places.get(token_id)
        if place is None:
            place = self._places[token_id] = len(self._places)
            if place == len(self._ids):
                self._lengthen()
            self._ids[place] = token_id
        return place

    def _lengthen(self) -> None:
        for name in ("_ids", "_counts", "_in_prompt", "_bias", "_ends"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array)]))


def adjust(scores: Tensor, adjustments: Seq[Adjustment | None]) -> None:
    """In place on scores [B, V]: positive ones are divided by the scale, others multiplied, then shifted."""
    touched = [(i, a) for i, a in enumerate(adjustments) if a is not None and len(a.ids)]
    if not touched:
        return
    rows = torch.from_numpy(np.repeat([i for i, _ in touched], [len(a.ids) for _, a in touched])).to(scores.device)
    ids, scale, shift = (
        torch.from_numpy(np.concatenate([getattr(a, part) for _, a in touched])).to(scores.device)
        for part in ("ids", "scale", "shift")
    )
    old = scores[rows, ids]
    scores[rows, ids] = torch.where(old > 0, old / scale, old * scale) + shift
