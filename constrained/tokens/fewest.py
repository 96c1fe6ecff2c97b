"""The fewest tokens that spell some bytes: what a closing costs, and which tokens keep to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.errors import VocabularyError
from constrained.tokens.descent import as_array, child
from constrained.tokens.jit import kernel
from constrained.tokens.trie import Trie


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """`data` in the fewest tokens, from any place of it.

    `counts` int32 [len(data) + 1]: how many tokens `data[i:]` takes; `best` int32 [len(data)]: the first of them, the
    longest where several do.
    """

    data: bytes
    counts: NDArray[np.int32]
    best: NDArray[np.int32]

    @property
    def num_tokens(self) -> int:
        """How many tokens the whole takes."""
        return int(self.counts[0])


def spell(trie: Trie, data: bytes) -> Spelling:
    """`data` in the fewest tokens of `trie`. Raises `VocabularyError` where no token begins with a byte that is needed."""
    counts = np.empty(len(data) + 1, np.int32)
    best = np.empty(len(data), np.int32)
    missing = _spell(as_array(data), *_walked(trie), counts, best)
    if missing >= 0:
        around = data[max(0, missing - 20) : missing + 20]
        raise VocabularyError(f"no token spells the byte 0x{data[missing]:02x} of {around!r}")
    return Spelling(data, counts, best)


def tokens_along(trie: Trie, spelling: Spelling, position: int, budget: int) -> NDArray[np.int32]:
    """The tokens that go along `spelling` from `position` and leave a rest of fewer than `budget` tokens."""
    data = as_array(spelling.data[position : position + trie.max_depth])
    out = np.empty(len(trie.ids), np.int32)
    return out[: _along(data, *_walked(trie), spelling.counts[position:], budget, out)]


def _walked(trie: Trie) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    return trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids


@kernel
def _spell(data, edge_first, edge_byte, edge_node, first, ids, counts, best):  # type: ignore[no-untyped-def]  # numba
    """Fill `counts` and `best` from the end; returns a position that no token begins at, -1 where there is none."""
    counts[len(data)] = 0
    for start in range(len(data) - 1, -1, -1):
        fewest, token, node = len(data) + 1, -1, 0
        for at in range(start, len(data)):
            node = child(node, data[at], edge_first, edge_byte, edge_node)
            if node < 0:
                break
            if first[node + 1] > first[node] and counts[at + 1] + 1 <= fewest:
                fewest, token = counts[at + 1] + 1, ids[first[node]]
        if token < 0:
            return start
        counts[start], best[start] = fewest, token
    return -1


@kernel
def _along(data, edge_first, edge_byte, edge_node, first, ids, counts, budget, out):  # type: ignore[no-untyped-def]  # numba
    """The tokens that begin `data` and leave fewer than `budget`; returns how many `out` took."""
    node, count = 0, 0
    for at in range(len(data)):
        node = child(node, data[at], edge_first, edge_byte, edge_node)
        if node < 0:
            break
        if counts[at + 1] < budget:
            for index in range(first[node], first[node + 1]):
                out[count] = ids[index]
                count += 1
    return count
