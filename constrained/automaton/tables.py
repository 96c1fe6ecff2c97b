"""The tables that the kernel steps through, grown by Python as places of the automaton are first met.

Rows are over byte classes: JSON's structural bytes, digits, the letters of its literals and whitespace each have a class;
class 0 is every other byte, which leads nowhere outside strings. Column 0 of a row is therefore free and holds a flag.
"""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings
from constrained.tokens.jit import address, int32_array, int32_table, kernel, uint8_array

Int32 = NDArray[np.int32]

CLASS_BYTES = b'{}[],:"0123456789-+.eE \t\n\rtrufalsn'
NUM_CLASSES = len(CLASS_BYTES) + 1
BYTE_CLASS = np.zeros(256, np.uint8)
for _index, _byte in enumerate(CLASS_BYTES):
    BYTE_CLASS[_byte] = _index + 1
CLASS_OF_BYTE = BYTE_CLASS.tolist()

# Column 0 of a lexeme row: may the lexeme end here without reading on? A VALUE that ends may have a gap behind it; one that is
# WHOLE cannot go on: where it is read, the place behind it is reached.
UNRESOLVED, NO, YES, VALUE, WHOLE = -1, 0, 1, 2, 3
ENDED = 0  # the lexeme behind every literal, which is WHOLE

# Columns of the local table: the lexeme before it; where its tags are (-1: it reads no key); whether the document may end; its
# row of edges (UNRESOLVED: not made yet), which others may share; what stands `BEHIND` it; between which tags of names a key
# may end there.
ENTRY, TAGS, DONE, ROW, AFTER, LOW, HIGH = range(7)
ANY_TAG = 1 << 30
# What the table of tags holds where no key may end; what is less is a place that is not made yet (`Locals.resolve_key`).
NOWHERE = -1
# Columns of the edge table.
KIND, LEX, NEED, ROOM, LOCAL, RETURN, NEXT = range(7)
# A local state of an edge: that in the column AFTER of the local state which takes it.
BEHIND = -2
# ASK goes on like GOTO, but where to depends on the item just read: Python decides, and LOCAL leads wherever any value could.
GOTO, PUSH, POP, ASK = range(4)
# Columns of the cell table: DEPTH is how many frames are open; the last cell above this one, and the one before it
# above the same (of those without free keys).
PARENT, RETURN_LOCAL, DEPTH, CHILD, SIBLING = range(5)
# Columns of the table of threads: the thread; the number of its mask row (-1: not known yet); `DONE_HERE` and `KEEPS_TEXT`.
T_LEX, T_ESC, T_NEED, T_ROOM, T_LOCAL, T_CELL, T_ROW, T_FLAGS = range(8)
DONE_HERE, KEEPS_TEXT = 1, 2
LOCAL_COLUMNS, EDGE_COLUMNS, CELL_COLUMNS, THREAD_COLUMNS = 7, 7, 5, 8
# Columns of the table of mask rows (int64): the address of the words that a row is made from; its changes; how many frames it
# looks below; its digest; a thread that it is the row of; the row before it at the same place of the index; how many keys end.
R_BASE, R_FIRST, R_COUNT, R_LEFT, R_ONE, R_TWO, R_THREAD, R_BEFORE, R_KEYS = range(9)
ROW_COLUMNS = 9

# Slots of an arena: the tables of an automaton; or the scratch of its kernels, with what fits in.
PLAIN, LOCAL_ROWS, LOCALS, EDGES, TAG_ROWS, TRIES, LANGUAGES, RANGES, CELLS = range(9)
STACK, BRANCHES, ITEMS, PENDING, KEYS, WORDS, TOUCHED, ENTRIES, WANTED = range(10, 19)
NUM_CELLS, NUM_ITEMS, NUM_PENDING, NUM_KEYS, NUM_WORDS, SECRET = range(19, 25)
# Of an automaton: what it knows of single threads and of their rows (`threads`, `row_kernels`), each table with how many rows
# are taken and how many there are.
CELLS_TAKEN, THREADS, THREADS_TAKEN, MAX_THREADS, THREAD_INDEX, INDEX_SIZE = range(25, 31)
ROWS, ROWS_TAKEN, MAX_ROWS, ROW_INDEX, CHANGES, CHANGES_TAKEN, MAX_CHANGES = range(31, 38)
# What a call of a kernel left to be read: which row or place it is about, and how many keys it noted before its second walk.
WHICH_ONE, FIRST_NOTED, NUM_SLOTS = range(38, 41)
# Slots of what the grammars of a vocabulary share (`vocabulary_tables`): its tries and shortcuts; what is known of lexemes
# outside strings, by their position; the numbers' exits and bits; the place inside a free string; the tokens' bytes; which
# nodes of the trie a quote follows, at once or later.
V_TRIE, V_ALONE, V_STRIPPED, V_NOTHING, V_KINDS, V_NUM_KINDS, V_GAPS, V_EXITS, V_BITS = range(9)
V_FREE, V_SUFFIXES, V_LONGEST, V_EOS, V_NUM_EOS, V_TOKENS, V_STARTS, V_QUOTED = range(9, 17)
V_CUTS, NUM_V_SLOTS = 17, 21  # four of them: all, without text, without numbers, without both
# What a lexeme outside strings is to a mask row: not known yet; a gap; a value, that may end here or not; to be walked.
UNKNOWN_KIND, GAP_KIND, VALUE_KIND, ENDING_KIND, WALKED_KIND = range(-1, 4)
# Columns of the table of kinds: the kind; of a value its exits and bits; which of the common numbers goes on there behind a
# first digit from 1 to 9, -1 if none.
K_KIND, K_EXITS, K_EXITS_STOP, K_BITS, K_BITS_STOP, K_NUMBER = range(6)
KIND_COLUMNS = 6
# Columns of the table of gaps: where bits go (`walking.Onto`), where text may follow in the odd ones; from the third on where
# one of the common numbers may follow.
MAX_NUMBERS = 7
GAP_COLUMNS = 2 + 2 * MAX_NUMBERS
# Slots of a trie of tokens (`tokens.trie.Trie.slots`).
T_END, T_DEPTH, T_FIRST, T_IDS, T_EDGE_FIRST, T_EDGE_BYTE, T_EDGE_NODE = range(7)
# Slots of shortcuts (`cuts`): the first at each node; all of them; their bits (place, word); their exits (node, kind, and the
# bytes that lead there); those bytes.
CUT_INDEX, CUT_SPANS, CUT_BITS, CUT_EXITS, CUT_PATHS, NUM_CUT_SLOTS = range(6)
EXIT_COLUMNS = 4
C_LEX, C_NEXT, C_BITS, C_BITS_STOP, C_EXITS, C_EXITS_STOP, C_LONGEST, CUT_COLUMNS = range(8)
# How a token leads out of what a shortcut holds: before its next byte, at a quote, at a backslash.
INSIDE, AT_QUOTE, AT_BACKSLASH = range(3)
# Of each so many words of a scratch is said whether bits were added to those of a row, or the row's were copied and changed.
BLOCK_SHIFT = 5
ADDED, REPLACED = 1, 2


class Arena:
    """The addresses of all that kernels read and write, so that a call of one takes integers alone (`address`).

    Slots name what is there (`Slot`); whoever puts an array there keeps it alive.
    """

    def __init__(self, size: int = NUM_SLOTS) -> None:
        slots = np.zeros(size, np.int64)
        self.slots: memoryview[int] = memoryview(slots)  # type: ignore[arg-type]  # numpy's stubs hide the buffer
        self.address = address(slots)

    def put(self, slot: int, array: NDArray[Any]) -> None:
        """Let a slot name an array."""
        self.slots[slot] = address(array)

    def set(self, slot: int, number: int) -> None:
        """Let a slot hold a number."""
        self.slots[slot] = number


class Storage(Arena):
    """An arena with the memory of a new automaton: `size` cells for the first rows of its tables, of -1, and `unfilled` ones.

    Most grammars need no more. All is taken at once, and filled by one copy: an automaton is made among cold caches.
    """

    def __init__(self, size: int, unfilled: int = 0) -> None:
        blank = _blank(size)
        stop = len(blank)
        block = np.empty(stop + unfilled, np.int32)
        self._cells: memoryview[int] = memoryview(block)  # type: ignore[arg-type]  # numpy's stubs hide the buffer
        self._cells[:stop] = blank
        self._taken, self._stop = 2 * NUM_SLOTS, stop
        self.slots = self._cells[: 2 * NUM_SLOTS].cast("B").cast("q")
        self.address = address(block)

    def take(self, size: int) -> tuple[memoryview[int], int]:
        """So many cells, and their address, a multiple of eight; from elsewhere where they do not fit."""
        first = self._taken
        after = first + size + (size & 1)
        if after > self._stop:
            return _blank_cells(size)
        self._taken = after
        return self._cells[first : first + size], self.address + 4 * first

    def rest(self) -> tuple[memoryview[int], int]:
        """The unfilled cells, and their address."""
        return self._cells[self._stop :], self.address + 4 * self._stop


@cache
def _blank(size: int) -> memoryview[int]:
    """What a storage holds at first."""
    block = np.full(2 * NUM_SLOTS + size + (size & 1), -1, np.int32)
    block[: 2 * NUM_SLOTS] = 0
    return _flat(block)


def _blank_cells(size: int) -> tuple[memoryview[int], int]:
    block = np.full(size, -1, np.int32)
    return _flat(block), address(block)


class Table:
    """An int32 table [rows, columns] that grows by doubling; `array` is its present storage, `at` the address of that.

    `cells` is the same, a flat memoryview: one cell is read and written several times as fast as through numpy. Arenas that
    name the table learn of each move. Former storage is kept: a kernel of another thread may still read it.
    """

    size = 0
    _array: Int32 | None = None
    _former: tuple[memoryview[int], ...] = ()
    # Where the table is named: slots, which one, and which holds the number of rows (-1: none).
    _named: tuple[tuple[memoryview[int], int, int], ...] = ()

    def __init__(self, columns: int, capacity: int = 64, storage: Storage | None = None) -> None:
        size = columns * capacity
        self.cells, self.at = _blank_cells(size) if storage is None else storage.take(size)
        self.columns, self.capacity = columns, capacity

    @property
    def array(self) -> Int32:
        """The present storage, [capacity, columns]."""
        if self._array is None:
            self._array = np.asarray(self.cells, np.int32).reshape(self.capacity, self.columns)
        return self._array

    def enter(self, arena: Arena, slot: int, rows_slot: int = -1) -> None:
        """Let a slot of an arena name this table, now and whenever it moves, and another hold its number of rows.

        The table keeps the arena's memory.
        """
        slots = arena.slots
        self._named += ((slots, slot, rows_slot),)
        slots[slot] = self.at
        if rows_slot >= 0:
            slots[rows_slot] = self.capacity

    def _tell(self) -> None:
        for slots, slot, rows_slot in self._named:
            slots[slot] = self.at
            if rows_slot >= 0:
                slots[rows_slot] = self.capacity

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more rows."""
        if self.size + extra > self.capacity:
            grown = np.empty((max(2 * self.capacity, self.size + extra), self.columns), np.int32)
            grown[: self.capacity] = self.array  # the kernel may hold scratch rows past `size`
            grown[self.capacity :] = -1
            self._former += (self.cells,)
            self._array, self.cells, self.capacity = grown, _flat(grown), len(grown)
            self.at = address(grown)
            self._tell()

    def clear(self, num_rows: int) -> None:
        """Have so many rows of -1 in place of those that there are."""
        self.size = self.capacity
        self.reserve(num_rows - self.capacity)
        self.array.fill(-1)
        self.size = 0

    def add(self, row: Sequence[int] | None = None) -> int:
        """Append a row (all -1 where none is given) and return its index."""
        at = self.size
        if at >= self.capacity:
            self.reserve(1)
        if row is not None:
            place = at * self.columns
            for value in row:
                self.cells[place] = value
                place += 1
        self.size = at + 1
        return at

    def extend(self, values: Sequence[int]) -> None:
        """Append whole rows, given one after the other."""
        num_rows = len(values) // self.columns
        self.reserve(num_rows)
        place = self.size * self.columns
        self.cells[place : place + len(values)] = array("i", values)
        self.size += num_rows


class Shared(Table):
    """A table that outlives the automata which read it: it learns of arenas that come, and forgets those that went."""

    def __init__(self, columns: int, capacity: int = 64) -> None:
        super().__init__(columns, capacity)
        self._lock = threading.Lock()
        self._readers: list[tuple[weakref.ref[Arena], int]] = []
        self._most_readers = 64

    def lend(self, arena: Arena, slot: int) -> None:
        """Let a slot of an arena name this table, now and, as long as there is the arena, whenever it moves."""
        with self._lock:
            self._readers.append((weakref.ref(arena), slot))
            arena.slots[slot] = self.at
            if len(self._readers) > self._most_readers:
                self._readers = [reader for reader in self._readers if reader[0]() is not None]
                self._most_readers = 64 + 2 * len(self._readers)

    def _tell(self) -> None:
        super()._tell()
        with self._lock:
            for reference, slot in self._readers:
                if (arena := reference()) is not None:
                    arena.slots[slot] = self.at


class Counted(Table):
    """A table to which kernels add rows: an arena holds how many there are, beside where it is and how many fit in."""

    def __init__(
        self, columns: int, capacity: int, storage: Storage, slots: tuple[int, int, int], *, is_filled: bool = True
    ) -> None:
        at, self._taken, most = slots
        self._counts = counts = storage.slots
        self.columns, self.capacity = columns, capacity
        self.cells, self.at = storage.take(columns * capacity) if is_filled else storage.rest()
        self._named = ((counts, at, most),)
        counts[at], counts[most] = self.at, capacity

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self._counts[self._taken]

    @size.setter
    def size(self, size: int) -> None:
        self._counts[self._taken] = size


def _flat(table: Int32) -> memoryview[int]:
    return memoryview(table.reshape(-1))  # type: ignore[arg-type]  # numpy's stubs hide the buffer


_BETWEEN = 0xFF  # no byte of UTF-8
_SEPARATOR = "\udcff"  # is that byte, with surrogates escaped


class StringTries:
    """The tries of names and enum values of one grammar, all in one table (columns of `automaton.strings`)."""

    def __init__(self, storage: Storage) -> None:
        self.table = Table(strings.TRIE_COLUMNS, 256, storage)

    def add(self, tags: Iterable[tuple[str, int]], *, fallback: bool) -> int:
        """Lex id of the root of a new trie of strings with tags; `fallback` lets every other string in (`FREE_TAG`)."""
        pairs = sorted(tags)  # code points are in the order of their bytes
        flat = _SEPARATOR.join([text for text, _ in pairs]).encode("utf-8", "surrogateescape")
        # The kernel reads them behind all rows that it may write.
        table, size, count = self.table, len(flat), len(pairs)
        root, num_words = table.size, (size + 3) // 4
        table.reserve(size + 1 + (num_words + count) // strings.TRIE_COLUMNS + 1)
        words = (root + size + 1) * strings.TRIE_COLUMNS
        given = array("i", flat + bytes(4 * num_words - size))
        given.extend([tag for _, tag in pairs])
        table.cells[words : words + len(given)] = given
        table.size = root + _names(table.at, root, words, size, count, int(fallback))
        return strings.TRIE | root

    def part(self, lex: int, first: int, last: int) -> int:
        """Lex id of a new trie of those strings of the trie at the root `lex` whose tags are from `first` to `last` alone."""
        table, root = self.table, lex & strings.INDEX
        made = table.size
        table.reserve(table.cells[root * strings.TRIE_COLUMNS + strings.END] - root)
        table.size = made + _part(table.at, root, first, last, made)
        return strings.TRIE | made


@kernel
def _names(address, root, words, size, count, fallback):  # type: ignore[no-untyped-def]  # numba
    """Write the trie of `count` sorted strings into a table from row `root` on; returns the number of its nodes.

    From the cell `words` on the table holds `size` bytes, the strings with a `_BETWEEN` after each but the last; then tags.
    """
    table = int32_table(address, strings.TRIE_COLUMNS)
    flat, numbers = uint8_array(address + 4 * words), int32_array(address + 4 * (words + (size + 3) // 4))
    path = np.zeros(size + 1, np.int64)
    _start_name(table, root, 0, 0, fallback)
    path[0] = root
    node, open_len, before, start = root, 0, 0, 0
    for i in range(count):
        stop = start
        while stop < size and flat[stop] != _BETWEEN:
            stop += 1
        length, common = stop - start, 0
        if i > 0:
            limit = min(length, open_len)
            while common < limit and flat[before + common] == flat[start + common]:
                common += 1
        for level in range(open_len, common, -1):
            table[path[level], strings.END] = node + 1
        for level in range(common + 1, length + 1):
            node += 1
            byte, state = flat[start + level - 1], table[path[level - 1], strings.UTF8_STATE]
            state = 0 if state == 0 and byte < 0x80 else strings.UTF8[state, byte]
            _start_name(table, node, byte, state, fallback)
            path[level] = node
        table[path[length], strings.TAG] = numbers[i]
        open_len, before, start = length, start, stop + 1
    for level in range(open_len, -1, -1):
        table[path[level], strings.END] = node + 1
    return node + 1 - root


@kernel
def _part(address, root, first, last, at):  # type: ignore[no-untyped-def]  # numba
    """Copy what of a trie leads to tags from `first` to `last`, to row `at`; returns the number of nodes."""
    table = int32_table(address, strings.TRIE_COLUMNS)
    size = table[root, strings.END] - root
    tags, copied = np.zeros(size + 1, np.int32), np.zeros(size + 1, np.int32)  # of each node, how many came before it
    for i in range(size):
        tags[i + 1] = tags[i] + (1 if first <= table[root + i, strings.TAG] <= last else 0)
    for i in range(size):
        leads_on = i == 0 or tags[table[root + i, strings.END] - root] > tags[i]
        copied[i + 1] = copied[i] + (1 if leads_on else 0)
    for i in range(size):
        if copied[i + 1] > copied[i]:
            node = at + copied[i]
            for column in range(strings.TRIE_COLUMNS):
                table[node, column] = table[root + i, column]
            table[node, strings.END] = at + copied[table[root + i, strings.END] - root]
            table[node, strings.FALLBACK] = 0
            if tags[i + 1] == tags[i]:
                table[node, strings.TAG] = strings.NO_TAG
    return copied[size]


@kernel
def _start_name(table, node, byte, state, fallback):  # type: ignore[no-untyped-def]  # numba
    table[node, strings.BYTE] = byte
    table[node, strings.TAG] = strings.NO_TAG
    table[node, strings.UTF8_STATE] = state
    table[node, strings.FALLBACK] = fallback
