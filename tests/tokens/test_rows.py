"""Rows are stored once per content, and an id never stands for two contents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.tokens.rows import RowStore, clear_bits, digest_of, set_bits


def test_equal_rows_are_one_row() -> None:
    store = RowStore()
    words = np.array([1, 2, 3], np.uint32)
    first = store.intern(words)
    words[0] = 9
    second = store.intern(words)
    assert first.words.tolist() == [1, 2, 3]
    assert second.id != first.id
    assert store.intern(np.array([1, 2, 3], np.uint32)) is first
    assert not first.words.flags.writeable


def test_a_forgotten_row_gets_a_new_id() -> None:
    store = RowStore(capacity=2)
    rows = [store.intern(np.array([i], np.uint32)) for i in range(3)]
    again = store.intern(np.array([0], np.uint32))
    assert again.id not in {row.id for row in rows}


@pytest.mark.parametrize("num_changed", [0, 1, 4, 5, 64])
def test_a_row_is_what_it_differs_in_from_another(num_changed: int) -> None:
    store, size = RowStore(), 64
    before = np.arange(size, dtype=np.uint32)
    expected = before.copy()
    expected[:num_changed] += 7
    changes = np.stack([np.arange(num_changed), expected[:num_changed]], axis=1).astype(np.int32)
    row = store.put(digest_of(expected, store.secret), store.bits(before), changes)
    changes[:] = 0  # what was given may be used again
    assert store.intern(expected) is row
    bitmask = np.full((3, size), -1, np.int32)
    row.fill(bitmask, 1)
    assert bitmask[1].tolist() == expected.tolist()
    assert (bitmask[[0, 2]] == -1).all()
    apart, wide = np.full((4, size), -1, np.int32)[::2], np.full((2, size), -1, np.int64)
    row.fill(apart, 1)
    row.fill(wide, 0)
    assert apart[1].tolist() == wide[0].tolist() == expected.tolist()
    assert row.words.tolist() == expected.tolist()
    assert not row.words.flags.writeable
    row.fill(bitmask, 0)
    assert bitmask[0].tolist() == expected.tolist()


@pytest.mark.parametrize("num_changed", [0, 4, 64])
def test_a_row_is_written_nowhere_else(num_changed: int) -> None:
    store, size = RowStore(), 64
    words = np.arange(size, dtype=np.uint32)
    words[:num_changed] += 7
    changes = np.stack([np.arange(num_changed), words[:num_changed]], axis=1).astype(np.int32)
    row = store.put(digest_of(words, store.secret), store.bits(np.arange(size, dtype=np.uint32)), changes)
    whole = np.full((4, size), -1, np.int32)
    for place in (1, 2, -2):
        with pytest.raises(IndexError):
            row.fill(whole[:1], place)
    for width in (size - 1, size + 1):
        with pytest.raises(ValueError):
            row.fill(np.full((4, width), -1, np.int32), 0)
    assert (whole == -1).all()
    row.fill(whole[:2], -1)
    assert (whole[1] == words.view(np.int32)).all()
    assert (whole[[0, 2, 3]] == -1).all()


@given(st.sets(st.integers(0, 95)), st.sets(st.integers(0, 95)))
def test_bits(set_: set[int], cleared: set[int]) -> None:
    words = np.zeros(3, np.uint32)
    set_bits(words, np.array(sorted(set_), np.int32))
    clear_bits(words, np.array(sorted(cleared), np.int32))
    assert {i for i in range(96) if words[i >> 5] >> np.uint32(i & 31) & np.uint32(1)} == set_ - cleared
