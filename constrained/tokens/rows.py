"""Mask rows: packed bits over the vocabulary, stored once per content, with an id that is never used again.

Bit i of word w is token 32 w + i. The engine's device table is keyed by the ids, so equal rows are uploaded once.

Rows are found by a digest of their words, a sum over the words: so that of a row which differs from another in few words
takes a few steps, and the words themselves are only written out for a row that is new.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import address, kernel

Words = NDArray[np.uint32]
Digest = tuple[int, int]
_ids = itertools.count()
BLOCK_ROWS = 64  # rows whose memory is taken at once
_P1, _P2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_P3, _P4 = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """Words int32 [num_words], read-only, with their address in memory and their digest."""

    words: NDArray[np.int32]
    at: int
    digest: Digest


@dataclass(frozen=True, slots=True, eq=False)
class MaskRow(Bits):
    """A stored row: `id` is unique in this process for this content while it is stored."""

    id: int


class RowStore:
    """Rows by content. Bounded: the least recently asked-for are forgotten (their ids are not used again).

    Rows are told apart by 128 bits, keyed by a secret of the store: whoever writes a schema cannot aim at a collision.
    """

    def __init__(self, capacity: int = 16_384) -> None:
        self.secret = int.from_bytes(os.urandom(8), "little", signed=True)
        self._capacity = capacity
        self._rows: OrderedDict[Digest, MaskRow] = OrderedDict()
        self._lock = threading.Lock()
        self._block: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self._taken = 0

    def reserve(self, num_rows: int, num_words: int) -> None:
        """Have memory for so many new rows at hand, written to once: memory that is not costs more than the row itself."""
        block = np.full((num_rows, num_words), -1, np.int32)
        with self._lock:
            self._block, self._taken = block, 0

    def take(self, num_words: int) -> NDArray[np.int32]:
        """Memory for a row; what is in it is anything."""
        with self._lock:
            if self._taken >= len(self._block) or self._block.shape[1] != num_words:
                self._block, self._taken = np.empty((BLOCK_ROWS, num_words), np.int32), 0
            words: NDArray[np.int32] = self._block[self._taken]
            self._taken += 1
            return words

    def zeros(self, num_words: int) -> Words:
        """A row without bits, in memory of its own."""
        words = self.take(num_words)
        words.fill(0)
        return words.view(np.uint32)

    def bits(self, words: Words) -> Bits:
        """`words`, which never change from now on, with their digest."""
        made = Bits(words.view(np.int32), address(words), digest_of(words, self.secret))
        words.flags.writeable = made.words.flags.writeable = False
        return made

    def everything(self, num_words: int) -> Bits:
        """A row of all bits."""
        return self.bits(np.full(num_words, 0xFFFFFFFF, np.uint32))

    def intern(self, words: Words) -> MaskRow:
        """The stored row equal to `words` uint32 [num_words] (copied where it is new)."""
        digest = digest_of(words, self.secret)
        return self.find(digest) or self.put(digest, words.view(np.int32).copy())

    def find(self, digest: Digest) -> MaskRow | None:
        """The row with a digest, where it is stored."""
        with self._lock:
            row = self._rows.get(digest)
            if row is not None:
                self._rows.move_to_end(digest)
            return row

    def put(self, digest: Digest, words: NDArray[np.int32]) -> MaskRow:
        """Store `words`, which the caller gives away, under their digest."""
        made = MaskRow(words, address(words), digest, next(_ids))
        words.flags.writeable = False
        with self._lock:
            row = self._rows.setdefault(digest, made)
            if len(self._rows) > self._capacity:
                self._rows.popitem(last=False)
            return row


@kernel
def hashed(at, word, secret):  # type: ignore[no-untyped-def]  # numba
    """What the word `at` adds to the digest of a row: two times 64 bits, 0 for a word without bits."""
    if word == 0:
        return np.uint64(0), np.uint64(0)
    mixed = ((np.uint64(at) << np.uint64(32)) | np.uint64(np.uint32(word))) ^ np.uint64(secret)
    mixed *= _P1
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _P2
    mixed ^= mixed >> np.uint64(29)
    one, two = mixed * _P3, mixed * _P4
    return one ^ (one >> np.uint64(32)), two ^ (two >> np.uint64(31))


@kernel
def digest_of(words, secret):  # type: ignore[no-untyped-def]  # numba
    """The digest of a row: the sum of `hashed` over its words."""
    first, second = np.uint64(0), np.uint64(0)
    for at in range(len(words)):
        one, two = hashed(at, words[at], secret)
        first += one
        second += two
    return np.int64(first), np.int64(second)


@kernel
def set_bits(words, tokens):  # type: ignore[no-untyped-def]  # numba
    """Set the bits of `tokens` int32 [n] in `words` uint32 [num_words]."""
    for token in tokens:
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def clear_bits(words, tokens):  # type: ignore[no-untyped-def]  # numba
    """Clear the bits of `tokens` int32 [n] in `words` uint32 [num_words]."""
    for token in tokens:
        words[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
