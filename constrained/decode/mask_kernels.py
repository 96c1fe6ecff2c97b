"""Numba kernels that sample under packed masks on a CPU; `masking.py` says the same in torch for any device.

Logits come as the integers of their own bits (int16 for bfloat16, int32 for float32): flipping the magnitude of negative
ones makes integer order the order of the numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import float_kernel, kernel
from constrained.decode.order import full_peak, half_peak

_RUN = 16  # words of allowed tokens whose peak is found at once

Bits = NDArray[np.int16] | NDArray[np.int32]


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
    """The best allowed token, the first of equals; -1 where none is finite, or where one is NaN or +inf."""
    width, num_words = logits.shape[1], table.shape[1]
    lowest = -infinity - 1  # the order of -inf: 0x...7f80 flipped
    size = logits.itemsize
    for r in range(len(rows)):
        row = rows[r]
        words, first = table[slots[row]], logits.ctypes.data + row * logits.strides[0]
        best, token = lowest, -1
        w, end = 0, min(num_words, (width + 31) // 32)
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
                peak = lowest
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
        out[r] = token if best < infinity else -1


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
