"""Flat tries: byte strings in depth-first order, so that a whole subtree is one slice of nodes and one slice of strings.

Built by numba from sorted strings; used for the vocabulary, for the suffixes after a closing quote, and for sets of
names and enum values. Knows nothing of grammars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import address, kernel

Int32 = NDArray[np.int32]
UInt8 = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """A trie of `n` nodes in depth-first order; node 0 is the root.

    `byte` uint8 [n] leads to the node; `end` int32 [n] is one past its subtree; `depth` int32 [n];
    `first` int32 [n + 1]: the strings of node i's subtree are `ids[first[i]:first[end[i]]]`, those that end at the
    node itself `ids[first[i]:first[i + 1]]`. `ids` int32 holds what the caller named the strings; `max_depth` is the length of
    the longest. The children of node i are `edge_node[edge_first[i]:edge_first[i + 1]]`, reached by the same slice of
    `edge_byte`: side by side in memory, so that passing over siblings costs no cache miss.
    Kernels take a trie as `at`, the address of `slots`: the addresses of its arrays (`automaton.tables` has their order).
    """

    byte: UInt8
    end: Int32
    depth: Int32
    first: Int32
    ids: Int32
    max_depth: int
    edge_first: Int32
    edge_byte: UInt8
    edge_node: Int32
    slots: NDArray[np.int64] = field(init=False)
    at: int = field(init=False)

    def __post_init__(self) -> None:
        arrays = (self.end, self.depth, self.first, self.ids, self.edge_first, self.edge_byte, self.edge_node)
        object.__setattr__(self, "slots", np.array([address(array) for array in arrays], np.int64))
        object.__setattr__(self, "at", address(self.slots))

    @property
    def spelling(self) -> tuple[int, Int32, UInt8, Int32]:
        """The arrays of a walk without its strings, in the order in which kernels take them."""
        return (self.max_depth, self.edge_first, self.edge_byte, self.edge_node)

    def child(self, byte: int) -> int:
        """The node behind the first byte; -1 where no string begins with it."""
        found = np.flatnonzero(self.edge_byte[: self.edge_first[1]] == byte)
        return int(self.edge_node[found[0]]) if len(found) else -1

    def path(self, node: int, above: int = 0) -> bytes:
        """The bytes that lead to a node from one above it, by default the root."""
        path = bytearray()
        while above != node:
            first, stop = self.edge_first[above], self.edge_first[above + 1]
            edge = int(first + np.searchsorted(self.edge_node[first:stop], node, side="right")) - 1
            path.append(self.edge_byte[edge])
            above = int(self.edge_node[edge])
        return bytes(path)

    def below(self, node: int) -> Int32:
        """The strings that begin with what leads to a node."""
        return self.ids[self.first[node] : self.first[self.end[node]]]

    @classmethod
    def build(cls, strings: Sequence[bytes], ids: Sequence[int] | None = None, *, keep_empty: bool = False) -> Trie:
        """The trie of `strings`, named by `ids` (default: their index). Empty strings are left out unless asked for."""
        names = range(len(strings)) if ids is None else ids
        pairs = sorted((text, name) for text, name in zip(strings, names, strict=True) if text or keep_empty)
        lengths = np.fromiter((len(text) for text, _ in pairs), np.int64, len(pairs))
        starts = np.zeros(len(pairs) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        flat = np.frombuffer(b"".join(text for text, _ in pairs), np.uint8)
        order = np.fromiter((name for _, name in pairs), np.int32, len(pairs))
        byte, end, depth, first = _build(flat, starts)
        return cls(byte, end, depth, first, order, int(lengths.max(initial=0)), *_edges(byte, end))


@kernel
def _build(flat, starts):  # type: ignore[no-untyped-def]  # numba
    """Nodes in depth-first order from sorted strings."""
    count = len(starts) - 1
    size = 1
    for i in range(count):
        size += (starts[i + 1] - starts[i]) - _common(flat, starts, i)
    byte = np.zeros(size, np.uint8)
    end = np.zeros(size, np.int32)
    depth = np.zeros(size, np.int32)
    first = np.zeros(size + 1, np.int32)
    longest = 0
    for i in range(count):
        longest = max(longest, starts[i + 1] - starts[i])
    path = np.zeros(longest + 1, np.int32)
    node, open_len = 0, 0
    for i in range(count):
        common = _common(flat, starts, i)
        for level in range(open_len, common, -1):
            end[path[level]] = node + 1
        for level in range(common + 1, starts[i + 1] - starts[i] + 1):
            node += 1
            path[level] = node
            byte[node] = flat[starts[i] + level - 1]
            depth[node] = level
            first[node] = i
        open_len = starts[i + 1] - starts[i]
    for level in range(open_len, -1, -1):
        end[path[level]] = node + 1
    first[size] = count
    return byte, end, depth, first


@kernel
def _common(flat, starts, i):  # type: ignore[no-untyped-def]  # numba
    """Length of the common prefix of the strings i - 1 and i; 0 for the first."""
    if i == 0:
        return 0
    before, here = starts[i - 1], starts[i]
    limit = min(here - before, starts[i + 1] - here)
    n = 0
    while n < limit and flat[before + n] == flat[here + n]:
        n += 1
    return n


@kernel
def _edges(byte, end):  # type: ignore[no-untyped-def]  # numba
    """Children of each node, side by side."""
    size = len(byte)
    edge_first = np.zeros(size + 1, np.int32)
    edge_byte = np.zeros(size - 1, np.uint8)
    edge_node = np.zeros(size - 1, np.int32)
    count = 0
    for node in range(size):
        edge_first[node] = count
        child = node + 1
        while child < end[node]:
            edge_byte[count] = byte[child]
            edge_node[count] = child
            count += 1
            child = end[child]
    edge_first[size] = count
    return edge_first, edge_byte, edge_node
