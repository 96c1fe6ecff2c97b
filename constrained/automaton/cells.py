"""Stack cells: one per open frame, interned, so that equal stacks are one integer.

A cell is (parent cell, local state to return to, free keys seen so far in its frame). Its *shape* leaves out the keys:
mask rows are shared by shape, and the keys are taken out of a row afterwards.
"""

from __future__ import annotations

from constrained.automaton.tables import CELL_COLUMNS, Storage, Table

BOTTOM = 0
NO_KEYS: frozenset[bytes] = frozenset()


class Cells:
    """All cells of one automaton. The kernel reads `table`, and writes scratch cells past its end."""

    def __init__(self, storage: Storage) -> None:
        self.table = Table(CELL_COLUMNS, 256, storage)
        self._parents: list[int] = []
        self._locals: list[int] = []
        self._depths: list[int] = []
        self.seen: list[frozenset[bytes]] = []
        self.shape: list[int] = []
        self._index: dict[tuple[int, int, frozenset[bytes]], int] = {}
        self.push(-1, -1)

    def push(self, parent: int, local: int, seen: frozenset[bytes] = NO_KEYS) -> int:
        """The cell above `parent` that returns to `local`."""
        key = (parent, local, seen)
        found = self._index.get(key)
        if found is None:
            depth = self.depth(parent) + 1 if parent >= 0 else 0
            found = self._index[key] = self.table.add((parent, local, depth))
            self._parents.append(parent)
            self._depths.append(depth)
            self._locals.append(local)
            self.seen.append(seen)
            plain = (self.shape[parent], local, NO_KEYS) if parent >= 0 else key
            self.shape.append(found if plain == key else self.push(*plain))
        return found

    def with_key(self, cell: int, content: bytes) -> int:
        """The same frame after one more free key."""
        return self.push(self.parent(cell), self.local(cell), self.seen[cell] | {content})

    def parent(self, cell: int) -> int:
        """The cell below."""
        return self._parents[cell]

    def local(self, cell: int) -> int:
        """The local state that the frame returns to."""
        return self._locals[cell]

    def depth(self, cell: int) -> int:
        """How many frames are open."""
        return self._depths[cell]

    def returns(self, cell: int, count: int) -> tuple[int, ...]:
        """The local states that the upper `count` frames return to, the uppermost first."""
        found: list[int] = []
        while len(found) < count and cell >= 0:
            found.append(self._locals[cell])
            cell = self._parents[cell]
        return tuple(found)

    def adopt(self, cell: int, scratch: int) -> int:
        """The interned cell for one that the kernel made: cells from `scratch` on are the kernel's."""
        return self.push_all(*self.chain(cell, scratch))

    def chain(self, cell: int, scratch: int) -> tuple[int, list[int]]:
        """The interned cell below one that the kernel made, and the local states that those above it return to."""
        chain: list[int] = []
        made = self.table.array
        while cell >= scratch:
            parent, local, _ = made[cell].tolist()
            chain.append(local)
            cell = parent
        chain.reverse()
        return cell, chain

    def push_all(self, cell: int, locals_: list[int]) -> int:
        """The cell above `cell` that returns to each of some local states in turn."""
        for local in locals_:
            cell = self.push(cell, local)
        return cell

    def __len__(self) -> int:
        return self.table.size
