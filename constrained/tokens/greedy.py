"""Greedy tokenisation: the longest token at each place. A simple upper bound on how few tokens can spell some bytes."""

from __future__ import annotations

import numpy as np

from constrained.errors import VocabularyError
from constrained.tokens.descent import as_array
from constrained.tokens.jit import kernel
from constrained.tokens.trie import Trie


def greedy_tokens(trie: Trie, data: bytes) -> list[int]:
    """Token ids that spell `data`. Raises `VocabularyError` where no token begins with a byte that is needed."""
    out = np.empty(len(data), np.int32)
    count = _greedy(as_array(data), trie.byte, trie.end, trie.first, trie.ids, out)
    if count < 0:
        position = -1 - count
        raise VocabularyError(
            f"no token spells the byte 0x{data[position]:02x} of {data[max(0, position - 20) : position + 20]!r}"
        )
    return [int(token) for token in out[:count]]


@kernel
def _greedy(data, byte, end, first, ids, out):  # type: ignore[no-untyped-def]  # numba
    position, count = 0, 0
    while position < len(data):
        node, at, token, after = 0, position, -1, position
        while at < len(data):
            child = node + 1
            while child < end[node] and byte[child] != data[at]:
                child = end[child]
            if child >= end[node]:
                break
            node = child
            at += 1
            if first[node + 1] > first[node]:
                token, after = ids[first[node]], at
        if token < 0:
            return -1 - position
        out[count] = token
        count += 1
        position = after
    return count
