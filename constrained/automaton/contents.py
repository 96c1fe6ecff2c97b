"""String languages as rows of the kernel's table: a language steps by code points, its rows by the bytes of UTF-8.

A row stands for a language, or for a place inside a character. Rows are filled when a language is first met, together with
the inner rows that its characters need; a language that has become "anything" is the free string, whose mask rows all
grammars share. The rows themselves are shared by all grammars of a process (`shared_contents`).
"""

from __future__ import annotations

import threading
from bisect import bisect_left

import numpy as np

from constrained.automaton import strings
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
from constrained.automaton.tables import Table
from constrained.errors import FuelError
from constrained.grammar.language import ANYTHING, Language, LanguageFuelError
from constrained.options import Spelling

# Code points by the number of bytes that UTF-8 takes: the first, the last, and the leading bits of the first byte.
_WIDTHS = ((0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))

# (least, most, lex): code points, or what is left of them, that lead to a place.
Span = tuple[int, int, int]

# Rows of about a kilobyte after which new grammars begin a new table.
MAX_ROWS = 32_768
# How many characters ahead are looked at, and the run of a circle; sets of fewer characters are not worth a look.
MAX_RUN, ENDLESS, WIDE = 32, 1 << 20, 10


class Contents:
    """Languages by index, and the rows of their automata. Safe between threads; a row once filled stays as it is."""

    def __init__(self, *, permissive: bool = False) -> None:
        self.table = Table(LANGUAGE_COLUMNS, 4)
        self.ranges = Table(strings.RANGE_COLUMNS, 16)
        self.ranges.add((int(permissive), 0, 0))  # `strings.SPELLING`
        self._wide: dict[int, tuple[int, int]] = {}
        self.lock = threading.RLock()
        self._languages: list[Language | None] = []
        self._index: dict[Language, int] = {}
        self._targets: dict[int, set[int]] = {}
        self._inner: dict[tuple[Span, ...], int] = {}

    def lex(self, language: Language) -> int:
        """The lexeme position at the beginning of `language`; its row may still be empty."""
        if language is ANYTHING:
            return strings.FREE
        found = self._index.get(language)
        if found is None:
            with self.lock:
                found = self._index.get(language)
                if found is None:
                    needed = language.known_shortest_len
                    found = self._index[language] = self._add(language, UNCOUNTED if needed is None else needed)
        return strings.DFA | found

    def _add(self, language: Language | None, needed: int) -> int:
        index = self.table.add()
        self.table.array[index, RUN:BYTE_0] = 0
        self.table.cells[index * LANGUAGE_COLUMNS + SHORTEST] = needed
        self._languages.append(language)
        return index

    def needed(self, lex: int) -> int:
        """How many characters must still come at least from a place; `UNCOUNTED` where that is not known."""
        return self.table.cells[(lex & strings.INDEX) * LANGUAGE_COLUMNS + SHORTEST] if lex >= strings.DFA else 0

    def most_needed(self, lex: int) -> int:
        """The most characters that must still come at any place that is known to lie behind a place, or at itself."""
        seen, pending = {lex & strings.INDEX}, [lex & strings.INDEX]
        while pending:
            new = self._targets.get(pending.pop(), _NOTHING) - seen
            seen |= new
            pending += new
        return max(self.needed(strings.DFA | index) for index in seen)

    def language(self, index: int) -> Language | None:
        """The language that a row stands for; None inside a character."""
        return self._languages[index]

    def begins(self, lex: int) -> bool:
        """Whether a lexeme position is one of a language, between characters."""
        return lex >= strings.DFA and self._languages[lex & strings.INDEX] is not None

    def is_unknown(self, index: int) -> bool:
        """Whether a row is still empty."""
        return bool(self.table.array[index, ENDS] == UNKNOWN)

    def resolve(self, index: int) -> None:
        """Fill the row of a language. Raises `FuelError` where its automaton grows too large."""
        with self.lock:
            language = self._languages[index]
            if language is not None and self.is_unknown(index):
                self._fill(index, language)

    def _fill(self, index: int, language: Language) -> None:
        try:
            steps = language.steps()
        except LanguageFuelError as error:
            raise FuelError(f"the strings of a pattern or format: {error}") from error
        spans = [(low, high, self.lex(after)) for low, high, after in steps]
        if self.needed(strings.DFA | index) < UNCOUNTED:
            for (_, _, after), (_, _, lex) in zip(steps, spans, strict=True):
                if self.needed(lex) == UNCOUNTED:
                    self.table.cells[(lex & strings.INDEX) * LANGUAGE_COLUMNS + SHORTEST] = after.shortest_len() or 0
        first = self.ranges.size
        for low, high, lex in spans:
            self.ranges.add((low, high, self.needed(lex) + 1))
        edges = {byte: lex for low, high, lex in spans for byte in range(low, min(high, 0x7F) + 1)}
        for width, (least, most, lead) in enumerate(_WIDTHS, 1):
            inside = [(max(low, least), min(high, most), lex) for low, high, lex in spans if low <= most and high >= least]
            edges |= self._split(tuple(inside), width, lead)
        row = self.table.array[index]
        row[BEGINS], row[RANGE_FIRST], row[RANGE_STOP] = 1, first, self.ranges.size
        for byte, lex in edges.items():
            row[BYTE_0 + byte] = lex
        self._wide[index] = _widest(spans)
        self._targets[index] = {lex & strings.INDEX for _, _, lex in spans if lex >= strings.DFA}
        row[ENDS] = int(language.accepts_empty)

    def look_ahead(self, lex: int) -> None:
        """Find out how far any characters of a large set lead on from a place and from those behind it."""
        chain: list[int] = []
        at = lex
        while at >= strings.DFA and (index := at & strings.INDEX) not in chain and len(chain) < MAX_RUN:
            self.resolve(index)
            if self._wide[index][1].bit_count() < WIDE:
                break
            chain.append(index)
            at = self._wide[index][0]
        run, common = 0, _ALL
        if at < strings.DFA:
            run = ENDLESS
        elif at & strings.INDEX in chain:  # a circle: characters that lead on from everywhere in it
            run = ENDLESS
            for index in chain[chain.index(at & strings.INDEX) :]:
                common &= self._wide[index][1]
        for index in reversed(chain):
            characters = self._wide[index][1]
            run, common = min(run + 1, ENDLESS), common & characters
            row = self.table.array[index]
            row[LOOP_0:BYTE_0] = np.frombuffer(common.to_bytes(4 * LOOP_WORDS, "little"), np.int32)
            row[RUN] = run

    def num_looping(self, lex: int) -> int:
        """How many characters of ASCII lead on as `look_ahead` found."""
        row = self.table.array[lex & strings.INDEX]
        return sum(int(word & 0xFFFFFFFF).bit_count() for word in row[LOOP_0 : LOOP_0 + 4].tolist())

    def _split(self, spans: tuple[Span, ...], width: int, lead: int) -> dict[int, int]:
        """The bytes that begin the spans, each with the place of what is left of them: `width` more bytes of six bits."""
        rests: dict[int, tuple[Span, ...]] = {}
        size = 1 << (6 * width)
        for low, high, lex in spans:
            first, last = low // size, high // size
            whole = ((0, size - 1, lex),)  # of the parts between, which are most, nothing is cut off
            for part in range(first, last + 1):
                rest = whole
                if part in (first, last):
                    start = part * size
                    rest = ((max(low - start, 0), min(high - start, size - 1), lex),)
                byte = lead | part
                rests[byte] = rests[byte] + rest if byte in rests else rest
        places = {rest: self._inside(rest, width - 1) for rest in dict.fromkeys(rests.values())}
        return {byte: places[rest] for byte, rest in rests.items()}

    def _inside(self, spans: tuple[Span, ...], width: int) -> int:
        """The place inside a character whose rest, `width + 1` bytes, lies in one of the spans."""
        needed = min(min(self.needed(lex) for _, _, lex in spans) + 1, UNCOUNTED)
        name = (*spans, (width, needed, 0))
        found = self._inner.get(name)
        if found is None:
            edges = (
                self._split(spans, width, 0x80) if width else {0x80 | v: lex for a, b, lex in spans for v in range(a, b + 1)}
            )
            found = self._inner[name] = self._add(None, needed)
            row = self.table.array[found]
            row[ENDS] = row[BEGINS] = 0
            for byte, lex in edges.items():
                row[BYTE_0 + byte] = lex
        return strings.DFA | found


def _widest(spans: list[Span]) -> tuple[int, int]:
    """The place that most characters lead to, by ASCII, and the set of those characters (`strings.LOOP_WORDS`)."""
    sets: dict[int, int] = {}
    for low, high, lex in spans:
        found = ((2 << min(high, 0x7F)) - (1 << low)) & _PLAIN if low < 0x80 else 0
        if high >= 0x80:
            for _, most, bit in _LEADS[bisect_left(_LEADS, (low, 0, 0)) :]:
                if most > high:
                    break
                found |= bit
        sets[lex] = sets.get(lex, 0) | found
    return max(sets.items(), key=lambda item: (item[1] & _PLAIN).bit_count(), default=(strings.DFA, 0))


# ASCII that a string may hold as it is, as bits; the characters of each leading byte of UTF-8, with its bit; all bits.
_PLAIN = (1 << 0x80) - (1 << 0x20) - (1 << strings.QUOTE) - (1 << strings.BACKSLASH)
_LEADS = sorted(
    (
        max(least, part << shift),
        min(most, ((part + 1) << shift) - 1, 0xD7FF if lead | part == 0xED else most),
        1 << (128 + (lead | (part & 0x3F)) - 0xC0),
    )
    for (least, most, lead), shift in zip(_WIDTHS, (6, 12, 18), strict=True)
    for part in range(least >> shift, (most >> shift) + 1)
)
_NOTHING: frozenset[int] = frozenset()
_ALL = (1 << (32 * LOOP_WORDS)) - 1


_shared: dict[Spelling, Contents] = {}
_lock = threading.Lock()


def shared_contents(spelling: Spelling) -> Contents:
    """The contents that a new grammar uses: those of the grammars before it, as long as they are not too large."""
    with _lock:
        found = _shared.get(spelling)
        if found is None or found.table.size > MAX_ROWS:
            found = _shared[spelling] = Contents(permissive=spelling == "permissive")
        return found
