"""A whole forward pass of the Llama family in one call, which every thread of a team makes: see `shares`.

Between two phases everything lies in the buffers of the step, as the bits of its elements (see `fused_kernels`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.decode.attention_kernels import attend_head, make_room, tile_address
from constrained.decode.fused_kernels import Bits, Floats, add_and_norm, narrow, turn_and_store
from constrained.decode.kernels import kernel
from constrained.decode.mask_kernels import Greedy, judge
from constrained.decode.packing import Packed
from constrained.decode.product_kernels import multiply
from constrained.decode.shares import Counters, await_all, claim, finish
from constrained.tokens.jit import unowned

PHASES_A_LAYER = 8
PHASES_AT_END = 3
_ROWS_A_PART = 4
_NO_SINKS = np.empty(0, np.float32)
_part: Any = kernel


class Weights(NamedTuple):
    """Of all layers; norms one after the other as they come, the last one's after all."""

    embed: Bits  # [vocabulary, hidden]
    norms: Floats  # [2 * layers + 1, hidden]
    qkv: Packed
    out: Packed
    gate_up: Packed
    down: Packed
    head: Packed


class Cache(NamedTuple):
    """The KV memory; `windows` of 0 are unlimited."""

    keys: Bits  # [layers, num_blocks, kv heads, dim, BLOCK_LEN]
    values: Bits  # [layers, num_blocks, kv heads, BLOCK_LEN, dim]
    scalings: NDArray[np.float64]  # [layers]
    windows: NDArray[np.int64]  # [layers]


class Step(NamedTuple):
    """The rows of a step; `pieces` are (sequence, first row, number of rows, position of the first row)."""

    token_ids: NDArray[np.int64]  # [N]
    slots: NDArray[np.int64]  # [N]
    cos: Floats  # [T, dim / 2]
    sin: Floats
    turns: NDArray[np.int64]  # [N], each row's place among them
    pieces: NDArray[np.int64]  # [P, 4]
    tables: NDArray[np.int64]  # [S, blocks]
    logit_rows: NDArray[np.int64]  # [rows whose logits are wanted]


class Buffers(NamedTuple):
    """What lies between two phases."""

    residual: Bits  # [N, hidden]
    delta: Bits  # [N, hidden]
    normed: Bits  # [N, hidden]
    qkv: Bits  # [N, (query heads + 2 kv heads) * dim]
    query: NDArray[np.uint32]  # [N, query heads, dim], the bits of float32
    result: NDArray[np.uint32]  # [N, query heads, dim], the bits of float32
    attended: Bits  # [N, query heads * dim]
    active: Bits  # [N, intermediate]
    wanted: Bits  # [rows whose logits are wanted, hidden]
    logits: Bits  # [rows whose logits are wanted, vocabulary]


@kernel
def run_step(
    weights: Weights,
    cache: Cache,
    step: Step,
    buffers: Buffers,
    greedy: Greedy,
    eps: float,
    shift: int,
    parts: Counters,
    run: int,
) -> None:
    """Fills `buffers.logits` and `greedy.tokens`; returns when all threads' parts are done, or `parts` count another run."""
    embed, norms, parts = unowned(weights.embed), unowned(weights.norms), unowned(parts)
    qkv_w, qkv_s, qkv_b = _freed(weights.qkv)
    out_w, out_s, out_b = _freed(weights.out)
    gate_up_w, gate_up_s, gate_up_b = _freed(weights.gate_up)
    down_w, down_s, down_b = _freed(weights.down)
    head_w, head_s, head_b = _freed(weights.head)
    keys, values = unowned(cache.keys), unowned(cache.values)
    residual, delta, normed = unowned(buffers.residual), unowned(buffers.delta), unowned(buffers.normed)
    qkv, attended, active = unowned(buffers.qkv), unowned(buffers.attended), unowned(buffers.active)
    wanted, logits = unowned(buffers.wanted), unowned(buffers.logits)
    query, result = unowned(buffers.query), unowned(buffers.result)
    token_ids, slots, turns = unowned(step.token_ids), unowned(step.slots), unowned(step.turns)
    cos, sin = unowned(step.cos), unowned(step.sin)
    pieces, tables, logit_rows = unowned(step.pieces), unowned(step.tables), unowned(step.logit_rows)
    nothing = delta[:0]
    num_layers = len(qkv_w)
    phase = 0
    for layer in range(num_layers):
        before = delta if layer else nothing
        _embed_and_norm(
            embed,
            token_ids[: 0 if layer else len(token_ids)],
            residual,
            before,
            norms[2 * layer],
            eps,
            shift,
            normed,
            parts,
            run,
            phase,
        )
        multiply(normed, qkv_w[layer], qkv_s[layer], qkv_b[layer], False, qkv, parts, run, phase + 1)
        _turn(qkv, cos, sin, turns, keys[layer], values[layer], slots, shift, query, parts, run, phase + 2)
        _attend(
            query,
            keys[layer],
            values[layer],
            shift,
            pieces,
            tables,
            cache.scalings[layer],
            cache.windows[layer],
            result,
            attended,
            parts,
            run,
            phase + 3,
        )
        multiply(attended, out_w[layer], out_s[layer], out_b[layer], False, delta, parts, run, phase + 4)
        _embed_and_norm(embed, token_ids[:0], residual, delta, norms[2 * layer + 1], eps, shift, normed, parts, run, phase + 5)
        multiply(normed, gate_up_w[layer], gate_up_s[layer], gate_up_b[layer], True, active, parts, run, phase + 6)
        multiply(active, down_w[layer], down_s[layer], down_b[layer], False, delta, parts, run, phase + 7)
        phase += PHASES_A_LAYER
    _last_norm(residual, delta, logit_rows, norms[2 * num_layers], eps, shift, wanted, parts, run, phase)
    multiply(wanted, head_w[0], head_s[0], head_b[0], False, logits, parts, run, phase + 1)
    _judge(logits, shift, unowned(greedy.table), unowned(greedy.slots), unowned(greedy.tokens), parts, run, phase + 2)


@_part
def _freed(packed):  # type: ignore[no-untyped-def]
    return unowned(packed.words), unowned(packed.scales), unowned(packed.bias)


@_part
def _embed_and_norm(embed, token_ids, residual, delta, weight, eps, shift, normed, parts, run, phase):  # type: ignore[no-untyped-def]
    """Start the residual where there are tokens; add, norm."""
    num_rows = len(residual)
    num_parts = (num_rows + _ROWS_A_PART - 1) // _ROWS_A_PART
    while True:
        part = claim(parts, run, phase, num_parts)
        if part >= num_parts:
            break
        first, end = part * _ROWS_A_PART, min(part * _ROWS_A_PART + _ROWS_A_PART, num_rows)
        if len(token_ids):
            for row in range(first, end):
                residual[row] = embed[token_ids[row]]
        added = delta[first:end] if len(delta) else delta
        add_and_norm(residual[first:end], added, weight, eps, shift, normed[first:end])
        finish(parts, phase)
    await_all(parts, run, phase, num_parts)


@_part
def _turn(qkv, cos, sin, turns, keys, values, slots, shift, query, parts, run, phase):  # type: ignore[no-untyped-def]
    """Rotate queries and keys, store keys and values."""
    num_rows = len(qkv)
    num_parts = (num_rows + _ROWS_A_PART - 1) // _ROWS_A_PART
    while True:
        part = claim(parts, run, phase, num_parts)
        if part >= num_parts:
            break
        a, b = part * _ROWS_A_PART, min(part * _ROWS_A_PART + _ROWS_A_PART, num_rows)
        turn_and_store(qkv[a:b], cos, sin, turns[a:b], keys, values, slots[a:b], shift, query[a:b])
        finish(parts, phase)
    await_all(parts, run, phase, num_parts)


@_part
def _attend(query, keys, values, shift, pieces, tables, scaling, window, result, attended, parts, run, phase):  # type: ignore[no-untyped-def]
    """Each piece and key head on its own."""
    num_kv_heads, num_heads, dim = keys.shape[1], query.shape[1], query.shape[2]
    queries, results = query.view(np.float32), result.view(np.float32)
    width = num_heads // num_kv_heads * dim
    num_parts = len(pieces) * num_kv_heads
    room = make_room(pieces[:, 2].max() * (num_heads // num_kv_heads), dim, dim)
    part = claim(parts, run, phase, num_parts)
    while part < num_parts:
        # A part ahead, so that its first keys can be fetched during this one.
        following = claim(parts, run, phase, num_parts)
        piece, head = (following if following < num_parts else part) // num_kv_heads, following % num_kv_heads
        ahead = tile_address(keys, tables[pieces[piece, 0], 0], head)
        piece, head = part // num_kv_heads, part % num_kv_heads
        table, first, count, start = tables[pieces[piece, 0]], pieces[piece, 1], pieces[piece, 2], pieces[piece, 3]
        attend_head(
            queries,
            keys,
            values,
            shift,
            table,
            first,
            count,
            start,
            head,
            scaling,
            window,
            0.0,
            _NO_SINKS,
            results,
            room,
            ahead,
        )
        for row in range(first, first + count):
            flat = result[row].reshape(num_heads * dim)
            narrow(flat[head * width : (head + 1) * width], shift, attended[row, head * width : (head + 1) * width])
        finish(parts, phase)
        part = following
    await_all(parts, run, phase, num_parts)


@_part
def _last_norm(residual, delta, rows, weight, eps, shift, wanted, parts, run, phase):  # type: ignore[no-untyped-def]
    """Of the rows whose logits are wanted."""
    num_parts = len(rows)
    while True:
        part = claim(parts, run, phase, num_parts)
        if part >= num_parts:
            break
        row = rows[part]
        add_and_norm(residual[row : row + 1], delta[row : row + 1], weight, eps, shift, wanted[part : part + 1])
        finish(parts, phase)
    await_all(parts, run, phase, num_parts)


@_part
def _judge(logits, shift, table, slots, tokens, parts, run, phase):  # type: ignore[no-untyped-def]
    """The best allowed token of each row whose mask is known."""
    num_parts = len(slots)
    while True:
        part = claim(parts, run, phase, num_parts)
        if part >= num_parts:
            break
        if shift == 16:
            judge(logits.view(np.int16), part, table, slots, 0x7FFF, 0x7F80, tokens)
        else:
            judge(logits.view(np.int32), part, table, slots, 0x7FFFFFFF, 0x7F800000, tokens)
        finish(parts, phase)
    await_all(parts, run, phase, num_parts)
