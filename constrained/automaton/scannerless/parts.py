"""Parts of mask rows: what the tokens below some nodes of the trie do inside terminals, and where these end in them.

A part does not depend on what lies below on the stack, so that few parts serve all stacks: rows are put together from
them (`masks`). Those of a terminal over the whole trie are shared by all grammars of a vocabulary.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.scannerless.lexemes import Lexemes
from constrained.automaton.scannerless.scan import begin, walk
from constrained.tokens.rows import Words, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
_FEW = 256  # bits in so many words or fewer are kept as a list of tokens


class Nodes:
    """A set of inner nodes of a trie, ascending; `uid` tells sets apart."""

    __slots__ = ("_by_byte", "_edges", "_trie", "nodes", "uid")

    def __init__(self, trie: Trie, nodes: Int32, uid: int) -> None:
        self._trie = trie
        self.nodes = nodes
        self.uid = uid
        self._edges: Int32 | None = None
        self._by_byte: NDArray[np.int64] | None = None

    def __bool__(self) -> bool:
        return len(self.nodes) > 0

    def edges(self, bytes_: Iterable[int]) -> Int32:
        """The edges below the nodes that read one of some bytes."""
        if self._edges is None or self._by_byte is None:
            first = self._trie.edge_first
            counts = first[self.nodes + 1] - first[self.nodes]
            starts = np.repeat(first[self.nodes] - (np.cumsum(counts) - counts), counts)
            edges = (starts + np.arange(counts.sum())).astype(np.int32)
            self._edges = edges[np.argsort(self._trie.edge_byte[edges], kind="stable")]
            self._by_byte = np.searchsorted(self._trie.edge_byte[self._edges], np.arange(257))
        edges, at = self._edges, self._by_byte
        found = [edges[at[byte] : at[byte + 1]] for byte in bytes_ if at[byte] < at[byte + 1]]
        return np.concatenate(found) if found else edges[:0]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Tokens, as bits or, where they are few, by name; and the nodes at which they come out."""

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
        self._items: Int32 = np.empty((1024, 3), np.int32)
        self._pending: Int32 = np.empty((1024, 3), np.int32)
        self._exits: Int32 = np.empty((1024, 2), np.int32)
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
                if len(self._sets) > 8 * self._capacity:
                    self._sets.popitem(last=False)
            else:
                self._sets.move_to_end(key)
            return found

    def union(self, sets: list[Nodes]) -> Nodes:
        """The nodes of all sets."""
        distinct = {nodes.uid: nodes for nodes in sets if nodes}
        if len(distinct) < 2:
            return next(iter(distinct.values()), self.nowhere)
        return self.nodes(_ascending(np.concatenate([nodes.nodes for nodes in distinct.values()])))

    def difference(self, nodes: Nodes, without: Nodes) -> Nodes:
        """The nodes of one set that are not in another."""
        if not without or not nodes:
            return nodes
        at = np.searchsorted(without.nodes, nodes.nodes)
        known = without.nodes[np.minimum(at, len(without.nodes) - 1)] == nodes.nodes
        return self.nodes(nodes.nodes[~known]) if known.any() else nodes

    def part(self, words: Words, exits: Nodes) -> Part:
        """A part of the bits `words`."""
        held = np.flatnonzero(words)
        if len(held) > _FEW:
            return Part(words, None, exits)
        bits = np.unpackbits(words[held].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        at, bit = np.nonzero(bits)
        return Part(None, (32 * held[at] + bit).astype(np.int32), exits)

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

    def enter(
        self, start: Nodes, positions: list[int], groups: list[int], bytes_: Iterable[int], lexemes: Lexemes, words: Words
    ) -> list[tuple[int, Nodes]]:
        """Walk the tokens below `start` from the beginning of terminals, each of which counts for a group.

        `bytes_` are the bytes that may begin one. Sets the bits of the tokens that go through in `words`; returns the
        groups whose terminals end in some, with the nodes where they do.
        """
        with self._lock:
            items, num_exits = self._begin(start.edges(bytes_), positions, groups, lexemes), 0
            while len(items):
                pending, num_exits = self._walk(items, num_exits, lexemes, words)
                for row, byte in {(row, int(self.trie.edge_byte[edge])) for _, row, edge in pending.tolist()}:
                    lexemes.fill(row, byte)
                items = pending
            return self._by_group(self._exits[:num_exits])

    def _begin(self, edges: Int32, positions: list[int], groups: list[int], lexemes: Lexemes) -> Int32:
        rows, counts_for = np.array(positions, np.int32), np.array(groups, np.int32)
        while True:
            count = begin(edges, self.trie.edge_byte, rows, counts_for, lexemes.table.array, self._items)
            if count <= len(self._items):
                return self._items[:count]
            self._items = np.empty((2 * count, 3), np.int32)

    def _walk(self, items: Int32, num_exits: int, lexemes: Lexemes, words: Words) -> tuple[Int32, int]:
        trie = self.trie
        while True:
            count, exits = walk(
                items, lexemes.table.array, words, self._pending, self._exits, num_exits, trie.max_depth,
                trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids,
            )  # fmt: skip
            if count <= len(self._pending) and exits <= len(self._exits):
                return self._pending[:count].copy(), exits
            self._pending = np.empty((max(count, len(self._pending)), 3), np.int32)
            grown = np.empty((max(2 * exits, len(self._exits)), 2), np.int32)
            grown[:num_exits] = self._exits[:num_exits]
            self._exits = grown

    def _by_group(self, exits: Int32) -> list[tuple[int, Nodes]]:
        if len(exits) == 0:
            return []
        packed = _ascending((exits[:, 0].astype(np.int64) << 32) | exits[:, 1])
        groups = packed >> 32
        starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        nodes = np.split((packed & 0xFFFFFFFF).astype(np.int32), starts[1:])
        return [(int(group), self.nodes(part)) for group, part in zip(groups[starts], nodes, strict=True)]


def _ascending(values: NDArray[np.int64] | Int32) -> NDArray[np.int64] | Int32:
    """The distinct values in order."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])]
