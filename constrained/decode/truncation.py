"""Top-k, top-p and min-p on a batch of distributions, without ever sorting the vocabulary.

Each looks at as many of the best tokens as it needs. They act in this order, each on what the one before has left, as in
transformers.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import torch
from torch import Tensor

from constrained.decode.request import SamplingParams

_FIRST_LOOK = 64
_LOOK_GROWTH = 8


def truncate(weights: Tensor, params: Seq[SamplingParams]) -> None:
    """In place on probabilities [B, V]: zero what top-k, top-p and min-p cut off; at least one token stays."""
    cut = [i for i, p in enumerate(params) if p.top_k or p.top_p < 1.0]
    if cut:
        _keep_best(weights, cut, [params[i] for i in cut])
    floors = [p.min_p for p in params]
    if any(floors):
        least = torch.tensor(floors, device=weights.device)[:, None] * weights.amax(dim=-1, keepdim=True)
        weights.masked_fill_(weights < least, 0.0)


def _keep_best(weights: Tensor, rows: list[int], params: list[SamplingParams]) -> None:
    width = weights.shape[1]
    look = min(width, max(_FIRST_LOOK, *(p.top_k for p in params)))
    places = torch.tensor(rows, device=weights.device)
    chosen = weights[places]
    best, tokens = chosen.topk(look)
    limits = torch.tensor([min(p.top_k, width) or width for p in params], device=weights.device)[:, None]
    shares = torch.tensor([p.top_p for p in params], device=weights.device)[:, None]
    within = torch.arange(look, device=weights.device) < limits
    ranked = best * within
    totals = torch.where(limits < width, ranked.sum(dim=-1, keepdim=True), chosen.sum(dim=-1, keepdim=True))
    before = ranked.cumsum(dim=-1) - ranked
    kept = within & ((before < shares * totals) | (shares >= 1.0))
    kept[:, 0] = True
    # A nucleus that is wider than the look shows in that its last place is still kept.
    wide = (kept[:, -1] & (limits[:, 0] > look)).tolist()
    weights[places] = torch.zeros_like(chosen).scatter_(1, tokens, best * kept)
    for i, is_wide in enumerate(wide):
        if is_wide:
            weights[rows[i]] = _nucleus(chosen[i], params[i].top_p, look)


def _nucleus(weights: Tensor, top_p: float, look: int) -> Tensor:
    """One distribution [V] with top-p alone, looked at in growing parts."""
    width, goal = weights.shape[0], top_p * weights.sum()
    best, tokens = weights.topk(look)
    while look < width and best.sum() < goal:
        look = min(look * _LOOK_GROWTH, width)
        best, tokens = weights.topk(look)
    kept = best.cumsum(dim=0) - best < goal
    return torch.zeros_like(weights).scatter_(0, tokens[kept], best[kept])
