"""What the vocabulary looks like from inside a string of a language: computed once for each place, shared by every grammar."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import scans, strings
from constrained.automaton.contents import Contents
from constrained.automaton.string_rows import StringRows
from constrained.automaton.walking import Onto
from constrained.tokens.rows import RowStore, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
MAX_ROWS = 2048
MANY = 70  # of ASCII's 95 printable characters


@dataclass(slots=True)
class Place:
    """The row of a place where any number of characters may come, and those of less room than `reach` (0: not known yet)."""

    free: Onto
    reach: int = 0
    limited: dict[int, Onto] = field(default_factory=dict)


class LanguageRows:
    """Rows of the places between the characters of languages over one vocabulary; bounded and safe between threads."""

    def __init__(self, trie: Trie, num_words: int, free: StringRows, store: RowStore) -> None:
        self._trie, self._store = trie, store
        self._below = scans.bytes_below(trie.byte, trie.end, trie.depth, trie.max_depth)
        self._stack = np.zeros((trie.max_depth + 2, 2), np.int32)
        self._places: OrderedDict[tuple[Contents, int], Place] = OrderedDict()
        self._strings = free
        self._flat, self._starts = free.flat
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
        return self._place(contents, lex).free

    def reach(self, contents: Contents, lex: int) -> int:
        """The room from which on more makes no difference to a place's row: tokens are no longer."""
        place = self._place(contents, lex)
        if place.reach == 0:
            with contents.lock:
                place.reach = self._strings.max_len + contents.most_needed(lex)
        return place.reach

    def limited_row(self, contents: Contents, lex: int, room: int) -> Onto:
        """The row of a place where at most `room` characters may still come."""
        place = self._place(contents, lex)
        with self._lock:
            found = place.limited.get(room)
            if found is None:
                found = place.limited[room] = self._limit(contents, lex, place, room)
            return found

    def _place(self, contents: Contents, lex: int) -> Place:
        with self._lock:
            found = self._places.get((contents, lex))
            if found is None:
                free = self._scan(contents, lex)
                found = self._places[contents, lex] = Place(free)
                if len(self._places) > MAX_ROWS:
                    self._places.popitem(last=False)
            return found

    def _limit(self, contents: Contents, lex: int, place: Place, room: int) -> Onto:
        """The free row without the tokens that are too long, or behind which there is no room for the rest."""
        bare, num_words = self._bare.view(np.int32), len(self._bare)
        closing, inside = self._store.take(num_words), self._store.take(num_words)
        np.bitwise_and(place.free.under.words, self._free_row(room).under.words, out=closing)
        np.bitwise_and(closing, bare, out=inside)
        sure = room - (place.reach - self._strings.max_len)
        if sure >= 0:
            inside |= place.free.base.words & self._free_row(sure).base.words & ~bare
        words = inside.view(np.uint32)
        set_bits(words, self._fitting(contents, lex, place, max(sure, -1), room))
        return Onto(self._store.bits(words), self._store.bits(closing.view(np.uint32)))

    def _free_row(self, room: int) -> Onto:
        return self._strings.row(strings.FREE, 0, *self._strings.classes(0, room))

    def _fitting(self, contents: Contents, lex: int, place: Place, sure: int, room: int) -> Int32:
        """Those tokens of more than `sure` and at most `room` characters that fit, by trying."""
        free, words = self._strings.place(strings.FREE, 0), place.free.base.words.view(np.uint32)
        first, stop = np.searchsorted(free.inside_len, [sure, room], side="right")
        tokens = free.inside[first:stop]
        tokens = tokens[(words[tokens >> 5] >> (tokens & 31).astype(np.uint32) & np.uint32(1)).astype(np.bool_)]
        fits = np.zeros(len(tokens), np.bool_)
        at = 0
        while True:
            at, missing = scans.try_tokens(
                at, lex, room, tokens, self._flat, self._starts, _NO_TRIES, contents.table.array, contents.ranges.array, fits
            )
            if at == len(tokens):
                found: Int32 = tokens[fits]
                return found
            contents.resolve(int(missing))

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
