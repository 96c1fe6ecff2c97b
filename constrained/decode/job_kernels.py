"""Single computations that threads share while a model's own code runs between them.

A helper stays in `serve` for the length of a forward pass and looks into a box. Who has something to compute writes it there,
takes part itself, and goes on when all parts are done. A claim names the job, so that a helper that comes late, with what it
read of a job that is over, takes nothing.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from constrained.decode.attention_kernels import BLOCK_LEN, Bits, attend_head, make_room, tile_address
from constrained.decode.fused_kernels import Floats, narrow, widen
from constrained.decode.kernels import kernel
from constrained.decode.product_kernels import ROWS_A_PART, panel_product
from constrained.decode.shares import CLAIMED, LAST_RUN, LINE, RUN_SHIFT, fetch_add, linger, load, put, replace

# A box: the job's number and the parts claimed of it in one number, the parts done, then the job itself.
_CLAIM, _DONE, _KIND, _PARTS, _FIELDS = 0, LINE, 2 * LINE, 2 * LINE + 1, 2 * LINE + 2
_NUM_FIELDS = 20
_PRODUCT, _ATTENTION = 0, 1
_MANY = CLAIMED  # while a job is being written

Box = NDArray[np.int64]
_carray: Any = vars(numba)["carray"]
_helper: Any = kernel
_instruction: Any = intrinsic


def new_box() -> Box:
    return np.zeros(_FIELDS + _NUM_FIELDS, np.int64)


@_instruction
def _pointer(_, address, sample):  # type: ignore[no-untyped-def]
    """An address as a pointer to elements of the sample's kind."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    pointer: Any = types.CPointer
    return pointer(sample.dtype)(types.int64, sample), codegen


@_helper
def _product_part(box, part):  # type: ignore[no-untyped-def]
    rows, stride, num_rows, size = box[_FIELDS], box[_FIELDS + 1], box[_FIELDS + 2], box[_FIELDS + 3]
    weights, panel_bytes, num_panels, num_steps = box[_FIELDS + 4], box[_FIELDS + 5], box[_FIELDS + 6], box[_FIELDS + 7]
    weight_size, scales, bias, is_gated = box[_FIELDS + 8], box[_FIELDS + 9], box[_FIELDS + 10], box[_FIELDS + 11]
    out, out_stride, panel_width, scale_bytes = box[_FIELDS + 12], box[_FIELDS + 13], box[_FIELDS + 14], box[_FIELDS + 15]
    row, panel = part // num_panels * ROWS_A_PART, part % num_panels
    x, y = rows + row * stride, out + row * out_stride + panel * panel_width
    w, s, b = weights + panel * panel_bytes, scales + panel * scale_bytes, bias + panel * scale_bytes
    ahead = weights + min(panel + 2, num_panels - 1) * panel_bytes  # another thread has the next one, if there is any
    count = min(ROWS_A_PART, num_rows - row)
    panel_product(size, weight_size, is_gated != 0, x, stride, count, w, num_steps, s, b, y, out_stride, ahead)


@_helper
def _attention_part(box, part, sample):  # type: ignore[no-untyped-def]
    """Some rows of a sequence by the query heads of one key head."""
    num_rows, num_heads = box[_FIELDS + 3], box[_FIELDS + 4]
    num_blocks, num_kv_heads = box[_FIELDS + 7], box[_FIELDS + 8]
    key_dim, value_dim, num_sinks = box[_FIELDS + 9], box[_FIELDS + 10], box[_FIELDS + 12]
    numbers, floats = np.empty(0, np.int64), np.empty(0, np.float32)
    query = _carray(_pointer(box[_FIELDS], floats), (num_rows, num_heads, key_dim))
    result = _carray(_pointer(box[_FIELDS + 1], floats), (num_rows, num_heads, value_dim))
    out = _carray(_pointer(box[_FIELDS + 2], sample), (num_rows, num_heads * value_dim))
    keys = _carray(_pointer(box[_FIELDS + 5], sample), (num_blocks, num_kv_heads, key_dim, BLOCK_LEN))
    values = _carray(_pointer(box[_FIELDS + 6], sample), (num_blocks, num_kv_heads, BLOCK_LEN, value_dim))
    sinks = _carray(_pointer(box[_FIELDS + 11], floats), (num_sinks,))
    pieces = _carray(_pointer(box[_FIELDS + 13], numbers), (box[_FIELDS + 14], 4))
    tables = _carray(_pointer(box[_FIELDS + 15], numbers), (num_rows, box[_FIELDS + 16]))
    reals = box.view(np.float64)
    scaling, softcap, window = reals[_FIELDS + 17], reals[_FIELDS + 18], box[_FIELDS + 19]
    piece, head = part // num_kv_heads, part % num_kv_heads
    table, first, count, start = tables[pieces[piece, 0]], pieces[piece, 1], pieces[piece, 2], pieces[piece, 3]
    ahead = tile_address(keys, table[0], (head + 2) % num_kv_heads)
    shift, group = 16 if sample.itemsize == 2 else 0, num_heads // num_kv_heads
    room = make_room(count * group, key_dim, value_dim)
    attend_head(
        query, keys, values, shift, table, first, count, start, head, scaling, window, softcap, sinks, result, room, ahead
    )
    width = group * value_dim
    for row in range(first, first + count):
        bits = result[row].reshape(num_heads * value_dim).view(np.uint32)
        narrow(bits[head * width : (head + 1) * width], shift, out[row, head * width : (head + 1) * width])


@_helper
def _work(box, job, sample):  # type: ignore[no-untyped-def]
    """Take parts of one job until none is left."""
    kind, num_parts = box[_KIND], box[_PARTS]
    while True:
        word = load(box, _CLAIM)
        part = word & _MANY
        if word >> RUN_SHIFT != job or part >= num_parts:
            return
        if replace(box, _CLAIM, word, word + 1):
            if kind == _PRODUCT:
                _product_part(box, part)
            else:
                _attention_part(box, part, sample)
            fetch_add(box, _DONE)


@_helper
def _open(box, kind, num_parts):  # type: ignore[no-untyped-def]
    """Begin to write a job; its number."""
    word = load(box, _CLAIM)
    job = ((word >> RUN_SHIFT) + 1) & LAST_RUN
    replace(box, _CLAIM, word, (job << RUN_SHIFT) | _MANY)  # nobody else changes it: all parts were claimed
    box[_KIND], box[_PARTS] = kind, num_parts
    return job


@_helper
def _do(box, job, num_parts, sample):  # type: ignore[no-untyped-def]
    """Let helpers see the job, and return when it is done."""
    put(box, _DONE, 0)
    put(box, _CLAIM, job << RUN_SHIFT)
    _work(box, job, sample)
    spins = 0
    while load(box, _DONE) < num_parts:
        spins = linger(spins)


@kernel
def share_product(
    box: Box,
    sample: Bits,
    rows: int,
    stride: int,
    num_rows: int,
    size: int,
    weights: int,
    panel_bytes: int,
    num_panels: int,
    num_steps: int,
    weight_size: int,
    scales: int,
    bias: int,
    is_gated: int,
    out: int,
    out_stride: int,
    panel_width: int,
    scale_bytes: int,
) -> None:
    """Compute a product with whoever serves the box; addresses, bytes and counts as in `panel_product`."""
    num_parts = (num_rows + ROWS_A_PART - 1) // ROWS_A_PART * num_panels
    job = _open(box, _PRODUCT, num_parts)
    box[_FIELDS], box[_FIELDS + 1], box[_FIELDS + 2], box[_FIELDS + 3] = rows, stride, num_rows, size
    box[_FIELDS + 4], box[_FIELDS + 5], box[_FIELDS + 6], box[_FIELDS + 7] = weights, panel_bytes, num_panels, num_steps
    box[_FIELDS + 8], box[_FIELDS + 9], box[_FIELDS + 10], box[_FIELDS + 11] = weight_size, scales, bias, is_gated
    box[_FIELDS + 12], box[_FIELDS + 13], box[_FIELDS + 14], box[_FIELDS + 15] = out, out_stride, panel_width, scale_bytes
    _do(box, job, num_parts, sample)


@kernel
def share_attention(
    box: Box,
    sample: Bits,
    query: Bits,  # [N, query heads, key dim]
    key: Bits,  # [N, kv heads, key dim]
    value: Bits,  # [N, kv heads, value dim]
    keys: Bits,  # [num_blocks, kv heads, key dim, BLOCK_LEN]
    values: Bits,  # [num_blocks, kv heads, BLOCK_LEN, value dim]
    slots: NDArray[np.int64],  # [N]
    pieces: NDArray[np.int64],  # [P, 4]: sequence, first row, number of rows, position of the first
    tables: NDArray[np.int64],  # [S, blocks]
    scaling: float,
    window: int,
    softcap: float,
    sinks: Floats,  # [query heads], or empty
    wide: NDArray[np.uint32],  # [N, query heads, key dim], room for the queries as float32
    result: Floats,  # [N, query heads, value dim], room as well
    out: Bits,  # [N, query heads * value dim]
) -> None:
    """Store a step's keys and values, then attend, with whoever serves the box."""
    num_rows, num_heads, key_dim = query.shape
    num_kv_heads, value_dim, shift = keys.shape[1], values.shape[3], 16 if sample.itemsize == 2 else 0
    for row in range(num_rows):
        block, place = slots[row] // BLOCK_LEN, slots[row] % BLOCK_LEN
        for head in range(num_heads):
            widen(query[row, head], shift, wide[row, head])
        for head in range(num_kv_heads):
            for i in range(key_dim):
                keys[block, head, i, place] = key[row, head, i]
            for i in range(value_dim):
                values[block, head, place, i] = value[row, head, i]
    num_parts = len(pieces) * num_kv_heads
    job = _open(box, _ATTENTION, num_parts)
    box[_FIELDS], box[_FIELDS + 1], box[_FIELDS + 2] = wide.ctypes.data, result.ctypes.data, out.ctypes.data
    box[_FIELDS + 3], box[_FIELDS + 4] = num_rows, num_heads
    box[_FIELDS + 5], box[_FIELDS + 6] = keys.ctypes.data, values.ctypes.data
    box[_FIELDS + 7], box[_FIELDS + 8], box[_FIELDS + 9], box[_FIELDS + 10] = len(keys), num_kv_heads, key_dim, value_dim
    box[_FIELDS + 11], box[_FIELDS + 12] = sinks.ctypes.data, len(sinks)
    box[_FIELDS + 13], box[_FIELDS + 14] = pieces.ctypes.data, len(pieces)
    box[_FIELDS + 15], box[_FIELDS + 16], box[_FIELDS + 19] = tables.ctypes.data, tables.shape[1], window
    reals = box.view(np.float64)
    reals[_FIELDS + 17], reals[_FIELDS + 18] = scaling, softcap
    _do(box, job, num_parts, sample)


@kernel
def serve(box: Box, sample: Bits, stop: NDArray[np.int64]) -> None:
    """Take part in every job until `stop` is set. `sample` is an array of the elements that attention is about."""
    seen, spins = -1, 0
    while load(stop, 0) == 0:
        word = load(box, _CLAIM)
        job = word >> RUN_SHIFT
        if job == seen or word & _MANY == _MANY:
            spins = linger(spins)
            continue
        _work(box, job, sample)
        seen, spins = job, 0
