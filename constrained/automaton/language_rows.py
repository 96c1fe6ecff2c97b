"""What the vocabulary looks like from inside a string of a language: computed once for each place, shared by every grammar."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from constrained.automaton import scans, strings
from constrained.automaton.contents import Contents
from constrained.automaton.string_rows import StringRows
from constrained.automaton.walking import Onto
from constrained.tokens.rows import RowStore, set_bits
from constrained.tokens.trie import Trie

MAX_ROWS = 2048
MANY = 70  # of ASCII's 95 printable characters


class LanguageRows:
    """Rows of the places between the characters of languages over one vocabulary; bounded and safe between threads."""

    def __init__(self, trie: Trie, num_words: int, free: StringRows, store: RowStore) -> None:
        self._trie, self._store = trie, store
        self._below = scans.bytes_below(trie.byte, trie.end, trie.depth, trie.max_depth)
        self._stack = np.zeros((trie.max_depth + 2, 2), np.int32)
        self._rows: OrderedDict[tuple[Contents, int], Onto] = OrderedDict()
        self._lock = threading.RLock()
        place = free.place(strings.FREE, 0)
        self._free = (np.zeros(num_words, np.uint32), np.zeros(num_words, np.uint32))
        set_bits(self._free[0], place.inside)
        set_bits(self._free[1], place.exit_tokens)
        self._bare = np.zeros(num_words, np.uint32)
        set_bits(self._bare, place.suffixes.ids[: place.suffixes.first[1]])

    def row(self, contents: Contents, lex: int) -> Onto:
        """The tokens that stay inside from a place, or end with the quote; and those that may close the string.

        What follows the quote is a suffix of the free string's place: a string closes at the same quote everywhere.
        """
        with self._lock:
            found = self._rows.get((contents, lex))
            if found is None:
                found = self._rows[contents, lex] = self._scan(contents, lex)
                if len(self._rows) > MAX_ROWS:
                    self._rows.popitem(last=False)
            return found

    def _scan(self, contents: Contents, lex: int) -> Onto:
        trie, places = self._trie, self._stack
        with contents.lock:
            contents.look_ahead(lex)
            # Where most characters lead on, fewer tokens have to be taken out than to be added.
            clears = contents.num_looping(lex) > MANY
            inside, closing = (self._store.zeros(len(self._bare)) for _ in range(2))
            if clears:
                inside[:] = self._free[0]
            places[0] = lex, 0
            node = 1
            while True:
                node = scans.scan_language(
                    node, places, trie.byte, trie.end, trie.depth, trie.first, trie.ids, self._below,
                    _NO_TRIES, contents.table.array, contents.ranges.array, *self._free, clears, inside, closing,
                )  # fmt: skip
                if node == scans.FINISHED:
                    break
                contents.resolve(int(places[trie.depth[node] - 1, 0]) & strings.INDEX)
        inside |= closing & self._bare
        return Onto(self._store.bits(inside), self._store.bits(closing))


_NO_TRIES = np.zeros((1, 5), np.int32)
