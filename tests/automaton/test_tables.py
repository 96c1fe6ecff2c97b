"""Memory of tables: where it lies, who is told that it moved."""

from __future__ import annotations

import numpy as np

from constrained.automaton.tables import NUM_SLOTS, Arena, Counted, Shared, Storage, Table
from constrained.tokens.jit import address


def test_a_storage_gives_each_table_its_own_cells_of_minus_one() -> None:
    storage = Storage(41, unfilled=6)
    tables = [Table(3, 3, storage), Table(1, 10, storage), Table(5, 4, storage)]
    assert list(storage.slots) == [0] * NUM_SLOTS
    for number, table in enumerate(tables):
        assert set(table.cells) == {-1}
        assert address(table.array) % 8 == 0
        table.array.fill(number)
    assert [set(table.cells) for table in tables] == [{0}, {1}, {2}]
    assert list(storage.slots) == [0] * NUM_SLOTS


def test_what_does_not_fit_into_a_storage_comes_from_elsewhere() -> None:
    storage = Storage(10)
    first, second = Table(3, 3, storage), Table(2, 4, storage)
    assert set(first.cells) == set(second.cells) == {-1}
    assert address(second.array) - address(first.array) not in range(40)


def test_kernels_find_what_a_counted_table_holds_in_the_slots_of_its_storage() -> None:
    storage = Storage(20, unfilled=8)
    filled = Counted(2, 8, storage, (1, 2, 3))
    unfilled = Counted(2, 4, storage, (4, 5, 6), is_filled=False)
    assert [storage.slots[slot] for slot in (1, 2, 3)] == [address(filled.array), 0, 8]
    assert [storage.slots[slot] for slot in (4, 5, 6)] == [address(unfilled.array), 0, 4]
    storage.slots[2] = 7  # as a kernel does
    assert filled.size == 7
    filled.reserve(2)
    assert [storage.slots[slot] for slot in (1, 2, 3)] == [address(filled.array), 7, 16]
    assert [storage.slots[slot] for slot in (4, 5, 6)] == [address(unfilled.array), 0, 4]


def test_a_table_tells_every_arena_that_it_moved() -> None:
    table, arenas = Table(2, 4), [Arena(), Arena()]
    for arena in arenas:
        table.enter(arena, 3, 5)
    table.extend(range(20))
    assert [(arena.slots[3], arena.slots[5]) for arena in arenas] == [(address(table.array), table.capacity)] * 2
    assert np.array_equal(table.array[:10].ravel(), np.arange(20))


def test_a_shared_table_tells_the_arenas_that_are_left_and_forgets_the_others() -> None:
    table, stays = Shared(2, 4), Arena()
    table.lend(stays, 3)
    for _ in range(1000):
        table.lend(Arena(), 3)
    late = Arena()
    table.lend(late, 7)
    assert len(table._readers) < 200
    table.reserve(100)
    assert (stays.slots[3], late.slots[7]) == (address(table.array), address(table.array))
