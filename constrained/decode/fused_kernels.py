"""Numba kernels of the fused forward pass on a CPU: everything between two linear layers, on the bits of their elements.

Elements are integers that become float32 by a left shift, as in `attention_kernels`: int32 by 0, uint16 (bfloat16) by 16.
Every intermediate result is rounded where transformers rounds it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.kernels import float_kernel, kernel

Bits = NDArray[np.int32] | NDArray[np.uint16]
Floats = NDArray[np.float32]


@kernel
def widen(source: Bits, shift: int, target: NDArray[np.uint32]) -> None:
    """target [K] = the float32 bits of source [K]."""
    if shift == 16:
        for i in range(len(target)):
            target[i] = np.uint32(source[i]) << np.uint32(16)
    else:
        for i in range(len(target)):
            target[i] = np.uint32(source[i])


@kernel
def narrow(source: NDArray[np.uint32], shift: int, target: Bits) -> None:
    """target [K] = source [K] (float32 bits), rounded to the nearest, ties to even."""
    if shift == 16:
        for i in range(len(source)):
            bits = source[i]
            target[i] = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    else:
        for i in range(len(source)):
            target[i] = source[i]


@float_kernel
def sum_of_squares(values: Floats) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(values)):
        total += values[i] * values[i]
    return total


@float_kernel
def add_and_norm(
    residual: Bits,  # [N, H], in place
    delta: Bits,  # [N, H], or empty
    weight: Floats,  # [H]
    eps: float,
    shift: int,
    out: Bits,  # [N, H]
) -> None:
    """residual += delta; out = its RMS norm."""
    width = residual.shape[1]
    bits, other_bits = np.empty(width, np.uint32), np.empty(width, np.uint32)
    values, other = bits.view(np.float32), other_bits.view(np.float32)
    for row in range(len(residual)):
        widen(residual[row], shift, bits)
        if len(delta):
            widen(delta[row], shift, other_bits)
            for i in range(width):
                values[i] += other[i]
            narrow(bits, shift, residual[row])
            widen(residual[row], shift, bits)
        scale = np.float32(1.0) / np.sqrt(sum_of_squares(values) / np.float32(width) + np.float32(eps))
        for i in range(width):
            values[i] *= scale
        narrow(bits, shift, out[row])
        widen(out[row], shift, bits)
        for i in range(width):
            values[i] *= weight[i]
        narrow(bits, shift, out[row])


@float_kernel
def rotate(
    qkv: Bits,  # [N, all heads * dim], in place
    cos: Floats,  # [T, dim / 2]
    sin: Floats,  # [T, dim / 2]
    turns: NDArray[np.int64],  # [N], each row's place among them
    num_rotated: int,
    dim: int,
    shift: int,
) -> None:
    """Rotary position embedding (arXiv 2104.09864, halves) of the first `num_rotated` heads."""
    half = dim // 2
    bits = np.empty(dim, np.uint32)
    values, turned_bits = bits.view(np.float32), np.empty(dim, np.uint32)
    turned = turned_bits.view(np.float32)
    for row in range(len(qkv)):
        c, s = cos[turns[row]], sin[turns[row]]
        for head in range(num_rotated):
            part = qkv[row, head * dim : (head + 1) * dim]
            widen(part, shift, bits)
            for i in range(half):
                a, b = values[i], values[i + half]
                turned[i] = a * c[i] - b * s[i]
                turned[i + half] = b * c[i] + a * s[i]
            narrow(turned_bits, shift, part)


@kernel
def store(
    qkv: Bits,  # [N, (query heads + 2 kv heads) * dim], rotated
    keys: Bits,  # [num_blocks, kv heads, dim, BLOCK_LEN]
    values: Bits,  # [num_blocks, kv heads, BLOCK_LEN, dim]
    slots: NDArray[np.int64],  # [N]
    shift: int,
    query_bits: NDArray[np.uint32],  # [N, query heads, dim]
) -> None:
    """Keys and values into their blocks, queries widened."""
    num_heads, dim, num_kv = query_bits.shape[1], query_bits.shape[2], keys.shape[1]
    for row in range(len(qkv)):
        block, place = slots[row] // BLOCK_LEN, slots[row] % BLOCK_LEN
        for head in range(num_heads):
            widen(qkv[row, head * dim : (head + 1) * dim], shift, query_bits[row, head])
        for head in range(num_kv):
            key_at, value_at = (num_heads + head) * dim, (num_heads + num_kv + head) * dim
            for i in range(dim):
                keys[block, head, i, place] = qkv[row, key_at + i]
                values[block, head, place, i] = qkv[row, value_at + i]


@float_kernel
def turn_and_store(
    qkv: Bits,  # [N, (query heads + 2 kv heads) * dim]
    cos: Floats,  # [T, dim / 2]
    sin: Floats,
    turns: NDArray[np.int64],  # [N]
    keys: Bits,
    values: Bits,
    slots: NDArray[np.int64],
    shift: int,
    query_bits: NDArray[np.uint32],  # [N, query heads, dim]
) -> None:
    """What comes before attention to decode rows, in one call: rotate, then `store`."""
    rotate(qkv, cos, sin, turns, query_bits.shape[1] + keys.shape[1], query_bits.shape[2], shift)
    store(qkv, keys, values, slots, shift, query_bits)
