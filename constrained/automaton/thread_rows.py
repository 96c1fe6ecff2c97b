"""`ThreadRow`: the mask row of one thread with what its walk noted, and where such rows are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import row_kernels, tables, walk_items
from constrained.automaton.automaton import UNFILLED, Automaton, decode_content
from constrained.automaton.tables import (
    R_BASE,
    R_COUNT,
    R_FIRST,
    R_KEYS,
    R_ONE,
    R_TWO,
    ROW_COLUMNS,
    Counted,
    Table,
)
from constrained.automaton.vocabulary_tables import VocabularyTables
from constrained.tokens.rows import Bits, MaskRow, RowStore
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
_FIRST = 64  # rows that there is room for at first; a power of two, as the number of changes is
# A trie, a node of it, and the depth at which a key begins that ends there.
WholeKey = tuple[Trie, int, int]


class Notes:
    """What walks noted beside the bits, before any key is taken out.

    `whole` are keys of the thread's own frame that tokens spell from beginning to end; `places` are the nodes of tries below
    which all tokens have to be asked one by one, `asks` says that the answer depends on the item that is being read.
    """

    __slots__ = ("_keys", "_unsure", "asks", "places", "whole")

    def __init__(self, whole: list[WholeKey], places: list[tuple[Trie, int]], asks: bool) -> None:
        self.whole, self.places, self.asks = whole, places, asks
        self._keys: dict[bytes, list[Int32]] | None = None
        self._unsure: list[Int32] | None = None

    @classmethod
    def read(cls, trie: Trie, keys: list[list[int]], own: int) -> Notes:
        """From what one walk of a trie noted (`trie_walk.walk`) for a thread in the frame `own`."""
        whole: list[WholeKey] = []
        places, asks = [], False
        for node, begun, earlier, cell in keys:
            if begun < 0 and not earlier and cell == own:
                continue  # the open key: what it may not be is taken out with its prefix
            if earlier or begun < 0 or cell != own:
                asks |= earlier == walk_items.ASKED
                places.append((trie, node))
            else:
                whole.append((trie, node, begun))
        return cls(whole, places, asks) if whole or places else NOTHING

    @property
    def unsure(self) -> list[Int32]:
        """The tokens that have to be asked one by one."""
        if self._unsure is None:
            self._unsure = [trie.below(node) for trie, node in self.places]
        return self._unsure

    def keys(self) -> dict[bytes, list[Int32]]:
        """The tokens that hold a whole key, by its content."""
        if self._keys is None:
            self._keys = {}
            for trie, node, begun in self.whole:
                self._keys.setdefault(_content(trie, node, begun), []).append(trie.below(node))
        return self._keys

    def beside(self, other: Notes) -> Notes:
        """What was noted of two parts of a row."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Notes(self.whole + other.whole, self.places + other.places, self.asks or other.asks)


class ThreadRow(NamedTuple):
    """The row of one thread, as far as its notes do not take tokens out."""

    row: MaskRow
    notes: Notes


class Rows:
    """The mask rows of the threads of one automaton, over one vocabulary: found by `row_kernels`, kept in tables.

    A row is kept as the words in which it differs from one that is shared, and found again for each thread that differs only in
    frames which none of its tokens leaves. `words` are the shared ones, by their addresses. The caller holds the lock of the
    automaton.
    """

    def __init__(self, automaton: Automaton, shared: VocabularyTables, store: RowStore) -> None:
        self._automaton, self._shared, self._store = automaton, shared, store
        self.machine = storage = automaton.arena
        self._rows = Counted(2 * ROW_COLUMNS, _FIRST, storage, (tables.ROWS, tables.ROWS_TAKEN, tables.MAX_ROWS))
        self._index = Table(1, _FIRST, storage)
        self._index.enter(storage, tables.ROW_INDEX)
        slots = (tables.CHANGES, tables.CHANGES_TAKEN, tables.MAX_CHANGES)
        self._changes = Counted(2, UNFILLED // 2, storage, slots, is_filled=False)
        self.words: dict[int, Bits | MaskRow] = {}
        self.notes: dict[int, Notes] = {}
        self._mask_rows: dict[int, MaskRow] = {}

    def make_room(self) -> None:
        """After `ROWS_FULL`: room for more rows, or for as many changes as were asked for."""
        if self._rows.size == self._rows.capacity:
            self._rows.reserve(1)
            self._index.clear(self._rows.capacity)
            row_kernels.index_rows(self.machine.address, self._shared.at)
        else:
            self._changes.reserve(max(self.machine.slots[tables.WHICH_ONE], self._changes.size))

    def num_keys(self, row: int) -> int:
        """How many keys the walks of a row noted."""
        return int(self._rows.array[row].view(np.int64)[R_KEYS])

    def mask_row(self, row: int) -> MaskRow:
        """A row as others see it."""
        found = self._mask_rows.get(row)
        if found is None:
            record = self._rows.array[row].view(np.int64).tolist()
            digest = record[R_ONE], record[R_TWO]
            base = self.words.get(record[R_BASE]) or self._shared.bits[record[R_BASE]]
            changes = self._changes.array[record[R_FIRST] : record[R_FIRST] + record[R_COUNT]]
            found = self._mask_rows[row] = self._store.find(digest) or self._store.put(digest, base, changes)
        return found

    def __len__(self) -> int:
        return self._rows.size


@lru_cache(4096)
def _content(trie: Trie, node: int, begun: int) -> bytes:
    """The key that ends at a node of a trie of tokens and begins at depth `begun`."""
    return decode_content(trie.path(node)[begun:-1])


NOTHING = Notes([], [], False)
