"""Walks of tries for one automaton: what a kernel call leaves to Python is filled in, then the walk goes on.

The words that a walk sets, and all else that it needs for a while, are a `Scratch` of the thread that walks.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from constrained.automaton import joining, stepping, tables, walk_items
from constrained.automaton.automaton import Automaton
from constrained.automaton.threads import Thread
from constrained.tokens.jit import address
from constrained.tokens.rows import Bits, Digest, Words
from constrained.tokens.trie import Trie

BRANCHES = 256  # that a node may have


Into = tuple[int, int, int, int]


class Onto:
    """Where the bits of a walk go: added to the row `base`, as far as bits are set in the row `under`.

    `into` is what kernels take of it, or they read it at the address `at`.
    """

    __slots__ = ("_record", "at", "base", "into", "under")

    def __init__(self, base: Bits, under: Bits) -> None:
        self.base, self.under = base, under
        self.into: Into = (base.at, under.at, *base.digest)
        self._record = np.array(self.into, np.int64)
        self.at = address(self._record)


class Walked(NamedTuple):
    """What a walk came to: the number of entries in its scratch, and the digest of the row that they make of its base.

    `keys` says where free keys ended, as (node, begun, earlier keys, cell); `left` how many of the open frames it left.
    """

    num_entries: int
    digest: Digest
    keys: list[list[int]]
    left: int


class Scratch:
    """What the kernels of one thread write over one vocabulary: bits, work items, noted keys, entries (`joining`).

    `words` uint32 [num_words] hold no bit between two uses.
    """

    def __init__(self, num_words: int, max_depth: int, secret: int) -> None:
        self.arena = tables.Arena()
        self.address = self.arena.address
        self.words: Words = np.zeros(max(num_words, 8), np.uint32)
        self.touched = np.zeros((len(self.words) >> tables.BLOCK_SHIFT) + 1, np.uint8)
        self.entries = np.zeros((num_words, 2), np.int32)
        self._stack = np.zeros((max_depth + 2, walk_items.ITEM_COLUMNS), np.int32)
        self._branches = np.empty(BRANCHES * (max_depth + 2), np.int32)
        self.arena.put(tables.WORDS, self.words)
        self.arena.put(tables.TOUCHED, self.touched)
        self.arena.put(tables.ENTRIES, self.entries)
        self.arena.put(tables.STACK, self._stack)
        self.arena.put(tables.BRANCHES, self._branches)
        self.wanted = np.zeros((walk_items.MAX_WANTED + 1, 2), np.int32)
        self.num_wanted = memoryview(self.wanted[0])
        self.arena.put(tables.WANTED, self.wanted)
        self.arena.set(tables.NUM_WORDS, num_words)
        self.arena.set(tables.SECRET, secret)
        self.reserve(512)

    def reserve(self, size: int) -> None:
        """Make room for so many items, and noted keys."""
        self.size = size
        self.items, self.pending = (np.zeros((size, walk_items.ITEM_COLUMNS), np.int32) for _ in range(2))
        self.waiting = memoryview(self.pending[0])
        self.keys = np.zeros((size, 4), np.int32)
        self.arena.put(tables.ITEMS, self.items)
        self.arena.put(tables.PENDING, self.pending)
        self.arena.put(tables.KEYS, self.keys)
        for slot in (tables.NUM_ITEMS, tables.NUM_PENDING, tables.NUM_KEYS):
            self.arena.set(slot, size)

    def clear(self) -> None:
        """Take all bits away."""
        self.words.fill(0)
        self.touched.fill(0)


class Scratches:
    """A scratch for each thread over one vocabulary; no trie that is walked is deeper than `max_depth`."""

    def __init__(self, num_words: int, max_depth: int, secret: int) -> None:
        self._size = (num_words, max_depth, secret)
        self._local = threading.local()

    def here(self) -> Scratch:
        """The scratch of this thread."""
        found: Scratch | None = getattr(self._local, "scratch", None)
        if found is None:
            found = self._local.scratch = Scratch(*self._size)
        return found


class Walker:
    """Walks for one automaton; the caller holds its lock."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton

    def from_node(
        self, scratch: Scratch, trie: Trie, thread: Thread, onto: Onto | None, *, keys: int = 0, cuts: int = 0
    ) -> Walked:
        """The row of all strings of a trie that lead on from a thread, which has closed `keys` free keys already.

        Without `onto` the bits are left in the scratch's words. `cuts` is where those of the trie are.
        """
        automaton, into = self._automaton, _NO_ROW if onto is None else onto.into
        own, cell = len(automaton.cells), thread[5]
        found = joining.walk_row(
            automaton.arena.address, scratch.address, trie.at, cuts, 0, 0, own, own, cell, 0, *thread, keys, *into
        )
        status, waiting, num_keys, _, left, num_entries, one, two = found
        if status != walk_items.FINISHED or waiting:
            return self._walk(scratch, trie.at, cuts, 0, cell, 0, thread, keys, into, found)
        return Walked(num_entries, (one, two), scratch.keys[:num_keys].tolist() if num_keys else _NO_KEYS, left)

    def from_items(self, scratch: Scratch, trie: Trie, count: int, own: int, into: Into, *, cuts: int = 0) -> Walked:
        """The same for the scratch's first `count` items; `own` is the cell of the state that they belong to."""
        return self._walk(scratch, trie.at, cuts, count, own, -1, _NOWHERE, 0, into)

    def _walk(
        self,
        scratch: Scratch,
        trie: int,
        cuts: int,
        count: int,
        own: int,
        node: int,
        thread: Thread,
        keys: int,
        into: Into,
        found: tuple[int, ...] | None = None,
    ) -> Walked:
        """`found` is what a first call of the kernel returned already."""
        automaton = self._automaton
        machine, here, own_cells = automaton.arena.address, scratch.address, len(automaton.cells)
        first = scratch.items[:count].copy() if count else None
        noted: list[list[int]] = []
        waiting, num_items, num_cells, at, left = 0, count, own_cells, node, 0
        while True:
            status, waiting, num_keys, num_cells, gone, num_entries, one, two = found or joining.walk_row(
                machine, here, trie, cuts, waiting, num_items, num_cells, own_cells, own, at, *thread, keys, *into
            )
            found = None
            if status != walk_items.FINISHED:  # begin again: bits that are set stay right
                self.grow(scratch, status)
                if first is not None:
                    scratch.items[:count] = first
                noted.clear()
                waiting, num_items, num_cells, at, left = 0, count, own_cells, node, 0
                continue
            if num_keys:
                noted += scratch.keys[:num_keys].tolist()
            if gone > left:
                left = gone
            if not waiting:
                return Walked(num_entries, (one, two), noted, left)
            self.fill_in(scratch, waiting)
            num_items, at = 0, -1

    def fill_in(self, scratch: Scratch, count: int) -> None:
        """Make what the first `count` pending items miss in the tables."""
        try:
            if count == 1:
                self._make(scratch.waiting[walk_items.WHY], scratch.waiting[walk_items.WHICH])
            else:
                for why, which in set(map(tuple, scratch.pending[:count, walk_items.WHY : walk_items.WHICH + 1].tolist())):
                    self._make(why, which)
        except BaseException:
            scratch.clear()
            raise

    def _make(self, why: int, which: int) -> None:
        if why == stepping.NEW_LOCAL:
            self._automaton.locals.resolve(which)
        elif why == stepping.NEW_KEY:
            self._automaton.locals.resolve_key(which)
        elif why == stepping.NEW_LEX:
            self._automaton.plain.resolve(which)
        else:
            self._automaton.contents.resolve(which)

    def grow(self, scratch: Scratch, status: int) -> None:
        """Make room for what a walk ran out of, or for so many items."""
        if status == walk_items.CELLS_FULL:
            self._automaton.cells.table.reserve(2 * len(self._automaton.cells.table.array))
        elif status in (walk_items.ITEMS_FULL, walk_items.PENDING_FULL, walk_items.KEYS_FULL):
            scratch.reserve(2 * scratch.size)
        else:
            scratch.reserve(2 * max(scratch.size, status))


_NOWHERE: Thread = (0, 0, 0, 0, 0, 0)
_NO_ROW: Into = (0, 0, 0, 0)
_NO_KEYS: list[list[int]] = []
