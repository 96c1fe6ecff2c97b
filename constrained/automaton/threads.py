"""Threads by number: the states of a single thread, which most states are, interned by the kernel that comes to them.

A step by a token from such a state is one call of a kernel: through the token's bytes, to the number of the thread there.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.cells import adopt
from constrained.automaton.stepping import run
from constrained.automaton.strings import ALIVE
from constrained.automaton.tables import (
    DONE_HERE,
    INDEX_SIZE,
    KEEPS_TEXT,
    MAX_THREADS,
    T_CELL,
    T_ESC,
    T_FLAGS,
    T_LEX,
    T_LOCAL,
    T_NEED,
    T_ROOM,
    T_ROW,
    THREAD_COLUMNS,
    THREAD_INDEX,
    THREADS,
    THREADS_TAKEN,
    Counted,
    Storage,
)
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel

# (lex, esc, need, room, local, cell), as the kernel has it.
Thread = tuple[int, int, int, int, int, int]
# What a step returns where it comes to no thread: Python has to see to it, or there is no room in a table.
ELSEWHERE, NO_ROOM = -1, -2
_FIRST = 64


class Threads:
    """The threads of one automaton that were met so far. The caller holds its lock."""

    def __init__(self, storage: Storage) -> None:
        self._machine = storage.address
        self.table = Counted(THREAD_COLUMNS, _FIRST, storage, (THREADS, THREADS_TAKEN, MAX_THREADS))
        self._index = tables.Table(1, 2 * _FIRST, storage)
        self._index.enter(storage, THREAD_INDEX, INDEX_SIZE)

    def number(self, thread: Thread) -> int:
        """The number of a thread."""
        while (found := _number(self._machine, *thread)) == NO_ROOM:
            self.grow()
        return int(found)

    def thread(self, number: int) -> Thread:
        """The thread of a number."""
        first = number * THREAD_COLUMNS
        lex, esc, need, room, local, cell = self.table.cells[first : first + T_ROW]
        return (lex, esc, need, room, local, cell)

    def flags(self, number: int) -> int:
        """`DONE_HERE`: the document may end at the local state of a thread; `KEEPS_TEXT`: plain text leads back to it."""
        return self.table.cells[number * THREAD_COLUMNS + T_FLAGS]

    def step(self, shared: int, number: int, token: int) -> int:
        """The thread that one becomes by a token of the vocabulary at `shared` (`vocabulary_tables`).

        Or `ELSEWHERE`, `NO_ROOM`.
        """
        found: int = _step(self._machine, shared, number, token)
        return found

    def grow(self) -> bool:
        """Make room for more threads where there is none; False where there is."""
        if self.table.size < self.table.capacity:
            return False
        self.table.reserve(1)
        self._index.clear(2 * self.table.capacity)
        _enter_all(self._machine)
        return True

    def __len__(self) -> int:
        return self.table.size


@kernel
def hashed_thread(lex, esc, need, room, local):  # type: ignore[no-untyped-def]  # numba
    """A number that depends on all of a thread but its stack."""
    mixed = np.uint64(lex) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(local) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed += np.uint64(esc) * np.uint64(0x165667B19E3779F9) + np.uint64(need) * np.uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ (mixed >> np.uint64(31))) + np.uint64(room) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(1))


@kernel
def intern(slots, lex, esc, need, room, local, cell):  # type: ignore[no-untyped-def]  # numba
    """The number of a thread, or `NO_ROOM`."""
    threads, index = int32_table(slots[THREADS], THREAD_COLUMNS), int32_array(slots[THREAD_INDEX])
    mask = slots[INDEX_SIZE] - 1
    at = (hashed_thread(lex, esc, need, room, local) + np.int64(cell) * 0x9E3779B1) & mask
    while index[at] >= 0:
        found = index[at]
        if (
            threads[found, T_LEX] == lex
            and threads[found, T_LOCAL] == local
            and threads[found, T_CELL] == cell
            and threads[found, T_ESC] == esc
            and threads[found, T_NEED] == need
            and threads[found, T_ROOM] == room
        ):
            return np.int64(found)
        at = (at + 1) & mask
    made = slots[THREADS_TAKEN]
    if made >= slots[MAX_THREADS]:
        return np.int64(NO_ROOM)
    slots[THREADS_TAKEN] = made + 1
    index[at] = made
    threads[made, T_LEX], threads[made, T_ESC], threads[made, T_NEED] = lex, esc, need
    threads[made, T_ROOM], threads[made, T_LOCAL], threads[made, T_CELL], threads[made, T_ROW] = room, local, cell, -1
    flags = 0
    if int32_table(slots[tables.LOCALS], tables.LOCAL_COLUMNS)[local, tables.DONE]:
        flags |= DONE_HERE
    if lex == strings.FREE and esc == 0 and need == 0 and room >= strings.UNBOUNDED:
        flags |= KEEPS_TEXT
    threads[made, T_FLAGS] = flags
    return np.int64(made)


@kernel
def _number(machine, lex, esc, need, room, local, cell):  # type: ignore[no-untyped-def]  # numba
    return intern(int64_array(machine), lex, esc, need, room, local, cell)


@kernel
def _enter_all(machine):  # type: ignore[no-untyped-def]  # numba
    """Fill an empty index."""
    slots = int64_array(machine)
    threads, index = int32_table(slots[THREADS], THREAD_COLUMNS), int32_array(slots[THREAD_INDEX])
    mask = slots[INDEX_SIZE] - 1
    for number in range(slots[THREADS_TAKEN]):
        hashed = hashed_thread(
            threads[number, T_LEX],
            threads[number, T_ESC],
            threads[number, T_NEED],
            threads[number, T_ROOM],
            threads[number, T_LOCAL],
        )
        at = (hashed + np.int64(threads[number, T_CELL]) * 0x9E3779B1) & mask
        while index[at] >= 0:
            at = (at + 1) & mask
        index[at] = number


@kernel
def _step(machine, shared, number, token):  # type: ignore[no-untyped-def]  # numba
    """See `Threads.step`."""
    slots, common = int64_array(machine), int64_array(shared)
    starts = int32_array(common[tables.V_STARTS])
    size = np.int64(starts[token + 1]) - np.int64(starts[token])
    if size == 0:
        return np.int64(ELSEWHERE)
    taken = slots[tables.CELLS_TAKEN]
    if taken + 2 * size + 16 > slots[tables.NUM_CELLS] or slots[THREADS_TAKEN] >= slots[MAX_THREADS]:
        return np.int64(NO_ROOM)
    threads, cells = int32_table(slots[THREADS], THREAD_COLUMNS), int32_table(slots[tables.CELLS], tables.CELL_COLUMNS)
    # Cells that are made on the way are written behind the room of those that will be kept.
    scratch = taken + size
    result, _, _, num_cells, lex, esc, need, room, local, cell = run(
        machine, common[tables.V_TOKENS] + starts[token], 0, size, scratch,
        threads[number, T_LEX], threads[number, T_ESC], threads[number, T_NEED],
        threads[number, T_ROOM], threads[number, T_LOCAL], threads[number, T_CELL],
    )  # fmt: skip
    if result != ALIVE:
        return np.int64(ELSEWHERE)
    if num_cells > scratch:
        cell = adopt(slots, cells, cell, scratch)
    return intern(slots, lex, esc, need, room, local, cell)
