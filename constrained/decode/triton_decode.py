"""Attention of decode rows over paged KV memory in Triton: grouped queries, an online softmax over the blocks in place.

One program a sequence, key head and part of its past; where there are several parts a second kernel joins them (as in
Flash-Decoding). `paged_decode.gathered_decode` says the same in torch. Imported only where there is a CUDA device, or
Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from constrained.decode.attention import AttentionTraits

_TILE_BYTES = 16_384  # of keys at a time
_LONGEST_TILE = 64
_PROGRAMS = 512  # that a device can have at work; fewer sequences than that are cut into parts
_MOST_PARTS = 16
_LOWEST = tl.constexpr(-1.0e30)  # below any score; unlike -inf its difference to itself is a number


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    query, keys, values, tables, ends, sinks, out, peaks, sums,
    query_row, query_head, key_block, key_place, key_head, value_block, value_place, value_head, table_row, table_column,
    scaling, softcap,
    GROUP: tl.constexpr, ROWS: tl.constexpr, KEY_DIM: tl.constexpr, KEY_ROOM: tl.constexpr,
    VALUE_DIM: tl.constexpr, VALUE_ROOM: tl.constexpr, BLOCK_LEN: tl.constexpr, TILE: tl.constexpr, PARTS: tl.constexpr,
    WINDOW: tl.constexpr, HAS_SOFTCAP: tl.constexpr, HAS_SINKS: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    row, kv_head, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    end = tl.load(ends + row)
    start = end * 0
    if WINDOW > 0:
        start = tl.maximum(end - WINDOW, 0)
    first_tile = start // TILE
    tiles = tl.cdiv(tl.cdiv(end, TILE) - first_tile, PARTS)  # of each part
    first = (first_tile + part * tiles) * TILE
    last = tl.minimum(first + tiles * TILE, end)

    lanes, key_at, value_at = tl.arange(0, ROWS), tl.arange(0, KEY_ROOM), tl.arange(0, VALUE_ROOM)
    heads, is_lane = kv_head * GROUP + lanes, lanes < GROUP
    is_key, is_value = key_at < KEY_DIM, value_at < VALUE_DIM
    places = query + row * query_row + heads[:, None] * query_head + key_at[None]
    rows = tl.load(places, mask=is_lane[:, None] & is_key[None], other=0.0)

    peak = tl.full((ROWS,), _LOWEST, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    if HAS_SINKS:  # noqa: SIM102 - a score that weighs and adds nothing
        if part == 0:
            peak = tl.load(sinks + heads, mask=is_lane, other=0.0).to(tl.float32)
            total += 1.0
    sum_of_values = tl.zeros((ROWS, VALUE_ROOM), tl.float32)
    for at in range(first, last, TILE):
        positions = at + tl.arange(0, TILE)
        exists = positions < end
        blocks = tl.load(tables + row * table_row + positions // BLOCK_LEN * table_column, mask=exists, other=0).to(tl.int64)
        place = positions % BLOCK_LEN
        key_places = keys + (blocks * key_block + place * key_place)[None] + kv_head * key_head + key_at[:, None]
        past = tl.load(key_places, mask=exists[None] & is_key[:, None], other=0.0)  # [KEY_ROOM, TILE]
        scores = tl.dot(rows, past, input_precision=PRECISION) * scaling
        if HAS_SOFTCAP:
            scores = softcap * (2.0 / (1.0 + tl.exp(-2.0 * scores / softcap)) - 1.0)  # tanh
        scores = tl.where((exists & (positions >= start))[None], scores, _LOWEST)
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.where((exists & (positions >= start))[None], tl.exp(scores - higher[:, None]), 0.0)
        fading = tl.exp(peak - higher)
        total = total * fading + tl.sum(weights, axis=1)
        value_places = values + (blocks * value_block + place * value_place)[:, None] + kv_head * value_head + value_at[None]
        past = tl.load(value_places, mask=exists[:, None] & is_value[None], other=0.0)  # [TILE, VALUE_ROOM]
        added = tl.dot(weights.to(past.dtype), past, input_precision=PRECISION)
        sum_of_values = sum_of_values * fading[:, None] + added
        peak = higher

    if PARTS == 1:
        sum_of_values /= total[:, None]
    place = (row * tl.num_programs(1) * GROUP + heads) * PARTS + part
    places = out + place[:, None] * VALUE_DIM + value_at[None]
    tl.store(places, sum_of_values.to(out.dtype.element_ty), mask=is_lane[:, None] & is_value[None])
    if PARTS > 1:
        tl.store(peaks + place, peak, mask=is_lane)
        tl.store(sums + place, total, mask=is_lane)


@triton.jit  # type: ignore[untyped-decorator]
def _join(  # type: ignore[no-untyped-def]
    parts, peaks, sums, out, PARTS: tl.constexpr, VALUE_DIM: tl.constexpr, VALUE_ROOM: tl.constexpr
) -> None:
    place = tl.program_id(0).to(tl.int64)
    part, value_at = tl.arange(0, PARTS), tl.arange(0, VALUE_ROOM)
    is_value = value_at < VALUE_DIM
    peak = tl.load(peaks + place * PARTS + part)
    weights = tl.exp(peak - tl.max(peak, axis=0))
    total = tl.sum(tl.load(sums + place * PARTS + part) * weights, axis=0)
    places = parts + (place * PARTS + part)[:, None] * VALUE_DIM + value_at[None]
    values = tl.load(places, mask=is_value[None], other=0.0)
    joined = tl.sum(values * weights[:, None], axis=0) / total
    tl.store(out + place * VALUE_DIM + value_at, joined.to(out.dtype.element_ty), mask=is_value)


def num_parts(num_sequences: int, num_kv_heads: int, most_positions: int) -> int:
    """How many parts each past is cut into: a power of two, by shapes alone, so that a recorded step keeps it."""
    wanted = min(_PROGRAMS // (num_sequences * num_kv_heads), most_positions // (4 * _LONGEST_TILE), _MOST_PARTS)
    return 1 << max(wanted, 1).bit_length() - 1


def _tile(key_dim: int, size: int) -> int:
    """Positions at a time, so that keys and values of two tiles fit into the memory that the programs of a core share."""
    room: int = triton.next_power_of_2(key_dim)
    return max(16, min(_LONGEST_TILE, _TILE_BYTES // (room * size)))


def paged_decode(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    tables: Tensor,
    ends: Tensor,
    traits: AttentionTraits,
    parts: int | None = None,
) -> Tensor:
    """See `paged_decode.gathered_decode`; `parts` by default as `num_parts` says."""
    num_sequences, num_heads, key_dim = query.shape
    block_len, num_kv_heads, value_dim = keys.shape[1], keys.shape[2], values.shape[3]
    group = num_heads // num_kv_heads
    parts = parts or num_parts(num_sequences, num_kv_heads, tables.shape[1] * block_len)
    query = query if query.stride(2) == 1 else query.contiguous()
    out = torch.empty(num_sequences, num_heads, value_dim, dtype=query.dtype, device=query.device)
    peaks = torch.empty(num_sequences, num_heads, parts, dtype=torch.float32, device=query.device)
    sums = torch.empty_like(peaks)
    partial = out if parts == 1 else torch.empty(*peaks.shape, value_dim, dtype=torch.float32, device=query.device)
    attend: Any = _attend
    attend[(num_sequences, num_kv_heads, parts)](
        query, keys, values, tables, ends, peaks if traits.sinks is None else traits.sinks, partial, peaks, sums,
        query.stride(0), query.stride(1), *keys.stride()[:3], *values.stride()[:3], *tables.stride(),
        traits.scaling, traits.softcap,
        GROUP=group, ROWS=max(16, triton.next_power_of_2(group)),
        KEY_DIM=key_dim, KEY_ROOM=max(16, triton.next_power_of_2(key_dim)),
        VALUE_DIM=value_dim, VALUE_ROOM=max(16, triton.next_power_of_2(value_dim)),
        BLOCK_LEN=block_len, TILE=_tile(key_dim, query.element_size()), PARTS=parts,
        WINDOW=traits.window, HAS_SOFTCAP=bool(traits.softcap), HAS_SINKS=traits.sinks is not None,
        PRECISION="ieee", num_stages=2,
    )  # fmt: skip
    if parts > 1:
        join: Any = _join
        room = triton.next_power_of_2(value_dim)
        join[(num_sequences * num_heads,)](partial, peaks, sums, out, PARTS=parts, VALUE_DIM=value_dim, VALUE_ROOM=room)
    return out
