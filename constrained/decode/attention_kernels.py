"""Numba kernels of paged attention on a CPU: write this step's keys and values, then attend, ragged, without padding.

Cached elements are integers that become float32 by a left shift: int32 by 0 (float32), uint16 by 16 (bfloat16). Keys lie
transposed within a block [dim, block_len], so that both inner loops run along contiguous memory. The softmax is the
online one of Milakov and Gimelshein (arXiv 1805.02867), block by block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import float_kernel, kernel

BLOCK_LEN = 32
_LOWEST = np.float32(-1e30)
_LOG2_E = np.float32(1.4426950408889634)
_LEAST_EXPONENT = np.float32(-120.0)  # its power is a normal number: denormals are slow

Bits = NDArray[np.int32] | NDArray[np.uint16]
Floats = NDArray[np.float32]


@kernel
def write_kv(
    key: Bits,  # [kv heads, N, key dim]
    value: Bits,  # [kv heads, N, value dim]
    keys: Bits,  # [num_blocks, kv heads, key dim, BLOCK_LEN]
    values: Bits,  # [num_blocks, kv heads, BLOCK_LEN, value dim]
    slots: NDArray[np.int64],  # [N]
) -> None:
    for row in range(len(slots)):
        block, place = slots[row] // BLOCK_LEN, slots[row] % BLOCK_LEN
        for head in range(key.shape[0]):
            for i in range(key.shape[2]):
                keys[block, head, i, place] = key[head, row, i]
            for i in range(value.shape[2]):
                values[block, head, place, i] = value[head, row, i]


@float_kernel
def _widen(source: Bits, shift: int, num_rows: int, target: NDArray[np.uint32]) -> None:
    """The first `num_rows` rows as float32 bits, then zeros: what an earlier owner of the block left behind may be NaN."""
    for i in range(num_rows):
        row, wide = source[i], target[i]
        # A constant shift vectorises twice as well as a variable one.
        if shift == 16:
            for j in range(len(wide)):
                wide[j] = np.uint32(row[j]) << np.uint32(16)
        else:
            for j in range(len(wide)):
                wide[j] = np.uint32(row[j])
    target[num_rows:] = 0


@float_kernel
def _exp2(exponents: Floats, scratch: NDArray[np.int32]) -> None:
    """In place: 2 ** x for x <= 0, by a polynomial on the fraction (error about 1e-7) and the exponent bits."""
    scale = scratch.view(np.float32)
    for i in range(BLOCK_LEN):
        x = max(exponents[i], _LEAST_EXPONENT)
        whole = np.floor(x)
        f = x - whole
        scratch[i] = (np.int32(whole) + 127) << 23
        p = np.float32(1.8775767e-3)
        p = p * f + np.float32(8.9893397e-3)
        p = p * f + np.float32(5.5826318e-2)
        p = p * f + np.float32(2.4015361e-1)
        p = p * f + np.float32(6.9315308e-1)
        exponents[i] = p * f + np.float32(9.9999994e-1)
    for i in range(BLOCK_LEN):
        exponents[i] *= scale[i]


@float_kernel
def _scores(query: Floats, keys: Floats, scores: Floats) -> None:
    """scores [BLOCK_LEN] = query [dim] times keys [dim, BLOCK_LEN].

    Four dimensions at a time keep the sums in registers; indices that start at 0 spare the check for negative ones.
    """
    for j in range(BLOCK_LEN):
        scores[j] = 0.0
    whole = len(query) // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = query[i], query[i + 1], query[i + 2], query[i + 3]
        for j in range(BLOCK_LEN):
            scores[j] += a * keys[i, j] + b * keys[i + 1, j] + c * keys[i + 2, j] + d * keys[i + 3, j]
    for i in range(whole, len(query)):
        a = query[i]
        for j in range(BLOCK_LEN):
            scores[j] += a * keys[i, j]


@float_kernel
def _accumulate(weights: Floats, values: Floats, out: Floats) -> None:
    """out [dim] += weights [BLOCK_LEN] times values [BLOCK_LEN, dim]."""
    for j in range(0, BLOCK_LEN, 4):
        a, b, c, d = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for i in range(len(out)):
            out[i] += a * values[j, i] + b * values[j + 1, i] + c * values[j + 2, i] + d * values[j + 3, i]


@float_kernel
def _softmax_step(weights: Floats, low: int, high: int, old_peak: np.float32, scratch: NDArray[np.int32]) -> np.float32:
    """In place: scores (times log2 e) of one block become weights relative to the new peak, 0 outside of [low, high)."""
    peak = old_peak
    for j in range(BLOCK_LEN):
        weights[j] = weights[j] if low <= j < high else _LOWEST
        peak = max(peak, weights[j])
    for j in range(BLOCK_LEN):
        weights[j] -= peak
    _exp2(weights, scratch)
    if low > 0 or high < BLOCK_LEN:
        for j in range(BLOCK_LEN):
            weights[j] = weights[j] if low <= j < high else np.float32(0.0)
    return peak


@float_kernel
def attend(
    query: Floats,  # [N, query heads, key dim]
    keys: Bits,  # [num_blocks, kv heads, key dim, BLOCK_LEN]
    values: Bits,  # [num_blocks, kv heads, BLOCK_LEN, value dim]
    shift: int,
    sequences: NDArray[np.int64],  # the sequences to attend for, indices into the next three
    row_starts: NDArray[np.int64],  # [S + 1]
    ends: NDArray[np.int64],  # [S]
    tables: NDArray[np.int64],  # [S, blocks]
    scaling: float,
    window: int,
    softcap: float,
    sinks: Floats,  # [query heads], or empty
    out: Floats,  # [N, query heads, value dim]
) -> None:
    num_kv_heads, key_dim, value_dim = keys.shape[1], keys.shape[2], values.shape[3]
    group = query.shape[1] // num_kv_heads
    key_bits, value_bits = np.empty((key_dim, BLOCK_LEN), np.uint32), np.empty((BLOCK_LEN, value_dim), np.uint32)
    key_tile, value_tile = key_bits.view(np.float32), value_bits.view(np.float32)
    weights, scratch = np.empty(BLOCK_LEN, np.float32), np.empty(BLOCK_LEN, np.int32)
    scale = np.float32(scaling) * _LOG2_E
    for s in sequences:
        first_row, num_rows = row_starts[s], row_starts[s + 1] - row_starts[s]
        start = ends[s] - num_rows
        first_block = max(0, start - window + 1) // BLOCK_LEN if window else 0
        peaks, totals = np.empty(num_rows * group, np.float32), np.empty(num_rows * group, np.float32)
        for kv_head in range(num_kv_heads):
            peaks[:] = _LOWEST
            totals[:] = 0.0
            out[first_row : first_row + num_rows, kv_head * group : (kv_head + 1) * group] = 0.0
            for block in range(first_block, (ends[s] - 1) // BLOCK_LEN + 1):
                at = block * BLOCK_LEN
                _widen(keys[tables[s, block], kv_head], shift, key_dim, key_bits)
                _widen(values[tables[s, block], kv_head], shift, min(BLOCK_LEN, ends[s] - at), value_bits)
                for row in range(num_rows):
                    low = max(0, start + row - window + 1 - at) if window else 0
                    high = min(BLOCK_LEN, start + row + 1 - at)
                    if low >= high:
                        continue
                    for g in range(group):
                        head, state = kv_head * group + g, row * group + g
                        result = out[first_row + row, head]
                        _scores(query[first_row + row, head], key_tile, weights)
                        for j in range(BLOCK_LEN):
                            weights[j] *= scale
                        if softcap > 0.0:
                            for j in range(BLOCK_LEN):
                                weights[j] = np.float32(np.tanh(weights[j] / (softcap * _LOG2_E)) * softcap * _LOG2_E)
                        peak = _softmax_step(weights, low, high, peaks[state], scratch)
                        if peak > peaks[state]:
                            shrink = (
                                np.float32(2.0 ** max(peaks[state] - peak, -120.0)) if totals[state] > 0.0 else np.float32(0.0)
                            )
                            for i in range(value_dim):
                                result[i] *= shrink
                            totals[state] *= shrink
                            peaks[state] = peak
                        totals[state] += weights.sum()
                        _accumulate(weights, value_tile, result)
            for row in range(num_rows):
                for g in range(group):
                    head, state = kv_head * group + g, row * group + g
                    total = totals[state]
                    if len(sinks):
                        total += np.float32(2.0 ** min(sinks[head] * _LOG2_E - peaks[state], 126.0))
                    for i in range(value_dim):
                        out[first_row + row, head, i] /= total
