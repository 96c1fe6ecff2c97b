"""The device table: each row is uploaded once, and what a step uses is never evicted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constrained.decode.rows import ALL_TOKENS, RowTable
from constrained.errors import InternalError
from tests.decode.mocks import MockRow

NUM_WORDS = 2


def row(i: int) -> MockRow:
    return MockRow(i, np.array([i, ~i], np.int32))


def words_at(table: RowTable, slot: int) -> list[int]:
    return table.table[slot].tolist()


def make(capacity: int) -> RowTable:
    return RowTable(capacity, NUM_WORDS, torch.device("cpu"))


def test_a_row_is_uploaded_once_and_none_means_every_token() -> None:
    table = make(4)
    slots = table.slots([row(7), None, row(7), row(8)])
    assert slots[0] == slots[2] != slots[3]
    assert slots[1] == ALL_TOKENS
    assert words_at(table, ALL_TOKENS) == [-1, -1]
    assert [words_at(table, s) for s in slots[2:]] == [[7, ~7], [8, ~8]]
    assert table.slots([row(8), row(7)]) == [slots[3], slots[0]]
    assert table.num_uploads == 2


def test_the_least_recently_used_row_leaves_first() -> None:
    table = make(4)
    table.slots([row(1), row(2), row(3)])
    table.slots([row(1)])
    table.slots([row(4)])
    table.slots([row(1), row(3)])
    assert table.num_uploads == 4
    table.slots([row(2)])
    assert table.num_uploads == 5


def test_a_step_that_needs_more_rows_than_there_are_is_an_error_not_a_wrong_mask() -> None:
    table = make(3)
    table.slots([row(1)])
    with pytest.raises(InternalError, match="more mask rows"):
        table.slots([row(1), row(2), row(3)])


def test_a_row_of_another_vocabulary_costs_no_slot() -> None:
    table = make(2)
    with pytest.raises(InternalError, match="words"):
        table.slots([MockRow(1, np.zeros(5, np.int32))])
    assert words_at(table, table.slots([row(2)])[0]) == [2, ~2]


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=40))
def test_every_slot_of_a_step_holds_its_row(steps: list[list[int]]) -> None:
    table = make(5)
    for step in steps:
        for i, slot in zip(step, table.slots([row(i) for i in step]), strict=True):
            assert words_at(table, slot) == [i, ~i]
    assert words_at(table, ALL_TOKENS) == [-1, -1]
