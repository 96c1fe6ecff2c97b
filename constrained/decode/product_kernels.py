"""A product of all rows of a step with one packed weight, shared by the threads panel by panel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrained.decode import tiles
from constrained.decode.kernels import kernel
from constrained.decode.shares import Counters, await_all, claim, finish
from constrained.decode.tiles import COLUMNS, TILE_ROWS

ROWS_A_PART = 8 * TILE_ROWS[0]  # their inputs stay in the second cache while panels pass by


_part: Any = kernel


@_part
def panel_product(size, weight_size, is_gated, x, stride, count, w, num_steps, s, b, y, y_stride, ahead):  # type: ignore[no-untyped-def]
    """One panel for `count` rows, by addresses and bytes; `size` of an element of a row, `weight_size` of a panel's."""
    if size == 2 and weight_size == 4:
        if is_gated:
            tiles.half_gated(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
        else:
            tiles.half(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
    elif size == 2:
        if is_gated:
            tiles.half_int8_gated(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
        else:
            tiles.half_int8(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
    elif weight_size == 4:
        if is_gated:
            tiles.full_gated(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
        else:
            tiles.full(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
    elif is_gated:
        tiles.full_int8_gated(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
    else:
        tiles.full_int8(x, stride, count, w, num_steps, s, b, y, y_stride, ahead)


@kernel
def multiply(
    rows: NDArray[Any],  # [N, in], the bits of bfloat16 or float32, C-contiguous
    weights: NDArray[Any],  # [panels, steps, ...]
    scales: NDArray[np.float32],  # [panels * COLUMNS], of int8 weights
    bias: NDArray[np.float32],  # [panels * COLUMNS]
    is_gated: bool,
    out: NDArray[Any],  # [N, out], as the rows
    parts: Counters,
    run: int,
    phase: int,
) -> None:
    """out = rows times weights plus bias; gated, out = silu(gate) * up of interleaved columns."""
    num_rows, size, num_panels, num_steps = len(rows), rows.itemsize, weights.shape[0], weights.shape[1]
    panel_bytes = num_steps * weights.shape[2] * weights.itemsize
    num_blocks = (num_rows + ROWS_A_PART - 1) // ROWS_A_PART
    width = COLUMNS // 2 if is_gated else COLUMNS
    stride, out_stride = rows.shape[1] * size, out.shape[1] * size
    first, first_out, first_weight = rows.ctypes.data, out.ctypes.data, weights.ctypes.data
    first_scale, first_bias = scales.ctypes.data, bias.ctypes.data
    scratch = np.empty((ROWS_A_PART, width), rows.dtype)
    num_parts = num_blocks * num_panels
    part = claim(parts, run, phase, num_parts)
    while part < num_parts:
        following = claim(parts, run, phase, num_parts)  # a part ahead, so that its weights can be fetched during this one
        row, panel = part // num_panels * ROWS_A_PART, part % num_panels
        count = min(ROWS_A_PART, num_rows - row)
        is_whole = (panel + 1) * width <= out.shape[1]
        y = first_out + row * out_stride + panel * width * size if is_whole else scratch.ctypes.data
        y_stride = out_stride if is_whole else width * size
        x, w = first + row * stride, first_weight + panel * panel_bytes
        ahead = first_weight + following % num_panels * panel_bytes if following < num_parts else w
        s, b = first_scale + panel * COLUMNS * 4, first_bias + panel * COLUMNS * 4
        panel_product(size, weights.itemsize, is_gated, x, stride, count, w, num_steps, s, b, y, y_stride, ahead)
        if not is_whole:
            out[row : row + count, panel * width :] = scratch[:count, : out.shape[1] - panel * width]
        finish(parts, phase)
        part = following
    await_all(parts, run, phase, num_parts)
