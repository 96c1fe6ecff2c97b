"""Stack cells: one per open frame, interned, so that equal stacks are one integer.

A cell is (parent cell, local state to return to, free keys seen so far in its frame). Kernels make those without keys
(`push`); mask rows do not look at the keys, which are taken out of a row afterwards.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import tables
from constrained.automaton.tables import (
    CELL_COLUMNS,
    CELLS,
    CELLS_TAKEN,
    CHILD,
    DEPTH,
    NUM_CELLS,
    PARENT,
    RETURN_LOCAL,
    SIBLING,
    Counted,
    Storage,
)
from constrained.tokens.jit import int32_table, int64_array, kernel

BOTTOM = 0
NO_KEYS: frozenset[bytes] = frozenset()


class Cells:
    """All cells of one automaton. Kernels read `table`, and write scratch cells past its end.

    `seen` are the free keys of those frames that have some.
    """

    def __init__(self, storage: Storage) -> None:
        self.table = Counted(CELL_COLUMNS, 96, storage, (CELLS, CELLS_TAKEN, NUM_CELLS))
        self._machine = storage.address
        self.seen: dict[int, frozenset[bytes]] = {}
        self._keyed: dict[tuple[int, int, frozenset[bytes]], int] = {}
        self.table.add((-1, -1, 0, -1, -1))

    def push(self, parent: int, local: int) -> int:
        """The cell above `parent` that returns to `local`, without keys."""
        self.table.reserve(1)
        return int(_push(self._machine, parent, local))

    def keys(self, cell: int) -> frozenset[bytes]:
        """The free keys that were seen in a frame."""
        return self.seen.get(cell, NO_KEYS)

    def with_key(self, cell: int, content: bytes) -> int:
        """The same frame after one more free key."""
        return self._with_keys(self.parent(cell), self.local(cell), self.keys(cell) | {content})

    def split(self, cell: int, level: int) -> tuple[list[tuple[int, frozenset[bytes]]], int]:
        """The uppermost `level` cells, each as where it returns to and its keys, and the one below them; 0: there is none."""
        above: list[tuple[int, frozenset[bytes]]] = []
        while len(above) < level and cell > BOTTOM:
            above.append((self.local(cell), self.keys(cell)))
            cell = self.parent(cell)
        return above, cell

    def returning(self, cell: int, level: int, local: int) -> int:
        """The same stack, with another local state for the frame with `level` others above it to return to."""
        above, base = self.split(cell, level)
        made = self._with_keys(self.parent(base), local, self.keys(base))
        for back, keys in reversed(above):
            made = self._with_keys(made, back, keys)
        return made

    def _with_keys(self, parent: int, local: int, keys: frozenset[bytes]) -> int:
        if not keys:
            return self.push(parent, local)
        found = self._keyed.get((parent, local, keys))
        if found is None:
            found = self.table.add((parent, local, self.depth(parent) + 1, -1, -1))
            self._keyed[parent, local, keys], self.seen[found] = found, keys
        return found

    def parent(self, cell: int) -> int:
        """The cell below."""
        return self.table.cells[cell * CELL_COLUMNS + PARENT]

    def local(self, cell: int) -> int:
        """The local state that the frame returns to."""
        return self.table.cells[cell * CELL_COLUMNS + RETURN_LOCAL]

    def depth(self, cell: int) -> int:
        """How many frames are open."""
        return self.table.cells[cell * CELL_COLUMNS + DEPTH]

    def adopt(self, cell: int, scratch: int) -> int:
        """The interned cell for one that the kernel made: cells from `scratch` on are the kernel's."""
        return self.push_all(*self.chain(cell, scratch))

    def chain(self, cell: int, scratch: int) -> tuple[int, list[int]]:
        """The interned cell below one that the kernel made, and the local states that those above it return to."""
        chain: list[int] = []
        while cell >= scratch:
            chain.append(self.local(cell))
            cell = self.parent(cell)
        chain.reverse()
        return cell, chain

    def push_all(self, cell: int, locals_: list[int]) -> int:
        """The cell above `cell` that returns to each of some local states in turn."""
        for local in locals_:
            cell = self.push(cell, local)
        return cell

    def __len__(self) -> int:
        return self.table.size


@kernel
def push(slots, cells, parent, local):  # type: ignore[no-untyped-def]  # numba
    """`Cells.push` for kernels, where there is room for a cell."""
    cell = cells[parent, CHILD]
    while cell >= 0:
        if cells[cell, RETURN_LOCAL] == local:
            return cell
        cell = cells[cell, SIBLING]
    cell = slots[tables.CELLS_TAKEN]
    slots[tables.CELLS_TAKEN] = cell + 1
    cells[cell, PARENT], cells[cell, RETURN_LOCAL], cells[cell, DEPTH] = parent, local, cells[parent, DEPTH] + 1
    cells[cell, CHILD], cells[cell, SIBLING] = -1, cells[parent, CHILD]
    cells[parent, CHILD] = cell
    return np.int64(cell)


@kernel
def adopt(slots, cells, cell, scratch):  # type: ignore[no-untyped-def]  # numba
    """`Cells.adopt` for kernels: there is room for as many cells as the kernel made, below `scratch`."""
    height, base = 0, cell
    while base >= scratch:
        height += 1
        base = np.int64(cells[base, PARENT])
    for level in range(height - 1, -1, -1):
        made = cell
        for _ in range(level):
            made = np.int64(cells[made, PARENT])
        base = push(slots, cells, base, cells[made, RETURN_LOCAL])
    return base


@kernel
def _push(machine, parent, local):  # type: ignore[no-untyped-def]  # numba
    slots = int64_array(machine)
    return push(slots, int32_table(slots[tables.CELLS], CELL_COLUMNS), parent, local)
