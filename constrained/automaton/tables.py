"""The tables that the kernel steps through, grown by Python as places of the automaton are first met.

Rows are over byte classes: JSON's structural bytes, digits, the letters of its literals and whitespace each have a class;
class 0 is every other byte, which leads nowhere outside strings. Column 0 of a row is therefore free and holds a flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings
from constrained.tokens.jit import kernel
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]

CLASS_BYTES = b'{}[],:"0123456789-+.eE \t\n\rtrufalsn'
NUM_CLASSES = len(CLASS_BYTES) + 1
BYTE_CLASS = np.zeros(256, np.uint8)
for _index, _byte in enumerate(CLASS_BYTES):
    BYTE_CLASS[_byte] = _index + 1

# Column 0 of a lexeme row: may the lexeme end here without reading on? A VALUE that ends may have a gap behind it.
# Column 0 of a local row: is the row filled?
UNRESOLVED, NO, YES, VALUE = -1, 0, 1, 2

# Columns of the local table.
ENTRY, TAGS, DONE = range(3)
# Columns of the edge table.
KIND, LEX, NEED, ROOM, LOCAL, RETURN, NEXT = range(7)
# ASK goes on like GOTO, but where to depends on the item just read: Python decides, and LOCAL leads wherever any value could.
GOTO, PUSH, POP, ASK = range(4)
# Columns of the cell table.
PARENT, RETURN_LOCAL = range(2)


class Table:
    """An int32 table [rows, columns] that grows by doubling; `array` is its present storage."""

    def __init__(self, columns: int, capacity: int = 64) -> None:
        self.array: Int32 = np.full((capacity, columns), -1, np.int32)
        self.size = 0

    def copy(self) -> Table:
        """An independent copy."""
        twin = Table(0, 0)
        twin.array, twin.size = self.array.copy(), self.size
        return twin

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more rows."""
        if self.size + extra > len(self.array):
            grown = np.full((max(2 * len(self.array), self.size + extra), self.array.shape[1]), -1, np.int32)
            grown[: len(self.array)] = self.array  # the kernel may hold scratch rows past `size`
            self.array = grown

    def add(self, row: Sequence[int] | None = None) -> int:
        """Append a row (all -1 where none is given) and return its index."""
        self.reserve(1)
        if row is not None:
            self.array[self.size, : len(row)] = row
        self.size += 1
        return self.size - 1


class StringTries:
    """The tries of names and enum values of one grammar, all in one table (columns of `automaton.strings`)."""

    def __init__(self) -> None:
        self.table = Table(5)

    def add(self, tags: Iterable[tuple[str, int]], *, fallback: bool) -> int:
        """Lex id of the root of a new trie of strings with tags; `fallback` lets every other string in (`FREE_TAG`)."""
        texts, numbers = zip(*tags, strict=True) if (tags := list(tags)) else ((), ())
        trie = Trie.build([text.encode() for text in texts], keep_empty=True)
        root, count = self.table.size, len(trie.byte)
        self.table.reserve(count)
        block = self.table.array[root : root + count]
        block[:, strings.BYTE] = trie.byte
        block[:, strings.END] = trie.end + root
        block[:, strings.TAG] = strings.NO_TAG
        block[:, strings.FALLBACK] = int(fallback)
        block[:, strings.UTF8_STATE] = _utf8_states(trie.byte, trie.depth, trie.max_depth)
        ends = np.flatnonzero(trie.first[1:] > trie.first[:-1])
        block[ends, strings.TAG] = np.asarray(numbers, np.int32)[trie.ids[trie.first[ends]]] if len(ends) else 0
        self.table.size += count
        return strings.TRIE | root


@kernel
def _utf8_states(byte, depth, max_depth):  # type: ignore[no-untyped-def]  # numba
    """The state of `strings.UTF8` at each node of a trie."""
    states = np.zeros(len(byte), np.int32)
    parents = np.zeros(max_depth + 1, np.int32)
    for node in range(1, len(byte)):
        state = states[parents[depth[node] - 1]]
        if state != 0 or byte[node] >= 0x80:
            states[node] = strings.UTF8[state, byte[node]]
        parents[depth[node]] = node
    return states
