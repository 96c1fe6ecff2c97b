"""Ways to read a document that differ in nothing but what comes behind an open value, made one.

Each value that can be read in several ways multiplies the threads of those inside it: with each level there would be more. The
thread that stands for them returns to `Either` of their local states, and becomes several again where that value ends. Before
a value the same is done for those that ask the same of it: a value of many readings would multiply each of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.cells import BOTTOM, Cells
from constrained.automaton.frames import ArrayNext, Either, ObjectNext, Value
from constrained.automaton.locals import Locals
from constrained.automaton.tables import DEPTH, PARENT, RETURN_LOCAL
from constrained.automaton.threads import Thread
from constrained.grammar.shapes import NodeKey

Int64 = NDArray[np.int64]

# From how many threads on that is looked at; how many frames down from the uppermost: one token opens few, and those below
# were looked at before.
MANY, FRAMES = 48, 6


def merged(threads: list[Thread], cells: Cells, locals_: Locals) -> list[Thread]:
    """The same threads, where such as differ in nothing but where one of their frames returns to are one."""
    threads = _at_values(threads, locals_)
    tops: dict[tuple[int, ...], int] = {}
    stacks = _Stacks(
        np.array([tops.setdefault(thread[:5], len(tops)) for thread in threads], np.int64),
        np.array([thread[5] for thread in threads], np.int64),
        cells,
        locals_,
    )
    stacks.merge()
    above = list(tops)
    return [(*above[top], cell) for top, cell in zip(stacks.tops.tolist(), stacks.stacks.tolist(), strict=True)]


def _at_values(threads: list[Thread], locals_: Locals) -> list[Thread]:
    """Threads before or in a value that differ in nothing but what comes behind it, made one."""
    found: dict[Thread, None] = {}
    alike: dict[tuple[tuple[int, int, int, int], int, NodeKey | None], list[int]] = {}
    places: dict[int, tuple[NodeKey | None, int]] = {}
    for thread in threads:
        lex, esc, need, room, local, cell = thread
        if local not in places:
            places[local] = _place(local, locals_)
        node, behind = places[local]
        if behind < 0:
            found[thread] = None
        else:
            alike.setdefault(((lex, esc, need, room), cell, node), []).append(local)
    for ((lex, esc, need, room), cell, _), those in alike.items():
        local = _either(those, locals_, [places[place][1] for place in those])
        found[lex, esc, need, room, local, cell] = None
    return list(found)


def _place(local: int, locals_: Locals) -> tuple[NodeKey | None, int]:
    """What a value that comes next must meet (None where one is being read, or has ended), and what comes behind it.

    -1 where that depends on the value, or it is no such place.
    """
    match here := locals_.state(local):
        case Value():
            return here.node, here.after if locals_.may_be_either(here.after) else -1
        case ObjectNext() | ArrayNext() | Either():
            return None, local if locals_.may_be_either(local) else -1
    return None, -1


def _either(those: list[int], locals_: Locals, behind: list[int]) -> int:
    """The local state that stands for some that differ in what is behind a value."""
    if len(set(those)) == 1:
        return those[0]
    here, either = locals_.state(those[0]), locals_.either(behind)
    return locals_.index(replace(here, after=either)) if isinstance(here, Value) else either


class _Stacks:
    """The stacks of some threads, [n], beside what is above each (`tops`): merged in place, the lowest frames first."""

    def __init__(self, tops: Int64, stacks: Int64, cells: Cells, locals_: Locals) -> None:
        self.tops, self.stacks = tops, stacks
        self._cells, self._locals = cells, locals_
        self._seen = np.fromiter(cells.seen, np.int64, len(cells.seen))

    def merge(self) -> None:
        """Merge those that differ in nothing but where one of their frames returns to."""
        num_frames = min(FRAMES, int(self._cells.table.array[self.stacks, DEPTH].max(initial=0)))
        alike = [self.tops]  # by level: a number for all that is above a frame
        for level in range(num_frames - 1):
            cell = self._at(level)
            alike.append(_pairs(_pairs(alike[-1], self._column(cell, RETURN_LOCAL)), self._keys(cell)))
        for level in range(num_frames - 1, -1, -1):
            kept = self._merge_at(level, alike[level])
            alike = [numbers[kept] for numbers in alike[:level]]

    def _at(self, level: int) -> Int64:
        """The cell of the frame with so many above it; BOTTOM where there is none."""
        cell = self.stacks
        for _ in range(level):
            cell = np.maximum(self._column(cell, PARENT), BOTTOM)
        return cell

    def _column(self, cell: Int64, column: int) -> Int64:
        found: Int64 = self._cells.table.array[cell, column].astype(np.int64)
        return found

    def _keys(self, cell: Int64) -> Int64:
        """A number for the free keys of each frame."""
        numbers = np.zeros(len(cell), np.int64)
        if len(self._seen):
            known: dict[frozenset[bytes], int] = {}
            for at in np.flatnonzero(np.isin(cell, self._seen)).tolist():
                numbers[at] = 1 + known.setdefault(self._cells.seen[int(cell[at])], len(known))
        return numbers

    def _merge_at(self, level: int, alike: Int64) -> Int64:
        """Merge stacks that differ in where the frame with so many above it returns to; the places of those that are left."""
        cell = self._at(level)
        back = self._column(cell, RETURN_LOCAL)
        places, inverse = np.unique(back, return_inverse=True)
        may_be = [place >= 0 and self._locals.may_be_either(place) for place in places.tolist()]
        open_ = np.flatnonzero((cell > BOTTOM) & np.array(may_be, np.bool_)[inverse])
        if not len(open_):
            return np.arange(len(cell))
        cell = cell[open_]
        numbers = _pairs(_pairs(alike[open_], self._column(cell, PARENT)), self._keys(cell))
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        is_left = np.ones(len(self.stacks), np.bool_)
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            if stop - start > 1:
                those = open_[order[start:stop]]
                either = self._locals.either(back[those].tolist())
                self.stacks[those[0]] = self._cells.returning(int(self.stacks[those[0]]), level, either)
                is_left[those[1:]] = False
        kept = np.flatnonzero(is_left)
        self.tops, self.stacks = self.tops[kept], self.stacks[kept]
        return kept


def _pairs(some: Int64, others: Int64) -> Int64:
    """A number for each pair of numbers, those below the number of pairs and of 32 bits; equal for equal pairs alone."""
    if not others.any():
        return some
    found: Int64 = np.unique((some << 32) + others, return_inverse=True)[1].astype(np.int64)
    return found
