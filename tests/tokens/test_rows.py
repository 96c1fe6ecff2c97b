"""Rows are stored once per content, and an id never stands for two contents."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from constrained.tokens.rows import RowStore, clear_bits, set_bits


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


@given(st.sets(st.integers(0, 95)), st.sets(st.integers(0, 95)))
def test_bits(set_: set[int], cleared: set[int]) -> None:
    words = np.zeros(3, np.uint32)
    set_bits(words, np.array(sorted(set_), np.int32))
    clear_bits(words, np.array(sorted(cleared), np.int32))
    assert {i for i in range(96) if words[i >> 5] >> np.uint32(i & 31) & np.uint32(1)} == set_ - cleared
