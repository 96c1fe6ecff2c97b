"""`ThreadRow`: the mask row of one thread with what its walk noted, and where such rows are kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import row_kernels, tables
from constrained.automaton.automaton import Automaton, decode_content
from constrained.automaton.tables import R_BASE, R_COUNT, R_FIRST, R_KEYS, R_ONE, R_TWO, ROW_COLUMNS, Counted, Storage, Table
from constrained.automaton.vocabulary_tables import VocabularyTables
from constrained.automaton.walking import Scratch, Walked
from constrained.tokens.rows import Bits, MaskRow, RowStore
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
_FIRST, _FIRST_CHANGES = 64, 1024  # rows and changes that there is room for at first; both powers of two
# A trie whose strings are tokens without the bytes that they begin with (b"", None: any), a node of it, where a key begins.
WholeKey = tuple[Trie, "bytes | None", int, int]


class Notes:
    """What walks noted beside the bits, before any key is taken out.

    `whole` are keys of the thread's own frame that tokens spell from beginning to end (see `_whole_key`);
    `unsure` are tokens that have to be asked one by one, `asks` says that the answer depends on the item that is being read.
    """

    __slots__ = ("_keys", "asks", "unsure", "whole")

    def __init__(self, whole: list[WholeKey], unsure: list[Int32], asks: bool) -> None:
        self.whole, self.unsure, self.asks = whole, unsure, asks
        self._keys: dict[bytes, list[Int32]] | None = None

    def keys(self, token_bytes: list[bytes]) -> dict[bytes, list[Int32]]:
        """The tokens that hold a whole key, by its content; read off them when first asked for."""
        if self._keys is None:
            self._keys = {}
            for place in self.whole:
                content, tokens = _whole_key(token_bytes, *place)
                self._keys.setdefault(content, []).append(tokens)
        return self._keys

    def beside(self, other: Notes) -> Notes:
        """What was noted of two parts of a row."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Notes(self.whole + other.whole, self.unsure + other.unsure, self.asks or other.asks)


class ThreadRow(NamedTuple):
    """The row of one thread, as far as its notes do not take tokens out."""

    row: MaskRow
    notes: Notes


class Rows:
    """The mask rows of the threads of one automaton, over one vocabulary: found by `row_kernels`, kept in tables.

    A row is kept as the words in which it differs from one that is shared, and found again for each thread that differs only in
    frames which none of its tokens leaves. `words` are the shared ones, by their addresses. The caller holds the lock of the automaton.
    """

    def __init__(self, automaton: Automaton, shared: VocabularyTables, store: RowStore) -> None:
        self._automaton, self._shared, self._store = automaton, shared, store
        self.machine = arena = automaton.arena
        storage = Storage((2 * ROW_COLUMNS + 1) * _FIRST + 2 * _FIRST_CHANGES)
        self._rows = Counted(2 * ROW_COLUMNS, _FIRST, storage, arena, (tables.ROWS, tables.ROWS_TAKEN, tables.MAX_ROWS))
        self._index = Table(1, _FIRST, storage)
        self._index.enter(arena, tables.ROW_INDEX)
        self._changes = Counted(2, _FIRST_CHANGES, storage, arena, (tables.CHANGES, tables.CHANGES_TAKEN, tables.MAX_CHANGES))
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
            self._changes.reserve(self.machine.slots[tables.WHICH_ONE])

    def keep(self, scratch: Scratch, number: int, base: MaskRow, walked: Walked) -> int:
        """Keep the row of a thread that is `base` but for the entries of a walk; its number."""
        self.words[base.at] = base
        found, keys = (base.at, walked.num_entries, walked.left, len(walked.keys), *walked.digest), self.machine.address
        while (row := row_kernels.keep_row(keys, scratch.address, self._shared.at, number, *found)) == row_kernels.ROWS_FULL:
            self.make_room()
        return self.machine.slots[tables.WHICH_ONE] if row == row_kernels.NOTED else int(row)

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


def _whole_key(token_bytes: list[bytes], trie: Trie, stripped: bytes | None, node: int, begun: int) -> tuple[bytes, Int32]:
    """The key that ends at a node of a trie and begins at depth `begun`, and the tokens that spell it."""
    tokens = trie.ids[trie.first[node] : trie.first[trie.end[node]]]
    text = token_bytes[int(tokens[0])]
    text = text.lstrip(stripped) if stripped else text
    return decode_content(text[begun : int(trie.depth[node]) - 1]), tokens


NOTHING = Notes([], [], False)
