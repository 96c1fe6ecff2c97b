"""Mask rows: packed bits over the vocabulary, stored once per content, with an id that is never used again.

Bit i of word w is token 32 w + i. The engine's device table is keyed by the ids, so equal rows are uploaded once.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import kernel

Words = NDArray[np.uint32]
_ids = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class MaskRow:
    """One row: `words` int32 [num_words], read-only; `id` is unique in this process for this content while it is stored."""

    id: int
    words: NDArray[np.int32]


class RowStore:
    """Rows by content. Bounded: the least recently asked-for are forgotten (their ids are not used again)."""

    def __init__(self, capacity: int = 16_384) -> None:
        self._capacity = capacity
        self._rows: OrderedDict[int, MaskRow] = OrderedDict()
        self._lock = threading.Lock()

    def intern(self, words: Words) -> MaskRow:
        """The stored row equal to `words` uint32 [num_words] (copied where it is new)."""
        key = _digest(words)
        with self._lock:
            row = self._rows.get(key)
            if row is not None and _is_equal(row.words, words):
                self._rows.move_to_end(key)
                return row
            stored = words.view(np.int32).copy()
            stored.flags.writeable = False
            row = self._rows[key] = MaskRow(next(_ids), stored)
            if len(self._rows) > self._capacity:
                self._rows.popitem(last=False)
            return row


@kernel
def _digest(words):  # type: ignore[no-untyped-def]  # numba
    """64 bits that differ for nearly all different rows: four lanes of a multiplicative hash, as FNV has it."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = len(words) & ~3
    for i in range(0, whole, 4):
        one = (one ^ np.uint64(words[i])) * prime
        two = (two ^ np.uint64(words[i + 1])) * prime
        three = (three ^ np.uint64(words[i + 2])) * prime
        four = (four ^ np.uint64(words[i + 3])) * prime
        # The upper bits come down, or those of the last words would be lost.
        one, two, three, four = _mix(one), _mix(two), _mix(three), _mix(four)
    for i in range(whole, len(words)):
        one = _mix((one ^ np.uint64(words[i])) * prime)
    return np.int64(_mix((((one * prime) ^ two) * prime ^ three) * prime ^ four))


@kernel
def _mix(lane):  # type: ignore[no-untyped-def]  # numba
    return lane ^ (lane >> np.uint64(29))


@kernel
def _is_equal(signed, words):  # type: ignore[no-untyped-def]  # numba
    for i in range(len(words)):  # noqa: SIM110  # kernels take no generators
        if np.uint32(signed[i]) != words[i]:
            return False
    return True


@kernel
def set_bits(words, tokens):  # type: ignore[no-untyped-def]  # numba
    """Set the bits of `tokens` int32 [n] in `words` uint32 [num_words]."""
    for token in tokens:
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def clear_bits(words, tokens):  # type: ignore[no-untyped-def]  # numba
    """Clear the bits of `tokens` int32 [n] in `words` uint32 [num_words]."""
    for token in tokens:
        words[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
