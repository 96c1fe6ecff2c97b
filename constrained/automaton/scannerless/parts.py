"""Parts of mask rows: what the tokens below some nodes of the trie do, and at which nodes they come out again.

A part is independent of what lies below on the stack, so that few parts serve all stacks: a row is put together from
them (`masks`). Those of terminals are shared by all grammars of a vocabulary.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.scannerless.scan import BYTE_0, DEAD, walk
from constrained.automaton.tables import Table
from constrained.tokens.rows import Words, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
_FEW = 256  # so many tokens or fewer are kept as a list


class Nodes:
    """A set of inner nodes of a trie; `uid` tells sets apart. `edges(byte)` are the edges by which it is left."""

    __slots__ = ("_by_byte", "_edges", "_trie", "nodes", "uid")

    def __init__(self, trie: Trie, nodes: Int32, uid: int) -> None:
        self._trie = trie
        self.nodes = nodes
        self.uid = uid
        self._edges: Int32 | None = None
        self._by_byte: NDArray[np.int64] | None = None

    def __bool__(self) -> bool:
        return len(self.nodes) > 0

    def edges(self, byte: int) -> Int32:
        """The edges below the nodes that read `byte`."""
        if self._edges is None or self._by_byte is None:
            first = self._trie.edge_first
            counts = first[self.nodes + 1] - first[self.nodes]
            starts = np.repeat(first[self.nodes] - (np.cumsum(counts) - counts), counts)
            edges = (starts + np.arange(counts.sum())).astype(np.int32)
            order = np.argsort(self._trie.edge_byte[edges], kind="stable")
            self._edges = edges[order]
            self._by_byte = np.searchsorted(self._trie.edge_byte[self._edges], np.arange(257))
        return self._edges[self._by_byte[byte] : self._by_byte[byte + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The tokens that go through, as bits or, where they are few, by name; and the nodes at which they come out."""

    words: Words | None
    tokens: Int32 | None
    exits: Nodes

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
        self._sets: OrderedDict[bytes, Nodes] = OrderedDict()
        self._num_sets = 0
        self._kept: OrderedDict[Hashable, Part] = OrderedDict()
        self._lock = threading.RLock()
        self._pending: Int32 = np.empty((len(trie.edge_byte) + 1, 2), np.int32)
        self._exits: Int32 = np.empty(len(trie.byte) + 1, np.int32)
        self.nowhere = self.nodes(np.zeros(0, np.int32))
        self.root = self.nodes(np.zeros(1, np.int32))

    def nodes(self, nodes: Int32) -> Nodes:
        """The set of some nodes, ascending and distinct."""
        with self._lock:
            key = nodes.tobytes()
            found = self._sets.get(key)
            if found is None:
                self._num_sets += 1
                found = self._sets[key] = Nodes(self.trie, nodes, self._num_sets)
                if len(self._sets) > self._capacity:
                    self._sets.popitem(last=False)
            else:
                self._sets.move_to_end(key)
            return found

    def union(self, sets: list[Nodes]) -> Nodes:
        """The nodes of all sets."""
        distinct = {nodes.uid: nodes for nodes in sets if nodes}
        if len(distinct) < 2:
            return next(iter(distinct.values()), self.nowhere)
        return self.nodes(np.unique(np.concatenate([nodes.nodes for nodes in distinct.values()])))

    def part(self, words: Words, exits: Nodes) -> Part:
        """A part of the bits `words`."""
        tokens = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).astype(np.int32)
        return Part(None, tokens, exits) if len(tokens) <= _FEW else Part(words, None, exits)

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

    def walk(self, start: Nodes, row: int, table: Table, fill: Callable[[int, int], None]) -> Part:
        """The part of the tokens below `start` that a row of `table` leads through; `fill(row, byte)` fills a step in."""
        with self._lock:
            items, trie = self._items(start, row, table, fill), self.trie
            words = np.zeros(self.num_words, np.uint32)
            count = num_exits = 0
            while len(items):
                count, num_exits = walk(
                    np.concatenate([items, np.empty((trie.max_depth + 2, 3), np.int32)]), len(items),
                    table.array, words, self._pending, self._exits, num_exits,
                    trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids,
                )  # fmt: skip
                waiting = self._pending[:count]
                bytes_ = trie.edge_byte[waiting[:, 1]]
                for before, byte in np.unique(np.stack([waiting[:, 0], bytes_], 1), axis=0).tolist():
                    fill(before, byte)
                items = np.column_stack([waiting, waiting[:, 1] + 1]).astype(np.int32)
            return self.part(words, self.nodes(np.sort(self._exits[:num_exits])))

    def _items(self, start: Nodes, row: int, table: Table, fill: Callable[[int, int], None]) -> Int32:
        """The edges below `start` on which something follows the row."""
        groups = []
        for byte in range(256):
            edges = start.edges(byte)
            if len(edges) == 0:
                continue
            if table.array[row, BYTE_0 + byte] != DEAD:
                fill(row, byte)
            if table.array[row, BYTE_0 + byte] != DEAD:
                groups.append(edges)
        if not groups:
            return np.zeros((0, 3), np.int32)
        edges = np.concatenate(groups)
        return np.column_stack([np.full(len(edges), row, np.int32), edges, edges + 1]).astype(np.int32)
