"""What free text may say while its end is held back: every token but those that end it, as a row of the table of mask rows.

A row costs a greedy choice nothing; the logits of sequences that are shaped anyway, or whose log-probabilities are asked for,
are shifted instead (`shaping`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrained.decode.request import SamplingParams

_ids = count(-1, -1)  # the rows of grammars count up from 0


@dataclass(frozen=True, slots=True, eq=False)
class OpenRow:
    """All tokens but some; see `MaskRowLike`."""

    id: int
    words: NDArray[np.int32]


def row_for(params: SamplingParams, end_token_ids: Collection[int], vocabulary: Any) -> OpenRow | None:
    """The row that holds the end of free text back; None where nothing does, or its logits are shifted for it."""
    if not params.min_tokens or params.shapes_logits or params.logprobs is not None:
        return None
    return _without(frozenset(end_token_ids), vocabulary.num_words)


@lru_cache(maxsize=64)
def _without(token_ids: frozenset[int], num_words: int) -> OpenRow:
    bits = np.ones(32 * num_words, np.bool_)
    bits[list(token_ids)] = False
    words = np.packbits(bits, bitorder="little").view("<i4")
    words.flags.writeable = False
    return OpenRow(next(_ids), words)
