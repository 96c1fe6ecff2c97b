"""String languages as rows of the kernel's table: a language steps by code points, its rows by the bytes of UTF-8.

A row stands for a language, or for a place inside a character. Rows are filled when a language is first met, together with
the inner rows that its characters need; a language that has become "anything" is the free string, whose mask rows all
grammars share. The rows themselves are shared by all grammars of a process (`shared_contents`).
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np

from constrained.automaton import characters, strings
from constrained.automaton.characters import ENDLESS, FIRST_LEAD
from constrained.automaton.strings import (
    BEGINS,
    BYTE_0,
    ENDS,
    LANGUAGE_COLUMNS,
    LOOP_0,
    LOOP_WORDS,
    RANGE_FIRST,
    RANGE_STOP,
    RUN,
    SHORTEST,
    UNCOUNTED,
    UNKNOWN,
)
from constrained.automaton.tables import Int32, Shared
from constrained.errors import FuelError
from constrained.grammar.language import ANYTHING, Language, LanguageFuelError
from constrained.grammar.language.charsets import Ranges
from constrained.options import Spelling

# Code points by the number of bytes that UTF-8 takes: the first, the last, and the leading bits of the first byte.
_WIDTHS = ((0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))

# Bytes inside a character, but for its first.
FIRST_INSIDE = 0x80
_TAILS = slice(BYTE_0 + FIRST_INSIDE, BYTE_0 + FIRST_LEAD)
_NO_RUN = array("i", bytes(4 * (BYTE_0 - RUN)))

_T = TypeVar("_T")
# (least, most, lex): code points, or what is left of them, that lead to a place.
Span = tuple[int, int, int]

# Where the characters beyond ASCII lead to more places, the rows behind their first bytes are made one by one.
MANY_PLACES = 4
# Rows of about a kilobyte after which new grammars begin a new table.
MAX_ROWS = 32_768


class Contents:
    """Languages by index, and the rows of their automata. Safe between threads; a row once filled stays as it is."""

    def __init__(self, *, permissive: bool = False) -> None:
        self.table = Shared(LANGUAGE_COLUMNS, 4)
        self.ranges = Shared(strings.RANGE_COLUMNS, 16)
        self.ranges.add((int(permissive), 0, 0))  # `strings.SPELLING`
        self.lock = threading.RLock()
        self._languages: list[Language | None] = []
        self._index: dict[tuple[Language, bool], int] = {}
        self._behind: dict[int, set[int]] = {}
        self._leads: dict[tuple[Span, ...], Int32] = {}
        self._inner: dict[tuple[Span, ...], int] = {}

    def lex(self, language: Language, *, counted: bool = False) -> int:
        """The lexeme position at the beginning of `language`; its row may still be empty.

        `counted`: lengths are counted beside it. Where it takes a search to tell how short its strings are, it has rows of its
        own for that. Raises `FuelError`.
        """
        if language is ANYTHING:
            return strings.FREE
        key = (language, counted and not language.is_exact)
        found = self._index.get(key)
        if found is None:
            with self.lock:
                found = self._index.get(key)
                if found is None:
                    found = self._index[key] = self._add_language(*key)
        return strings.DFA | found

    def _add_language(self, language: Language, searched: bool) -> int:
        needed = _searched(language.shortest_len) or 0 if searched or language.is_exact else UNCOUNTED
        index = self._add(language, needed)
        if searched:
            self._behind[index] = set()
        ranges, count, _ = self.run(index)
        if count > 0:
            place = index * LANGUAGE_COLUMNS
            self.table.cells[place + RUN] = count
            words = characters.all_of(ranges).to_bytes(4 * LOOP_WORDS, "little")
            self.table.cells[place + LOOP_0 : place + BYTE_0] = array("i", words)
        return index

    def run(self, index: int) -> tuple[Ranges, int, bool]:
        """Characters of which so many lead on, whatever they are, from the beginning of a language; and if no more do.

        Where lengths are counted it must be known how many more will be missing then (`most_missing`).
        """
        language = self._languages[index]
        if language is None:
            return (), 0, False
        ranges, count, missing, tight = language.run
        if missing == inf and index in self._behind:
            return (), 0, False
        return ranges, int(count) if count < ENDLESS else ENDLESS, tight

    def _add(self, language: Language | None, needed: int) -> int:
        index = self.table.add()
        place = index * LANGUAGE_COLUMNS
        self.table.cells[place + RUN : place + BYTE_0] = _NO_RUN
        self.table.cells[place + SHORTEST] = needed
        self._languages.append(language)
        return index

    def most_missing(self, lex: int) -> int:
        """The most characters that must still come at a place, or wherever tokens lead to from there.

        Where that takes a search, the place must have been walked before, as far as tokens go.
        """
        most, seen, pending = 0, {lex & strings.INDEX}, [lex & strings.INDEX]
        while pending:
            index = pending.pop()
            language = self._languages[index]
            at_once = None if language is None else language.most_missing
            if at_once is not None or language is None:
                most = max(most, at_once or 0)
                continue
            most = max(most, self.needed(strings.DFA | index), int(language.run.missing) if self.run(index)[1] else 0)
            new = self._behind[index] - seen
            seen |= new
            pending += new
        return most

    def needed(self, lex: int) -> int:
        """How many characters must still come at least from a place; `UNCOUNTED` where that is not known."""
        return self.table.cells[(lex & strings.INDEX) * LANGUAGE_COLUMNS + SHORTEST] if lex >= strings.DFA else 0

    def language(self, index: int) -> Language | None:
        """The language that a row stands for; None inside a character."""
        return self._languages[index]

    def begins(self, lex: int) -> bool:
        """Whether a lexeme position is one of a language, between characters."""
        return lex >= strings.DFA and self._languages[lex & strings.INDEX] is not None

    def is_unknown(self, index: int) -> bool:
        """Whether a row is still empty."""
        return self.table.cells[index * LANGUAGE_COLUMNS + ENDS] == UNKNOWN

    def resolve(self, index: int) -> None:
        """Fill the row of a language. Raises `FuelError` where its automaton grows too large."""
        with self.lock:
            language = self._languages[index]
            if language is not None and self.is_unknown(index):
                self._fill(index, language)

    def _fill(self, index: int, language: Language) -> None:
        counted = self.needed(strings.DFA | index) < UNCOUNTED
        steps = _searched(language.steps)
        lexes = {after: self.lex(after, counted=counted) for after in dict.fromkeys([after for _, _, after in steps])}
        spans = [(low, high, lexes[after]) for low, high, after in steps]
        if index in self._behind:
            self._behind[index] = {lex & strings.INDEX for lex in lexes.values() if lex >= strings.DFA}
        first = self.ranges.size
        rooms = {lex: self.needed(lex) + 1 for lex in lexes.values()}
        self.ranges.extend([number for low, high, lex in spans for number in (low, high, rooms[lex])])
        if spans and spans[-1][1] >= 0x80:
            leads = self._leads_of(tuple([(max(low, 0x80), high, lex) for low, high, lex in spans if high >= 0x80]))
            self.table.array[index, BYTE_0 + FIRST_LEAD :] = leads
        cells, place = self.table.cells, index * LANGUAGE_COLUMNS  # the table may have moved
        for low, high, lex in spans:
            if low < 0x80:
                stop = min(high, 0x7F) + 1
                cells[place + BYTE_0 + low : place + BYTE_0 + stop] = array("i", [lex]) * (stop - low)
        cells[place + BEGINS], cells[place + RANGE_FIRST], cells[place + RANGE_STOP] = 1, first, self.ranges.size
        cells[place + ENDS] = int(language.accepts_empty)

    def _leads_of(self, spans: tuple[Span, ...]) -> Int32:
        """The places behind the first bytes, from `FIRST_LEAD` on, of characters beyond ASCII."""
        found = self._leads.get(spans)
        if found is None:
            places = {lex: at for at, lex in enumerate(dict.fromkeys([lex for _, _, lex in spans]))}
            if len(places) <= MANY_PLACES:
                shape = _shaped(tuple([(low, high, places[lex]) for low, high, lex in spans]))
                found = self._leads_to(list(places), shape)
            else:
                found = self._new_leads(spans)
            self._leads[spans] = found
        return found

    def _new_leads(self, spans: tuple[Span, ...]) -> Int32:
        found = np.full(0x100 - FIRST_LEAD, -1, np.int32)
        for width, (least, most, lead) in enumerate(_WIDTHS, 1):
            inside = tuple((max(low, least), min(high, most), lex) for low, high, lex in spans if low <= most and high >= least)
            for first, last, lex in self._split(inside, width, lead):
                found[first - FIRST_LEAD : last - FIRST_LEAD + 1] = lex
        return found

    def _leads_to(self, lexes: list[int], shape: _Shape) -> Int32:
        """The places behind the first bytes of characters of a shape that lead to some places."""
        first, count = self.table.size, len(shape.rows)
        self.table.reserve(count)
        rows = self.table.array[first : first + count]
        places = np.array([*lexes, *range(strings.DFA | first, (strings.DFA | first) + count), -1], np.int32)
        rows[:, _TAILS] = places[shape.rows]
        rows[:, RUN:BYTE_0] = rows[:, ENDS : BEGINS + 1] = 0
        needed = [min(self.needed(lex) + 1, UNCOUNTED) for lex in lexes]
        rows[:, SHORTEST] = (
            needed[0] if len(set(needed)) == 1 else [min(needed[at] for at in behind) for behind in shape.behind]
        )
        self.table.size += count
        self._languages += [None] * count
        found: Int32 = places[shape.leads]
        return found

    def _split(self, spans: tuple[Span, ...], width: int, lead: int) -> list[Span]:
        """The bytes that begin the spans, in ranges, each with the place of what is left of them: `width` more bytes."""
        runs: list[Span] = []
        cut: dict[int, tuple[Span, ...]] = {}
        size = 1 << (6 * width)
        for low, high, lex in spans:
            first, last = low // size, high // size
            for part in {first, last}:
                start = part * size
                rest = (max(low - start, 0), min(high - start, size - 1), lex)
                if rest[0] > 0 or rest[1] < size - 1:
                    cut[part] = (*cut.get(part, ()), rest)
            first += first in cut
            last -= last in cut
            if first <= last:  # nothing is cut off these
                runs.append((lead | first, lead | last, self._inside(((0, size - 1, lex),), width - 1)))
        return runs + [(lead | part, lead | part, self._inside(rest, width - 1)) for part, rest in cut.items()]

    def _inside(self, spans: tuple[Span, ...], width: int) -> int:
        """The place inside a character whose rest, `width + 1` bytes, lies in one of the spans."""
        needed = min(min(self.needed(lex) for _, _, lex in spans) + 1, UNCOUNTED)
        name = (*spans, (width, needed, 0))
        found = self._inner.get(name)
        if found is None:
            runs = self._split(spans, width, 0x80) if width else [(0x80 | low, 0x80 | high, lex) for low, high, lex in spans]
            found = self._inner[name] = self._add(None, needed)
            row = self.table.array[found]
            row[ENDS] = row[BEGINS] = 0
            for low, high, lex in runs:
                row[BYTE_0 + low : BYTE_0 + high + 1] = lex
        return strings.DFA | found


class _Shape(NamedTuple):
    """How the bytes of characters beyond ASCII lead to n places.

    `leads` int32 [64], of the first bytes from `FIRST_LEAD` on, and `rows` int32 [m, 64], of bytes from `FIRST_INSIDE` on at
    places inside a character: i for place i behind it, n + i for the place of row i, -1 for none. `behind`: of each row, which
    of the n places are behind it.
    """

    leads: Int32
    rows: Int32
    behind: list[list[int]]


@lru_cache(maxsize=256)  # classes of characters are few
def _shaped(spans: tuple[Span, ...]) -> _Shape:
    """The shape of characters that lead to places, which are numbered from 0 on."""
    apart, count = Contents(), max(place for _, _, place in spans) + 1
    for _ in range(count):
        apart._add(None, 0)
    leads = apart._new_leads(tuple((low, high, strings.DFA | place) for low, high, place in spans))
    leads, rows = (
        np.where(part < 0, -1, part & strings.INDEX) for part in (leads, apart.table.array[count : apart.table.size, _TAILS])
    )
    behind = list[list[int]]()
    for row in rows:  # a row leads to rows before it
        after = set(row[row >= 0].tolist())
        behind.append(sorted({place for at in after for place in ([at] if at < count else behind[at - count])}))
    return _Shape(leads, rows, behind)


def _searched(question: Callable[[], _T]) -> _T:
    try:
        return question()
    except LanguageFuelError as error:
        raise FuelError(f"the strings of a pattern or format: {error}") from error


_shared: dict[Spelling, Contents] = {}
_lock = threading.Lock()


def shared_contents(spelling: Spelling) -> Contents:
    """The contents that a new grammar uses: those of the grammars before it, as long as they are not too large."""
    with _lock:
        found = _shared.get(spelling)
        if found is None or found.table.size > MAX_ROWS:
            found = _shared[spelling] = Contents(permissive=spelling == "permissive")
        return found
