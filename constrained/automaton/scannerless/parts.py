"""Parts of mask rows: what the tokens below some edges of the trie do, and by which edges they go on when they come out.

A part is independent of what lies below on the stack, so that few parts serve all stacks: a row is put together from
them (`masks`). Those of terminals are shared by all grammars of a vocabulary. An edge below which a part has all tokens
already is none of its exits: whatever follows there adds nothing to a row that has the part. Behind a name most of the
vocabulary is so, as what continues the name continues what comes next.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.scannerless.scan import open_edges, walk
from constrained.automaton.tables import Table
from constrained.tokens.rows import Words, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
_FEW = 256  # so many tokens or fewer are kept as a list
ROOM = 1 << 15  # so many unknown steps are asked for at once


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """A set of edges of a trie; `uid` tells sets apart, `num_tokens` lie below them, counted once an edge."""

    edges: Int32
    uid: int
    num_tokens: int

    def __bool__(self) -> bool:
        return len(self.edges) > 0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The tokens that go through, as bits or, where they are few, by name; and the edges by which others go on."""

    words: Words | None
    tokens: Int32 | None
    exits: Edges

    def put(self, words: Words) -> None:
        """Set the bits of the tokens in `words`."""
        if self.words is not None:
            words |= self.words
        elif self.tokens is not None:
            set_bits(words, self.tokens)


class Parts:
    """Walks over one vocabulary, and the parts of terminals, which all grammars share. Bounded, safe between threads."""

    def __init__(self, trie: Trie, num_words: int, capacity: int = 1024) -> None:
        self.trie = trie
        self.num_words = num_words
        self._capacity = capacity
        self._sets: OrderedDict[bytes, Edges] = OrderedDict()
        self._num_sets = 0
        self._kept: OrderedDict[Hashable, Part] = OrderedDict()
        self._lock = threading.RLock()
        self._pending: Int32 = np.empty((ROOM, 2), np.int32)
        self._exits: Int32 = np.empty(len(trie.edge_byte), np.int32)
        self._is_exit = np.zeros(len(trie.edge_byte), np.uint8)
        self.nowhere = self.edges(np.zeros(0, np.int32))
        self.root = self.below(np.zeros(1, np.int32))

    def edges(self, edges: Int32) -> Edges:
        """The set of some edges, ascending and distinct."""
        with self._lock:
            key = edges.tobytes()
            found = self._sets.get(key)
            if found is None:
                self._num_sets += 1
                children = self.trie.edge_node[edges]
                num_tokens = int((self.trie.first[self.trie.end[children]] - self.trie.first[children]).sum())
                found = self._sets[key] = Edges(edges, self._num_sets, num_tokens)
                if len(self._sets) > self._capacity:
                    self._sets.popitem(last=False)
            else:
                self._sets.move_to_end(key)
            return found

    def below(self, nodes: Int32) -> Edges:
        """The edges below some nodes, ascending and distinct."""
        first = self.trie.edge_first
        counts = first[nodes + 1] - first[nodes]
        starts = np.repeat(first[nodes] - (np.cumsum(counts) - counts), counts)
        return self.edges((starts + np.arange(len(starts))).astype(np.int32))

    def union(self, sets: list[Edges]) -> Edges:
        """The edges of all sets."""
        distinct = {edges.uid: edges for edges in sets if edges}
        if len(distinct) < 2:
            return next(iter(distinct.values()), self.nowhere)
        joined = np.sort(np.concatenate([edges.edges for edges in distinct.values()]))
        return self.edges(joined[np.append(True, joined[1:] != joined[:-1])])

    def part(self, words: Words, exits: Edges) -> Part:
        """A part of the bits `words`, with those of the exits that may lead to others."""
        trie = self.trie
        left = open_edges(exits.edges, words, trie.first, trie.end, trie.edge_node, trie.ids)
        exits = exits if len(left) == len(exits.edges) else self.edges(left)
        if np.bitwise_count(words).sum() > _FEW:
            return Part(words, None, exits)
        return Part(None, _names(words), exits)

    def kept(self, key: Hashable, make: Callable[[], Part]) -> Part:
        """The part of a key that means the same in every grammar, made where it is new."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = make()
                if len(self._kept) > self._capacity:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
            return found

    def walk(self, start: Edges, row: int, table: Table, fill: Callable[[int, int], None]) -> Part:
        """The part of the tokens below `start` that a row of `table` leads through; `fill(row, byte)` fills a step in."""
        with self._lock:
            words = np.zeros(self.num_words, np.uint32)
            try:
                num_exits = self._walk(start.edges, row, table, fill, words)
                exits = np.sort(self._exits[:num_exits])
            finally:
                self._is_exit[:] = 0
            return self.part(words, self.edges(exits))

    def _walk(self, edges: Int32, row: int, table: Table, fill: Callable[[int, int], None], words: Words) -> int:
        """Sets bits in `words`, and how many exits there are."""
        trie, num_exits = self.trie, 0
        items = np.column_stack([np.full(len(edges), row, np.int32), edges, edges + 1]).astype(np.int32)
        while len(items):
            stack = np.concatenate([items, np.empty((trie.max_depth + 2, 3), np.int32)])
            left, count, num_exits = walk(
                stack, len(items), table.array, words, self._pending, self._exits, num_exits, self._is_exit,
                trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids,
            )  # fmt: skip
            waiting = self._pending[:count]
            asked = np.unique(waiting[:, 0].astype(np.int64) << 8 | trie.edge_byte[waiting[:, 1]])
            for ask in asked.tolist():
                fill(ask >> 8, ask & 0xFF)
            items = np.concatenate([stack[:left], np.column_stack([waiting, waiting[:, 1] + 1])])
        return num_exits


def _names(words: Words) -> Int32:
    """The tokens whose bits are set, which are few."""
    filled = np.flatnonzero(words)
    words_, bits = np.nonzero(np.unpackbits(words[filled].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little"))
    return (filled[words_] * 32 + bits).astype(np.int32)
