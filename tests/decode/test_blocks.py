"""Blocks of KV memory: each belongs to one sequence at a time, none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.decode.blocks import BlockManager, BlockTable
from constrained.errors import InternalError


def test_growth_is_all_or_nothing() -> None:
    manager = BlockManager(3, 4)
    blocks = BlockTable()
    assert manager.grow(blocks, 5)
    assert (len(blocks), manager.num_free, manager.capacity) == (2, 1, 12)
    assert manager.grow(blocks, 8)
    assert not manager.grow(BlockTable(), 5)
    assert (len(blocks), manager.num_free) == (2, 1)


def test_a_second_release_is_a_broken_invariant() -> None:
    manager = BlockManager(2, 4)
    blocks = BlockTable()
    manager.grow(blocks, 8)
    stale = BlockTable(list(blocks.blocks))
    manager.release(blocks)
    with pytest.raises(InternalError, match="twice"):
        manager.release(stale)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60))
def test_no_block_has_two_owners_and_none_is_lost(actions: list[tuple[int, int]]) -> None:
    """An action grows owner i to n tokens, or releases it where n is 0."""
    manager = BlockManager(10, 4)
    owners = [BlockTable() for _ in range(4)]
    for owner, num_tokens in actions:
        if num_tokens:
            manager.grow(owners[owner], num_tokens)
        else:
            manager.release(owners[owner])
        held = [block for table in owners for block in table.blocks]
        assert len(set(held)) == len(held)
        assert set(held) <= set(range(10))
        assert manager.num_free == 10 - len(held)
