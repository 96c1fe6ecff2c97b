"""Mask rows: packed bits over the vocabulary, stored once per content, with an id that is never used again.

Bit i of word w is token 32 w + i. The engine's device table is keyed by the ids, so equal rows are uploaded once.

Rows are found by a digest of their words, a sum over the words: so that of a row which differs from another in few words
takes a few steps. Such a row is kept as those words and the other row: its own words are written out when somebody asks for
them, and a kilobyte is less to read and to write than sixteen.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import address, int32_array, kernel

Words = NDArray[np.uint32]
Digest = tuple[int, int]
_ids = itertools.count()
BLOCK_ROWS = 64  # rows whose memory is taken at once
# A row that differs from another in no more than a sixteenth of the words is kept as the difference.
FEW = 16
_P1, _P2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_P3, _P4 = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """Words int32 [num_words], read-only, with their address in memory and their digest."""

    words: NDArray[np.int32]
    at: int
    digest: Digest


class MaskRow:
    """A stored row: `id` is unique in this process for this content while it is stored."""

    __slots__ = ("_at", "_base", "_changes", "_words", "digest", "id")

    def __init__(self, digest: Digest, base: Bits | MaskRow, changes: NDArray[np.int32]) -> None:
        self.id = next(_ids)
        self.digest = digest
        self._base, self._changes = base, changes
        self._words: NDArray[np.int32] | None = None
        self._at = 0

    @classmethod
    def of(cls, digest: Digest, words: NDArray[np.int32]) -> MaskRow:
        """The row of `words`, which the caller gives away."""
        at = address(words)
        words.flags.writeable = False
        made = cls(digest, Bits(words, at, digest), _NO_CHANGES)
        made._words, made._at = words, at
        return made

    @property
    def words(self) -> NDArray[np.int32]:
        """Words int32 [num_words], read-only."""
        if self._words is None:
            words: NDArray[np.int32] = np.empty(len(self._base.words), np.int32)
            _write(words, self._base.at, self._changes)
            self._at = address(words)
            words.flags.writeable = False
            self._words = words
        return self._words

    @property
    def at(self) -> int:
        """The address of the words in memory."""
        if self._words is None:
            _ = self.words
        return self._at

    def fill(self, bitmask: NDArray[np.int32], row: int) -> None:
        """Write the words into `bitmask[row]`, int32 [batch, num_words].

        Raises `ValueError` where the words are not as many, `IndexError` where there is no such row.
        """
        if self._words is None and bitmask.flags.c_contiguous and bitmask.dtype == np.int32 and bitmask.ndim == 2:
            num_words = len(self._base.words)
            if _write_row(bitmask, row, num_words, self._base.at, self._changes):
                return
        bitmask[row] = self.words


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
        return self.find(digest) or self._put(MaskRow.of(digest, words.view(np.int32).copy()))

    def find(self, digest: Digest) -> MaskRow | None:
        """The row with a digest, where it is stored."""
        with self._lock:
            row = self._rows.get(digest)
            if row is not None and 2 * len(self._rows) > self._capacity:  # else nothing is forgotten soon
                self._rows.move_to_end(digest)
            return row

    def put(self, digest: Digest, base: Bits | MaskRow, changes: NDArray[np.int32]) -> MaskRow:
        """Store the row that is `base` but for `changes` int32 [n, 2], each a place and the word there."""
        if FEW * len(changes) <= len(base.words):
            return self._put(MaskRow(digest, base, changes.copy()))
        words = self.take(len(base.words))
        _write(words, base.at, changes)
        return self._put(MaskRow.of(digest, words))

    def _put(self, made: MaskRow) -> MaskRow:
        with self._lock:
            row = self._rows.setdefault(made.digest, made)
            if len(self._rows) > self._capacity:
                self._rows.popitem(last=False)
            return row


_NO_CHANGES = np.empty((0, 2), np.int32)


@kernel
def _write(words, base, changes):  # type: ignore[no-untyped-def]  # numba
    """Write into `words` those at the address `base`, with `changes`."""
    before = int32_array(base)
    for at in range(len(words)):
        words[at] = before[at]
    for i in range(len(changes)):
        words[changes[i, 0]] = changes[i, 1]


@kernel
def _write_row(bitmask, row, num_words, base, changes):  # type: ignore[no-untyped-def]  # numba
    """Write into `bitmask[row]`; False, and nothing written, where it has no such row, or rows of another length."""
    if row < 0 or row >= bitmask.shape[0] or bitmask.shape[1] != num_words:
        return False
    before = int32_array(base)
    for at in range(num_words):
        bitmask[row, at] = before[at]
    for i in range(len(changes)):
        bitmask[row, changes[i, 0]] = changes[i, 1]
    return True


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
