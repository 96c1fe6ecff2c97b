"""Walks of tries for one automaton: what a kernel call leaves to Python is filled in, then the walk goes on.

The words that a walk sets, and all else that it needs for a while, are a `Scratch` of the thread that walks.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import stepping, tables
from constrained.automaton.automaton import Automaton, Thread
from constrained.errors import InternalError
from constrained.tokens.rows import Words
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
BRANCHES = 256  # that a node may have


@dataclass(frozen=True, slots=True)
class Walked:
    """Where free keys ended, as (node, begun, earlier keys, cell); and how many of the frames that were open the walk left."""

    keys: list[list[int]]
    left: int


class Scratch:
    """What the kernels of one thread write over one vocabulary: bits, work items, noted keys, entries (`joining`).

    `words` uint32 [num_words] hold no bit between two uses.
    """

    def __init__(self, num_words: int, max_depth: int, secret: int) -> None:
        self.arena = tables.Arena()
        self.words: Words = np.zeros(max(num_words, 8), np.uint32)
        self.touched = np.zeros((len(self.words) >> tables.BLOCK_SHIFT) + 1, np.uint8)
        self.entry_at, self.entry_words = np.zeros(num_words, np.int32), np.zeros(num_words, np.int32)
        self._stack = np.zeros((max_depth + 2, stepping.ITEM_COLUMNS), np.int32)
        self._branches = np.empty(BRANCHES * (max_depth + 2), np.int32)
        self.arena.put(tables.WORDS, self.words)
        self.arena.put(tables.TOUCHED, self.touched)
        self.arena.put(tables.ENTRY_AT, self.entry_at)
        self.arena.put(tables.ENTRY_WORDS, self.entry_words)
        self.arena.put(tables.STACK, self._stack)
        self.arena.put(tables.BRANCHES, self._branches)
        self.arena.set(tables.NUM_WORDS, num_words)
        self.arena.set(tables.SECRET, secret)
        self.reserve(512)

    def reserve(self, size: int) -> None:
        """Make room for so many items, and noted keys."""
        self.size = size
        self.items, self.pending = (np.zeros((size, stepping.ITEM_COLUMNS), np.int32) for _ in range(2))
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

    def from_node(self, scratch: Scratch, trie: Trie, thread: Thread, node: int = 0, *, keys: int = 0) -> Walked:
        """Set the bits of all strings below a node that lead on from a thread, which has closed `keys` free keys already."""
        return self._walk(scratch, trie, 0, thread[5], node, thread, keys)

    def from_items(self, scratch: Scratch, trie: Trie, count: int, own: int) -> Walked:
        """The same for the scratch's first `count` items; `own` is the cell of the state that they belong to."""
        return self._walk(scratch, trie, count, own, -1, _NOWHERE, 0)

    def _walk(self, scratch: Scratch, trie: Trie, count: int, own: int, node: int, thread: Thread, keys: int) -> Walked:
        automaton = self._automaton
        machine, here, own_cells = automaton.arena.address, scratch.arena.address, automaton.cells.table.size
        first = scratch.items[:count].copy() if count else None
        noted: list[list[int]] = []
        num_items, num_cells, at, left = count, own_cells, node, 0
        while True:
            status, waiting, num_keys, num_cells, gone = stepping.walk(
                machine, here, trie.at, num_items, num_cells, own_cells, own, at, *thread, keys
            )
            if status != stepping.FINISHED:  # begin again: bits that are set stay right
                self._grow(scratch, status)
                if first is not None:
                    scratch.items[:count] = first
                noted.clear()
                num_items, num_cells, at, left = count, own_cells, node, 0
                continue
            left = max(left, gone)
            if num_keys:
                noted += scratch.keys[:num_keys].tolist()
            if not waiting:
                return Walked(noted, left) if noted or left else _NOTHING
            scratch.items[:waiting] = scratch.pending[:waiting]
            self.fill_in(scratch, waiting)
            num_items, at = waiting, -1

    def fill_in(self, scratch: Scratch, count: int) -> None:
        """Make what the first `count` pending items miss in the tables."""
        try:
            self._fill_in(set(map(tuple, scratch.pending[:count, stepping.WHY : stepping.WHICH + 1].tolist())))
        except BaseException:
            scratch.clear()
            raise

    def _fill_in(self, missing: set[tuple[int, ...]]) -> None:
        automaton = self._automaton
        for why, which in missing:
            if why == stepping.NEW_LOCAL:
                automaton.locals.resolve(which)
            elif why == stepping.NEW_KEY:
                automaton.locals.resolve_key(which)
            elif why == stepping.NEW_LEX:
                automaton.plain.resolve(which)
            else:
                automaton.contents.resolve(which)

    def _grow(self, scratch: Scratch, status: int) -> None:
        if status == stepping.CELLS_FULL:
            self._automaton.cells.table.reserve(2 * len(self._automaton.cells.table.array))
        elif status in (stepping.ITEMS_FULL, stepping.PENDING_FULL, stepping.KEYS_FULL):
            scratch.reserve(2 * scratch.size)
        else:
            raise InternalError(f"the mask walk ended with status {status}")


_NOWHERE: Thread = (0, 0, 0, 0, 0, 0)
_NOTHING = Walked([], 0)
