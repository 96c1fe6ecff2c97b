"""Single products that threads share while a model's own code runs between them.

A helper stays in `serve` for the length of a forward pass and looks into a box. Who has a product to compute writes it there,
takes part itself, and goes on when all parts are done. A claim names the job, so that a helper that comes late, with what it
read of a job that is over, takes nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.kernels import kernel
from constrained.decode.product_kernels import ROWS_A_PART, panel_product
from constrained.decode.shares import LINE, fetch_add, linger, load, put, replace

# A box: the job's number and the parts claimed of it in one number, the parts done, then the job itself.
_CLAIM, _DONE, _FIELDS = 0, LINE, 2 * LINE
_NUM_FIELDS = 16
_SHIFT = 32  # the job's number is above, the parts claimed below
_LAST_JOB = (1 << 31) - 1
_MANY = (1 << _SHIFT) - 1  # claimed while a job is being written

Box = NDArray[np.int64]


def new_box() -> Box:
    return np.zeros(_FIELDS + _NUM_FIELDS, np.int64)


@kernel
def _work(box: Box, job: int) -> None:
    """Take parts of one job until none is left."""
    rows, stride, num_rows, size = box[_FIELDS], box[_FIELDS + 1], box[_FIELDS + 2], box[_FIELDS + 3]
    weights, panel_bytes, num_panels, num_steps = box[_FIELDS + 4], box[_FIELDS + 5], box[_FIELDS + 6], box[_FIELDS + 7]
    weight_size, scales, bias, is_gated = box[_FIELDS + 8], box[_FIELDS + 9], box[_FIELDS + 10], box[_FIELDS + 11]
    out, out_stride, panel_width, scale_bytes = box[_FIELDS + 12], box[_FIELDS + 13], box[_FIELDS + 14], box[_FIELDS + 15]
    num_parts = (num_rows + ROWS_A_PART - 1) // ROWS_A_PART * num_panels
    while True:
        word = load(box, _CLAIM)
        part = word & _MANY
        if word >> _SHIFT != job or part >= num_parts:
            return
        if not replace(box, _CLAIM, word, word + 1):
            continue
        row, panel = part // num_panels * ROWS_A_PART, part % num_panels
        w = weights + panel * panel_bytes
        ahead = min(panel + 2, num_panels - 1) - panel  # another thread has the next one, if there is any
        panel_product(
            size,
            weight_size,
            is_gated != 0,
            rows + row * stride,
            stride,
            min(ROWS_A_PART, num_rows - row),
            w,
            num_steps,
            scales + panel * scale_bytes,
            bias + panel * scale_bytes,
            out + row * out_stride + panel * panel_width,
            out_stride,
            w + ahead * panel_bytes,
        )
        fetch_add(box, _DONE)


@kernel
def share_product(
    box: Box,
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
    word = load(box, _CLAIM)
    job = ((word >> _SHIFT) + 1) & _LAST_JOB
    replace(box, _CLAIM, word, (job << _SHIFT) | _MANY)  # nobody else changes it: all parts were claimed
    box[_FIELDS], box[_FIELDS + 1], box[_FIELDS + 2], box[_FIELDS + 3] = rows, stride, num_rows, size
    box[_FIELDS + 4], box[_FIELDS + 5], box[_FIELDS + 6], box[_FIELDS + 7] = weights, panel_bytes, num_panels, num_steps
    box[_FIELDS + 8], box[_FIELDS + 9], box[_FIELDS + 10], box[_FIELDS + 11] = weight_size, scales, bias, is_gated
    box[_FIELDS + 12], box[_FIELDS + 13], box[_FIELDS + 14], box[_FIELDS + 15] = out, out_stride, panel_width, scale_bytes
    put(box, _DONE, 0)
    put(box, _CLAIM, job << _SHIFT)
    _work(box, job)
    num_parts, spins = (num_rows + ROWS_A_PART - 1) // ROWS_A_PART * num_panels, 0
    while load(box, _DONE) < num_parts:
        spins = linger(spins)


@kernel
def serve(box: Box, stop: NDArray[np.int64]) -> None:
    """Take part in every job until `stop` is set."""
    seen, spins = -1, 0
    while load(stop, 0) == 0:
        word = load(box, _CLAIM)
        job = word >> _SHIFT
        if job == seen or word & _MANY == _MANY:
            spins = linger(spins)
            continue
        _work(box, job)
        seen, spins = job, 0
