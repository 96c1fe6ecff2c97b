"""Numba kernels that lay a step's sequences out as rows: where each row stands, where its keys and values go.

A step meets its arrays and its Python objects in cold caches, so one call writes all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.kernels import kernel

Numbers = NDArray[np.int64]


@kernel
def lay_out(
    spans: Numbers,  # [S, 4]: rows, position of the first, blocks, rows whose logits are wanted
    blocks: Numbers,  # of one span after the other
    row_starts: Numbers,  # [S + 1]
    ends: Numbers,  # [S]
    tables: Numbers,  # [S, most blocks of a span]
    positions: Numbers,  # [N]
    slots: Numbers,  # [N]
    logit_rows: Numbers,
) -> int:
    """Fill all arrays from `row_starts` on; the first span whose blocks are too few, or -1."""
    row, block, wanted = 0, 0, 0
    row_starts[0] = 0
    for i in range(len(spans)):
        count, start, num_blocks, num_wanted = spans[i, 0], spans[i, 1], spans[i, 2], spans[i, 3]
        if start + count > num_blocks * BLOCK_LEN:
            return i
        for k in range(num_blocks):
            tables[i, k] = blocks[block + k]
        for k in range(count):
            position = start + k
            positions[row + k] = position
            slots[row + k] = blocks[block + position // BLOCK_LEN] * BLOCK_LEN + position % BLOCK_LEN
        row += count
        block += num_blocks
        for k in range(num_wanted):
            logit_rows[wanted + k] = row - num_wanted + k
        wanted += num_wanted
        row_starts[i + 1], ends[i] = row, start + count
    return -1


@kernel
def cut_pieces(row_starts: Numbers, ends: Numbers, most: int, pieces: Numbers) -> int:
    """Write (sequence, first row, number of rows, position of the first) of pieces of `most` rows or less; their number."""
    num_pieces = 0
    for i in range(len(ends)):
        count = row_starts[i + 1] - row_starts[i]
        start = ends[i] - count
        for at in range(0, count, most):
            pieces[num_pieces, 0], pieces[num_pieces, 1] = i, row_starts[i] + at
            pieces[num_pieces, 2], pieces[num_pieces, 3] = min(most, count - at), start + at
            num_pieces += 1
    return num_pieces
