"""Going down a token trie byte by byte: the step that the kernels beside it share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import kernel
from constrained.tokens.trie import Trie


@kernel
def child(node, byte, edge_first, edge_byte, edge_node):  # type: ignore[no-untyped-def]  # numba
    """The child of a node by a byte; -1 where there is none. Children are in ascending order."""
    low, high = edge_first[node], edge_first[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if edge_byte[middle] < byte:
            low = middle + 1
        else:
            high = middle
    return edge_node[low] if low < edge_first[node + 1] and edge_byte[low] == byte else -1


def open_starts(trie: Trie, data: bytes, following: bytes) -> list[int]:
    """The places of `data` from which some string of the trie is its rest and then one of the bytes `following`."""
    out = np.empty(len(data), np.int32)
    edges = trie.edge_first, trie.edge_byte, trie.edge_node
    count = _open_starts(as_array(data), as_array(following), trie.max_depth, *edges, out)
    return [int(start) for start in out[:count]]


def as_array(data: bytes) -> NDArray[np.uint8]:
    """A copy of `data` as an array that may be written: kernels are compiled for no other kind."""
    return np.frombuffer(bytearray(data), np.uint8)


@kernel
def _open_starts(data, following, max_depth, edge_first, edge_byte, edge_node, out):  # type: ignore[no-untyped-def]  # numba
    count = 0
    for start in range(max(0, len(data) - max_depth), len(data)):
        node, at = 0, start
        while node >= 0 and at < len(data):
            node = child(node, data[at], edge_first, edge_byte, edge_node)
            at += 1
        if node >= 0:
            for byte in following:
                if child(node, byte, edge_first, edge_byte, edge_node) >= 0:
                    out[count] = start
                    count += 1
                    break
    return count
