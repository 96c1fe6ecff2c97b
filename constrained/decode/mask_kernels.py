"""Numba kernels that sample under packed masks on a CPU; `masking.py` says the same in torch for any device.

Logits come as the integers of their own bits (int16 for bfloat16, int32 for float32): flipping the magnitude of negative
ones makes integer order the order of the numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import float_kernel, kernel
from constrained.decode.order import full_peak, half_peak
from constrained.decode.shares import load, put

UNKNOWN = -1  # the slot of a row whose mask is not known yet
UNJUDGED = -2  # the token of a row that nobody has looked at
_RUN = 16  # words of allowed tokens whose peak is found at once

Bits = NDArray[np.int16] | NDArray[np.int32]


class Greedy(NamedTuple):
    """What a forward pass needs to find the best allowed tokens itself, while their logits are in the caches."""

    table: NDArray[np.int32]  # [capacity, num_words]
    slots: NDArray[np.int64]  # [rows of logits], `UNKNOWN` until `announce` tells; only rows that are plainly greedy
    tokens: NDArray[np.int64]  # [rows of logits], `UNJUDGED` where the slot was not known in time


def greedy_rows(table: NDArray[np.int32], slots: NDArray[np.int64]) -> Greedy:
    return Greedy(table, slots, np.full(len(slots), UNJUDGED, np.int64))


NO_ROWS = greedy_rows(np.zeros((1, 1), np.int32), np.zeros(0, np.int64))


@kernel
def announce(
    target: NDArray[np.int64],  # of `Greedy`
    rows: NDArray[np.int64],  # [R]
    slots: NDArray[np.int64],  # [R]
) -> None:
    """Let other threads see the slots of some rows, after what the table holds there."""
    for i in range(len(rows)):
        put(target, rows[i], slots[i])


@kernel
def judge(
    logits: Bits,  # [B, V]
    row: int,
    table: NDArray[np.int32],  # [capacity, num_words]
    slots: NDArray[np.int64],  # [B]
    magnitude: int,
    infinity: int,
    tokens: NDArray[np.int64],  # [B]
) -> None:
    """Set the token of one row, if its slot is known by now."""
    slot = load(slots, row)
    if slot != UNKNOWN:
        tokens[row] = best_allowed(logits, row, table[slot], magnitude, infinity)


@kernel
def masked_argmax(
    logits: Bits,  # [B, V]
    rows: NDArray[np.int64],  # [R], the rows of `logits` to judge
    table: NDArray[np.int32],  # [capacity, num_words]
    slots: NDArray[np.int64],  # [B]
    magnitude: int,  # 0x7fff or 0x7fffffff
    infinity: int,  # the bits of +inf
    out: NDArray[np.int64],  # [R]
) -> None:
    """The best allowed token of each row."""
    for r in range(len(rows)):
        out[r] = best_allowed(logits, rows[r], table[slots[rows[r]]], magnitude, infinity)


@kernel
def best_allowed(logits: Bits, row: int, words: NDArray[np.int32], magnitude: int, infinity: int) -> int:
    """The best token that `words` allow, the first of equals; -1 where none is finite, or where one is NaN or +inf."""
    width, size = logits.shape[1], logits.itemsize
    first = logits.ctypes.data + row * logits.strides[0]
    best, token = -infinity - 1, -1  # the order of -inf: 0x...7f80 flipped
    w, end = 0, min(len(words), (width + 31) // 32)
    while w < end:
        word, start, count = words[w], w * 32, 1
        if word == 0:
            w += 1
            continue
        if word == -1 and start + 32 <= width:
            while count < _RUN and w + count < end and words[w + count] == -1 and start + 32 * count + 32 <= width:
                count += 1
            address = first + start * size
            peak = half_peak(address, 32 * count) if size == 2 else full_peak(address, 32 * count)
        else:
            peak = -infinity - 1
            for i in range(start, min(start + 32, width)):
                if (word >> (i - start)) & 1:
                    bits = logits[row, i]
                    peak = max(peak, bits if bits >= 0 else bits ^ magnitude)
        if peak > best:
            best = peak
            for i in range(start, min(start + 32 * count, width)):
                bits = logits[row, i]
                order = bits if bits >= 0 else bits ^ magnitude
                if order == peak and (words[i // 32] >> (i % 32)) & 1:
                    token = i
                    break
        w += count
    return token if best < infinity else -1


@kernel
def mask_logits(
    logits: NDArray[np.float32],  # [B, V]
    table: NDArray[np.int32],  # [capacity, num_words]
    slots: NDArray[np.int64],  # [B]
) -> None:
    """In place: -inf wherever the row's bit is 0, and beyond the words."""
    width = logits.shape[1]
    for row in range(len(slots)):
        words = table[slots[row]]
        for w in range((width + 31) // 32):
            word = words[w] if w < len(words) else np.int32(0)
            if word == -1:
                continue
            start = w * 32
            for i in range(start, min(start + 32, width)):
                if not (word >> (i - start)) & 1:
                    logits[row, i] = -np.inf


@float_kernel
def draw(
    weights: NDArray[np.float32],  # [B, V], non-negative
    uniforms: NDArray[np.float64],  # [B] in [0, 1)
    out: NDArray[np.int64],  # [B]
) -> None:
    """Inverse transform sampling, row by row, in token order; -1 where the weights do not sum to a positive number."""
    chunk = 64
    width = weights.shape[1]
    sums = np.empty((width + chunk - 1) // chunk, np.float64)
    for row in range(len(uniforms)):
        for c in range(len(sums)):
            part = np.float32(0.0)
            for i in range(c * chunk, min(c * chunk + chunk, width)):
                part += weights[row, i]
            sums[c] = part
        total = sums.sum()
        out[row] = -1
        if not (total > 0.0 and total < np.inf):
            continue
        target = uniforms[row] * total
        c = 0
        while c < len(sums) - 1 and sums[c] <= target:
            target -= sums[c]
            c += 1
        token = -1
        while token < 0 and c >= 0:
            for i in range(c * chunk, min(c * chunk + chunk, width)):
                weight = weights[row, i]
                if weight > 0.0:
                    token = i
                    target -= weight
                    if target < 0.0:
                        break
            c -= 1
        out[row] = token
