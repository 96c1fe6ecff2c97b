"""Numba kernels of paged attention on a CPU: write this step's keys and values, then attend, ragged, without padding.

Cached elements are integers that become float32 by a left shift: int32 by 0 (float32), uint16 by 16 (bfloat16). Keys lie
transposed within a block [dim, block_len], so that both products run along contiguous memory (see `panels`). The softmax is the
online one of Milakov and Gimelshein (arXiv 1805.02867), block by block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import float_kernel, kernel
from constrained.decode.panels import COLUMNS, panel_of_1, panel_of_3, panel_of_4

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
def _add_product(
    matrix: Bits,  # [num_blocks, kv heads, rows, width]
    block: int,
    head: int,
    num_rows: int,
    coefficients: Floats,  # [lanes, rows]
    lanes: tuple[int, int],  # from, to
    is_fresh: bool,
    shift: int,
    sums: Floats,  # [lanes, width]
) -> None:
    """sums (+)= coefficients times the first `num_rows` rows of one block, for some lanes; the old sums count unless fresh.

    What an earlier owner of the block left behind in later rows may be NaN, so these are not read.
    """
    width = matrix.shape[3]
    lane, end = lanes
    while lane < end:
        left = end - lane
        count = 3 if left in (3, 6, 9) else 4 if left >= 4 else 1
        for column in range(0, width - COLUMNS + 1, COLUMNS):
            if count == 4:
                panel_of_4(matrix, block, head, num_rows, column, coefficients, lane, sums, is_fresh)
            elif count == 3:
                panel_of_3(matrix, block, head, num_rows, column, coefficients, lane, sums, is_fresh)
            else:
                panel_of_1(matrix, block, head, num_rows, column, coefficients, lane, sums, is_fresh)
        lane += count
    rest = width // COLUMNS * COLUMNS
    if rest == width:
        return
    wide_bits = np.empty(width - rest, np.uint32)
    wide = wide_bits.view(np.float32)
    if is_fresh:
        sums[lanes[0] : end, rest:] = 0.0
    for row in range(num_rows):
        for i in range(len(wide)):
            wide_bits[i] = np.uint32(matrix[block, head, row, rest + i]) << np.uint32(shift)
        for each in range(lanes[0], end):
            factor = coefficients[each, row]
            for i in range(len(wide)):
                sums[each, rest + i] += factor * wide[i]


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
    scale = np.float32(scaling) * _LOG2_E
    scratch = np.empty(BLOCK_LEN, np.int32)
    for s in sequences:
        first_row, num_rows = row_starts[s], row_starts[s + 1] - row_starts[s]
        start = ends[s] - num_rows
        first_block = max(0, start - window + 1) // BLOCK_LEN if window else 0
        # One lane for each row and query head of a group: they read the same keys and values.
        num_lanes = num_rows * group
        queries, weights = np.empty((num_lanes, key_dim), np.float32), np.empty((num_lanes, BLOCK_LEN), np.float32)
        sums = np.empty((num_lanes, value_dim), np.float32)
        peaks, totals = np.empty(num_lanes, np.float32), np.empty(num_lanes, np.float32)
        for kv_head in range(num_kv_heads):
            peaks[:] = _LOWEST
            totals[:] = 0.0
            sums[:] = 0.0
            for lane in range(num_lanes):
                row, head = first_row + lane // group, kv_head * group + lane % group
                for i in range(key_dim):
                    queries[lane, i] = query[row, head, i] * scale
            for block in range(first_block, (ends[s] - 1) // BLOCK_LEN + 1):
                at = block * BLOCK_LEN
                first_lane = max(0, at - start) * group  # rows before the block do not see it
                lanes = (first_lane, num_lanes)
                _add_product(keys, tables[s, block], kv_head, key_dim, queries, lanes, True, shift, weights)
                if softcap > 0.0:
                    for lane in range(first_lane, num_lanes):
                        for j in range(BLOCK_LEN):
                            weights[lane, j] = np.tanh(weights[lane, j] / (softcap * _LOG2_E)) * softcap * _LOG2_E
                for lane in range(first_lane, num_lanes):
                    position = start + lane // group
                    low = max(0, position - window + 1 - at) if window else 0
                    peak = _softmax_step(weights[lane], low, min(BLOCK_LEN, position + 1 - at), peaks[lane], scratch)
                    if peak > peaks[lane]:
                        shrink = np.float32(2.0 ** max(peaks[lane] - peak, -120.0)) if totals[lane] > 0.0 else np.float32(0.0)
                        for i in range(value_dim):
                            sums[lane, i] *= shrink
                        totals[lane] *= shrink
                        peaks[lane] = peak
                    totals[lane] += weights[lane].sum()
                num_held = min(BLOCK_LEN, ends[s] - at)
                _add_product(values, tables[s, block], kv_head, num_held, weights, lanes, False, shift, sums)
            for lane in range(num_lanes):
                row, head = first_row + lane // group, kv_head * group + lane % group
                total = totals[lane]
                if len(sinks):
                    total += np.float32(2.0 ** min(sinks[head] * _LOG2_E - peaks[lane], 126.0))
                for i in range(value_dim):
                    out[row, head, i] = sums[lane, i] / total
