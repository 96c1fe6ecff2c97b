"""Stack cells: one per open frame, interned, so that equal stacks are one integer.

A cell is (parent cell, local state to return to, free keys seen so far in its frame). Its *shape* leaves out the keys:
mask rows are shared by shape, and the keys are taken out of a row afterwards.
"""

from __future__ import annotations

from constrained.automaton.tables import PARENT, RETURN_LOCAL, Table

BOTTOM = 0
NO_KEYS: frozenset[bytes] = frozenset()


class Cells:
    """All cells of one automaton. The kernel reads `table`, and writes scratch cells past its end."""

    def __init__(self) -> None:
        self.table = Table(2, 1024)
        self.seen: list[frozenset[bytes]] = []
        self.shape: list[int] = []
        self._index: dict[tuple[int, int, frozenset[bytes]], int] = {}
        self.push(-1, -1)

    def push(self, parent: int, local: int, seen: frozenset[bytes] = NO_KEYS) -> int:
        """The cell above `parent` that returns to `local`."""
        key = (parent, local, seen)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = self.table.add((parent, local))
            self.seen.append(seen)
            plain = (self.shape[parent], local, NO_KEYS) if parent >= 0 else key
            self.shape.append(found if plain == key else self.push(*plain))
        return found

    def with_key(self, cell: int, content: bytes) -> int:
        """The same frame after one more free key."""
        return self.push(self.parent(cell), self.local(cell), self.seen[cell] | {content})

    def parent(self, cell: int) -> int:
        """The cell below."""
        return int(self.table.array[cell, PARENT])

    def local(self, cell: int) -> int:
        """The local state that the frame returns to."""
        return int(self.table.array[cell, RETURN_LOCAL])

    def adopt(self, cell: int, scratch: int) -> int:
        """The interned cell for one that the kernel made: cells from `scratch` on are the kernel's."""
        chain: list[int] = []
        while cell >= scratch:
            chain.append(self.local(cell))
            cell = self.parent(cell)
        for local in reversed(chain):
            cell = self.push(cell, local)
        return cell

    def __len__(self) -> int:
        return self.table.size
