"""What the vocabulary looks like from inside a string of a language: computed once for each place, shared by every grammar."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import language_scans, strings
from constrained.automaton.characters import LONG
from constrained.automaton.contents import Contents
from constrained.automaton.scanned_tokens import ScannedTokens
from constrained.automaton.scanner import Scanner
from constrained.automaton.string_rows import StringRows
from constrained.automaton.walking import Onto
from constrained.grammar.language import ANYTHING, Language
from constrained.tokens.rows import RowStore, clear_bits, set_bits

Int32 = NDArray[np.int32]
MAX_ROWS = 2048
# So many strings that a language leaves out are taken out of its row one by one.
MAX_STRINGS = 64


@dataclass(slots=True)
class Place:
    """The row of a place where any number of characters may come, and those of less room than `reach` (0: not known yet).

    `missing`: so many characters are enough to end a string behind any of its tokens. `long` are the lengths of its tokens of
    more than `LONG` characters, ascending.
    """

    free: Onto
    reach: int = 0
    missing: int = 0
    long: list[int] = field(default_factory=list)
    limited: dict[int, Onto] = field(default_factory=dict)


class LanguageRows:
    """Rows of the places between the characters of languages over one vocabulary; bounded and safe between threads."""

    def __init__(self, tokens: ScannedTokens, num_words: int, free: StringRows, store: RowStore) -> None:
        self._tokens, self._store, self._num_words = tokens, store, num_words
        self._scanner = Scanner(tokens, num_words, free, store)
        self._places: OrderedDict[tuple[Contents, int], Place] = OrderedDict()
        self._strings = free
        self._lock = threading.RLock()

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
                place.long = self._long_lengths(place)
                language, most = contents.language(lex & strings.INDEX), contents.most_missing(lex)
                inside = None if language is None else language.missing_inside
                place.missing = most if inside is None else min(most, inside)
                place.reach = self._strings.max_len + most
        return place.reach

    def room(self, contents: Contents, lex: int, room: int) -> int:
        """The least room with which a place has the same row as with `room`."""
        reach = self.reach(contents, lex)
        if room >= reach:
            return reach
        most = reach - self._strings.max_len
        long = self._place(contents, lex).long
        longest = max(long[bisect_right(long, room) - 1] if long and long[0] <= room else 0, LONG)
        return min(longest + most, room)

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

    def _long_lengths(self, place: Place) -> list[int]:
        free, words = self._strings.place(strings.FREE, 0), place.free.base.words.view(np.uint32)
        first = np.searchsorted(free.inside_len, LONG, side="right")
        tokens = free.inside[first:]
        taken = (words[tokens >> 5] >> (tokens & 31).astype(np.uint32) & np.uint32(1)).astype(np.bool_)
        lengths: list[int] = np.unique(np.concatenate([free.inside_len[first:][taken], free.exit_len])).tolist()
        return lengths[bisect_right(lengths, LONG) :]

    def _limit(self, contents: Contents, lex: int, place: Place, room: int) -> Onto:
        """The free row without the tokens that are too long, or behind which there is no room for the rest."""
        bare, num_words = self._scanner.bare, self._num_words
        closing, inside = self._store.take(num_words), self._store.take(num_words)
        np.bitwise_and(place.free.under.words, self._free_row(room).under.words, out=closing)
        np.bitwise_and(closing, bare, out=inside)
        sure = room - place.missing
        if sure >= 0:
            inside |= place.free.base.words & self._free_row(sure).base.words & ~bare
        words = inside.view(np.uint32)
        if place.missing:
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
            at, missing = language_scans.try_tokens(
                at,
                lex,
                room,
                tokens,
                self._tokens.flat,
                self._tokens.starts,
                _NO_TRIES,
                contents.table.array,
                contents.ranges.array,
                fits,
            )
            if at == len(tokens):
                found: Int32 = tokens[fits]
                return found
            contents.resolve(int(missing))

    def _scan(self, contents: Contents, lex: int) -> Onto:
        with contents.lock:
            language = contents.language(lex & strings.INDEX)
            assert language is not None  # a place between characters
            parts = language.apart_from_strings()
            if parts is not None and len(parts[1]) <= MAX_STRINGS:
                return self._without(self._core_row(contents, parts[0]), parts[1])
            return self._scanner.scan(contents, lex, language)

    def _core_row(self, contents: Contents, core: Language) -> Onto:
        if core is ANYTHING:
            return self._strings.row(strings.FREE, 0, *self._strings.classes(0, strings.UNBOUNDED))
        return self._place(contents, contents.lex(core)).free

    def _without(self, core: Onto, texts: tuple[str, ...]) -> Onto:
        """The row of a language without some strings, where whatever begins one of them begins others too."""
        inside, closing = (self._store.take(self._num_words).view(np.uint32) for _ in range(2))
        inside[:], closing[:] = core.base.words.view(np.uint32), core.under.words.view(np.uint32)
        for text in texts:
            tokens = self._strings.spelled(text.encode())
            clear_bits(closing, tokens)
            clear_bits(inside, tokens)
        return Onto(self._store.bits(inside), self._store.bits(closing))


_NO_TRIES = np.zeros((1, 5), np.int32)
