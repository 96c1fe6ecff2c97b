"""Numba kernels of paged attention on a CPU: write this step's keys and values, then attend, ragged, without padding.

Cached elements are integers that become float32 by a left shift: int32 by 0 (float32), uint16 by 16 (bfloat16). Keys lie
transposed within a block [dim, block_len], so that both products run along contiguous memory (see `panels`). The softmax is the
online one of Milakov and Gimelshein (arXiv 1805.02867), segment by segment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import float_kernel, kernel
from constrained.decode.panels import COLUMNS, panel_of_1, panel_of_3, panel_of_4
from constrained.decode.softmax import peak_of, raise_from

BLOCK_LEN = 32
SEGMENT = 8 * BLOCK_LEN  # positions whose softmax is one
_LOWEST = np.float32(-1e30)
_LOG2_E = np.float32(1.4426950408889634)

Bits = NDArray[np.int32] | NDArray[np.uint16]
Floats = NDArray[np.float32]
Room = tuple[Floats, Floats, Floats, Floats, Floats]


@kernel
def tile_address(matrix: Bits, block: int, head: int) -> int:
    """Where the elements of one block and head lie."""
    size: int = matrix.shape[2] * matrix.shape[3] * matrix.itemsize
    return int(matrix.ctypes.data + (block * matrix.shape[1] + head) * size)


@kernel
def make_room(num_lanes: int, key_dim: int, value_dim: int) -> Room:
    """What `attend_head` works in, for up to so many lanes."""
    queries, weights = np.empty((num_lanes, key_dim), np.float32), np.empty((num_lanes, SEGMENT), np.float32)
    sums = np.empty((num_lanes, value_dim), np.float32)
    return queries, weights, sums, np.empty(num_lanes, np.float32), np.empty(num_lanes, np.float32)


@float_kernel
def _add_product(
    matrix: Bits,  # [num_blocks, kv heads, rows, width]
    block: int,
    head: int,
    num_rows: int,
    coefficients: Floats,  # [lanes, first + rows]
    lanes: tuple[int, int],  # from, to
    first: int,
    is_fresh: bool,
    shift: int,
    sums: Floats,  # [lanes, offset + width]
    offset: int,
    following: int,  # the address of the block that is read next
) -> None:
    """sums (+)= coefficients times the first `num_rows` rows of one block, for some lanes; the old sums count unless fresh.

    What an earlier owner of the block left behind in later rows may be NaN, so these are not read.
    """
    width = matrix.shape[3]
    ahead = following - tile_address(matrix, block, head)
    lane, end = lanes
    while lane < end:
        left = end - lane
        count = 3 if left in (3, 6, 9) else 4 if left >= 4 else 1
        for column in range(0, width - COLUMNS + 1, COLUMNS):
            if count == 4:
                panel_of_4(matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead)
            elif count == 3:
                panel_of_3(matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead)
            else:
                panel_of_1(matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead)
        lane += count
    rest = width // COLUMNS * COLUMNS
    if rest == width:
        return
    wide_bits = np.empty(width - rest, np.uint32)
    wide = wide_bits.view(np.float32)
    if is_fresh:
        sums[lanes[0] : end, offset + rest : offset + width] = 0.0
    for row in range(num_rows):
        for i in range(len(wide)):
            wide_bits[i] = np.uint32(matrix[block, head, row, rest + i]) << np.uint32(shift)
        for each in range(lanes[0], end):
            factor = coefficients[each, first + row]
            for i in range(len(wide)):
                sums[each, offset + rest + i] += factor * wide[i]


@float_kernel
def _weigh(
    weights: Floats,  # [lanes, SEGMENT]
    lane: int,
    low: int,
    high: int,
    count: int,
    old_peak: np.float32,
) -> tuple[np.float32, np.float32]:
    """In place: scores (times log2 e) become weights relative to the new peak, 0 outside of [low, high); peak and sum."""
    for j in range(low):
        weights[lane, j] = _LOWEST
    for j in range(high, count):
        weights[lane, j] = _LOWEST
    row = weights.ctypes.data + lane * 4 * SEGMENT
    peak = max(old_peak, peak_of(row, count))
    return peak, raise_from(row, count, peak)


@float_kernel
def attend_head(
    query: Floats,  # [N, query heads, key dim]
    keys: Bits,  # [num_blocks, kv heads, key dim, BLOCK_LEN]
    values: Bits,  # [num_blocks, kv heads, BLOCK_LEN, value dim]
    shift: int,
    table: NDArray[np.int64],  # [blocks]
    first_row: int,
    num_rows: int,
    start: int,  # the position of the first row
    kv_head: int,
    scaling: float,
    window: int,
    softcap: float,
    sinks: Floats,  # [query heads], or empty
    out: Floats,  # [N, query heads, value dim]
    room: Room,
    following: int,  # the address of the block of keys that is read next, after these
) -> None:
    """Some rows of one sequence attend by the query heads of one key head: a lane for each, which read the same blocks."""
    key_dim, value_dim = keys.shape[2], values.shape[3]
    group = query.shape[1] // keys.shape[1]
    scale, end = np.float32(scaling) * _LOG2_E, start + num_rows
    num_lanes = num_rows * group
    queries, weights, sums, peaks, totals = room
    sums[:num_lanes] = 0.0
    peaks[:num_lanes] = _LOWEST
    totals[:num_lanes] = 0.0
    for lane in range(num_lanes):
        row, head = first_row + lane // group, kv_head * group + lane % group
        for i in range(key_dim):
            queries[lane, i] = query[row, head, i] * scale
    first_block = max(0, start - window + 1) // BLOCK_LEN if window else 0
    for at in range(first_block * BLOCK_LEN, end, SEGMENT):
        num_blocks = (min(SEGMENT, end - at) + BLOCK_LEN - 1) // BLOCK_LEN
        lanes = (max(0, at - start) * group, num_lanes)  # rows before the segment do not see it
        for j in range(num_blocks):
            first = at // BLOCK_LEN
            ahead = tile_address(values, table[first], kv_head)
            if j + 1 < num_blocks:
                ahead = tile_address(keys, table[first + j + 1], kv_head)
            _add_product(
                keys, table[first + j], kv_head, key_dim, queries, lanes, 0, True, shift, weights, j * BLOCK_LEN, ahead
            )
        count = num_blocks * BLOCK_LEN
        if softcap > 0.0:
            for lane in range(lanes[0], num_lanes):
                for j in range(count):
                    weights[lane, j] = np.tanh(weights[lane, j] / (softcap * _LOG2_E)) * softcap * _LOG2_E
        for lane in range(lanes[0], num_lanes):
            position = start + lane // group
            low, high = max(0, position - window + 1 - at) if window else 0, min(count, position + 1 - at)
            if low >= high:
                for j in range(count):
                    weights[lane, j] = np.float32(0.0)
                continue
            peak, total = _weigh(weights, lane, low, high, count, peaks[lane])
            if peak > peaks[lane]:
                shrink = np.float32(2.0 ** max(peaks[lane] - peak, -120.0)) if totals[lane] > 0.0 else np.float32(0.0)
                for i in range(value_dim):
                    sums[lane, i] *= shrink
                totals[lane] *= shrink
                peaks[lane] = peak
            totals[lane] += total
        for j in range(num_blocks):
            first, num_held = at // BLOCK_LEN, min(BLOCK_LEN, end - at - j * BLOCK_LEN)
            ahead = following
            if j + 1 < num_blocks:
                ahead = tile_address(values, table[first + j + 1], kv_head)
            elif at + SEGMENT < end:
                ahead = tile_address(keys, table[first + j + 1], kv_head)
            block = table[first + j]
            _add_product(values, block, kv_head, num_held, weights, lanes, j * BLOCK_LEN, False, shift, sums, 0, ahead)
    for lane in range(num_lanes):
        row, head = first_row + lane // group, kv_head * group + lane % group
        total = totals[lane]
        if len(sinks):
            total += np.float32(2.0 ** min(sinks[head] * _LOG2_E - peaks[lane], 126.0))
        share = np.float32(1.0) / total
        for i in range(value_dim):
            out[row, head, i] = sums[lane, i] * share
