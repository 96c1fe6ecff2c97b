"""What the vocabulary looks like from inside a free string: computed once per vocabulary, shared by every grammar.

From a place in a free string some tokens stay inside it; others close it and go on outside. The suffixes of the latter
after the quote form a trie of their own, a thousand times smaller than the vocabulary, so that a mask row of a string is
a copy and a small walk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import scans, strings
from constrained.automaton.walking import Onto
from constrained.tokens.jit import kernel
from constrained.tokens.rows import RowStore, clear_bits, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
MAX_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class StringPlace:
    """All of the vocabulary from one place (lex, esc) of a free string.

    `inside` are the tokens that stay inside, `inside_len` the characters that each needs (ascending); `exit_tokens` those
    that close the string, `exit_len` the characters before the quote, `bare` whether that ends them; `suffixes` the trie of
    what follows the quote.
    """

    inside: Int32
    inside_len: Int32
    exit_tokens: Int32
    exit_len: Int32
    bare: NDArray[np.bool_]
    suffixes: Trie


class StringRows:
    """Places and rows of one vocabulary; bounded and safe between threads."""

    def __init__(
        self, trie: Trie, token_bytes: list[bytes], num_words: int, store: RowStore, *, permissive: bool = False
    ) -> None:
        self._trie = trie
        self._token_bytes = token_bytes
        self._num_words, self._store = num_words, store
        self._everything = store.everything(num_words)
        self._places: OrderedDict[tuple[int, int], StringPlace] = OrderedDict()
        self._rows: OrderedDict[tuple[int, int, int, int], Onto] = OrderedDict()
        self._ranges = np.array([[int(permissive), 0, 0]], np.int32)  # `strings.SPELLING`
        self._spelled: OrderedDict[bytes, Int32] = OrderedDict()
        self._lock = threading.RLock()
        # No token has more characters inside a string: behind a backslash, a quote is one too.
        self.max_len = max((sum(byte & 0xC0 != 0x80 for byte in text) for text in token_bytes), default=0) + 1

    def place(self, lex: int, esc: int) -> StringPlace:
        """The vocabulary seen from a place in a free string."""
        with self._lock:
            found = self._places.get((lex, esc))
            if found is None:
                found = self._places[(lex, esc)] = self._scan(lex, esc)
                if len(self._places) > MAX_ROWS:
                    self._places.popitem(last=False)
            return found

    def classes(self, need: int, room: int) -> tuple[int, int]:
        """`need` and `room` as far as a token can tell them apart."""
        return min(need, self.max_len), min(room, self.max_len)

    def row(self, lex: int, esc: int, need: int, room: int) -> Onto:
        """By `need` and `room` as in `classes`: tokens that stay inside or end with the quote; those that may end it."""
        key = (lex, esc, need, room)
        with self._lock:
            found = self._rows.get(key)
            if found is None:
                found = self._rows[key] = self._make_row(*key)
                if len(self._rows) > MAX_ROWS:
                    self._rows.popitem(last=False)
            return found

    def spelled(self, content: bytes) -> Int32:
        """The tokens that begin with a spelling of `content` and a closing quote, read from inside a string."""
        with self._lock:
            found = self._spelled.get(content)
            if found is None:
                found = self._spelled[content] = self._find_spelled(content)
                if len(self._spelled) > 8 * MAX_ROWS:
                    self._spelled.popitem(last=False)
            return found

    def _scan(self, lex: int, esc: int) -> StringPlace:
        trie = self._trie
        inside = np.empty(len(trie.byte), np.int32)
        exits = np.empty(len(trie.byte), np.int32)
        content = (*_NO_TABLES, self._ranges)
        scans.scan_string(lex, esc, trie.byte, trie.end, trie.depth, trie.max_depth, *content, inside, exits)
        counts = np.diff(trie.first)
        inside_len = np.repeat(inside, counts)
        order = np.argsort(inside_len, kind="stable")[np.count_nonzero(inside_len < 0) :]
        texts, names, lengths = [], [], []
        for node in np.flatnonzero(exits >= 0):
            depth = int(trie.depth[node])
            for token in trie.ids[trie.first[node] : trie.first[trie.end[node]]]:
                texts.append(self._token_bytes[token][depth:])
                names.append(int(token))
                lengths.append(int(exits[node]))
        return StringPlace(
            trie.ids[order],
            inside_len[order],
            np.array(names, np.int32),
            np.array(lengths, np.int32),
            np.array([not text for text in texts], np.bool_),
            Trie.build(texts, names, keep_empty=True),
        )

    def _make_row(self, lex: int, esc: int, need: int, room: int) -> Onto:
        place = self.place(lex, esc)
        if need > 0:
            return self._needing(place, need, self.row(lex, esc, 0, room))
        words = self._store.zeros(self._num_words)
        set_bits(words, place.inside[: np.searchsorted(place.inside_len, room, side="right")])
        fits = place.exit_len <= room
        # Tokens that end with the quote itself need nothing of what follows.
        set_bits(words, place.exit_tokens[fits & place.bare])
        if fits.all():
            return Onto(self._store.bits(words), self._everything)
        closing = self._store.zeros(self._num_words)
        set_bits(closing, place.exit_tokens[fits])
        return Onto(self._store.bits(words), self._store.bits(closing))

    def _needing(self, place: StringPlace, need: int, row: Onto) -> Onto:
        """The same row where the string may not end before `need` characters."""
        short = place.exit_len < need
        if not short.any():
            return row
        words, closing = (self._store.take(self._num_words).view(np.uint32) for _ in range(2))
        words[:], closing[:] = row.base.words.view(np.uint32), row.under.words.view(np.uint32)
        clear_bits(words, place.exit_tokens[short & place.bare])
        clear_bits(closing, place.exit_tokens[short])
        return Onto(self._store.bits(words), self._store.bits(closing))

    def _find_spelled(self, content: bytes) -> Int32:
        tries = string_trie(content)
        found = np.empty((256, 2), np.int32)
        trie = self._trie
        while (count := scans.spelled(strings.TRIE, *trie.spelling, tries, _NO_TABLES[1], self._ranges, found)) < 0:
            found = np.empty((4 * len(found), 2), np.int32)
        parts = [trie.ids[trie.first[node] : trie.first[trie.end[node]]] for node in found[:count, 0]]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


MAX_CHARACTERS = 255


def count_characters(token_bytes: Sequence[bytes]) -> bytes:
    """For each token the number of its characters, if it is plain text inside a string: whole ones that stand for themselves.

    0 for every other token, and for one of more than `MAX_CHARACTERS`.
    """
    counts = np.zeros(len(token_bytes), np.uint8)
    _count(*flattened(token_bytes), counts)
    return counts.tobytes()


def flattened(token_bytes: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all tokens one after the other, and where each begins."""
    starts = np.zeros(len(token_bytes) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, token_bytes), np.int64, len(token_bytes)), out=starts[1:])
    return np.frombuffer(b"".join(token_bytes), np.uint8), starts


@kernel
def _count(flat, starts, counts):  # type: ignore[no-untyped-def]  # numba
    for token in range(len(counts)):
        state, count = 0, 0
        for i in range(starts[token], starts[token + 1]):
            state = strings.UTF8[state, flat[i]]
            if state == strings.REJECT:
                break
            count += state == 0
        counts[token] = count if state == 0 and count <= MAX_CHARACTERS else 0


def string_trie(content: bytes) -> Int32:
    """The string table of one string, which may begin inside a character."""
    size = len(content) + 1
    table = np.zeros((size, 5), np.int32)
    table[1:, strings.BYTE] = list(content)
    table[:, strings.END] = size
    table[:, strings.TAG] = strings.NO_TAG
    table[size - 1, strings.TAG] = 1
    # Only "between characters or not" matters: a byte that a continuation byte follows is inside one.
    table[:-1, strings.UTF8_STATE] = [int(0x80 <= byte < 0xC0) for byte in content]
    return table


_NO_TABLES = (np.zeros((1, 5), np.int32), np.zeros((1, 5), np.int32))
