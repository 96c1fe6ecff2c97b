"""Root mean square norms (arXiv 1910.07467) on the bits of their elements, as `fused_kernels` has them."""

from __future__ import annotations

import numpy as np

from constrained.decode.fused_kernels import Bits, Floats, narrow, sum_of_squares, widen
from constrained.decode.kernels import float_kernel


@float_kernel
def norm_rows(rows: Bits, weight: Floats, eps: float, shift: int, rounds_first: bool, out: Bits) -> None:
    """out [N, K] = rows [N, K] over their root mean square, times weight [K]; rounded before that too if `rounds_first`."""
    width = rows.shape[1]
    bits = np.empty(width, np.uint32)
    values = bits.view(np.float32)
    for row in range(len(rows)):
        widen(rows[row], shift, bits)
        scale = np.float32(1.0) / np.sqrt(sum_of_squares(values) / np.float32(width) + np.float32(eps))
        for i in range(width):
            values[i] *= scale
        if rounds_first:
            narrow(bits, shift, out[row])
            widen(out[row], shift, bits)
        for i in range(width):
            values[i] *= weight[i]
        narrow(bits, shift, out[row])
