"""String languages as rows of the kernel's table: a language steps by code points, its rows by the bytes of UTF-8.

A row stands for a language, or for a place inside a character. Rows are filled when a language is first met, together with
the inner rows that its characters need; a language that has become "anything" is the free string, whose mask rows all
grammars share.
"""

from __future__ import annotations

from constrained.automaton import strings
from constrained.automaton.strings import BEGINS, BYTE_0, ENDS, RANGE_FIRST, RANGE_STOP, UNKNOWN
from constrained.automaton.tables import Table
from constrained.errors import FuelError
from constrained.grammar.language import ANYTHING, Language, LanguageFuelError

# Code points by the number of bytes that UTF-8 takes: the first, the last, and the leading bits of the first byte.
_WIDTHS = ((0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))

# (least, most, lex): code points, or what is left of them, that lead to a place.
Span = tuple[int, int, int]


class Contents:
    """Languages by index, and the rows of their automata."""

    def __init__(self, *, permissive: bool = False) -> None:
        self.table = Table(BYTE_0 + 256, 4)
        self.ranges = Table(2, 16)
        self.ranges.add((int(permissive), 0))  # `strings.SPELLING`
        self._languages: list[Language | None] = []
        self._index: dict[Language, int] = {}
        self._inner: dict[tuple[Span, ...], int] = {}

    def lex(self, language: Language) -> int:
        """The lexeme position at the beginning of `language`; its row may still be empty."""
        if language is ANYTHING:
            return strings.FREE
        found = self._index.get(language)
        if found is None:
            found = self._index[language] = self.table.add()
            self._languages.append(language)
        return strings.DFA | found

    def language(self, index: int) -> Language | None:
        """The language that a row stands for; None inside a character."""
        return self._languages[index]

    def is_unknown(self, index: int) -> bool:
        """Whether a row is still empty."""
        return bool(self.table.array[index, ENDS] == UNKNOWN)

    def resolve(self, index: int) -> None:
        """Fill the row of a language. Raises `FuelError` where its automaton grows too large."""
        language = self._languages[index]
        if language is None or not self.is_unknown(index):
            return
        try:
            steps = language.steps()
        except LanguageFuelError as error:
            raise FuelError(f"the strings of a pattern or format: {error}") from error
        spans = [(low, high, self.lex(after)) for low, high, after in steps]
        first = self.ranges.size
        for low, high, _ in spans:
            self.ranges.add((low, high))
        edges = {byte: lex for low, high, lex in spans for byte in range(low, min(high, 0x7F) + 1)}
        for width, (least, most, lead) in enumerate(_WIDTHS, 1):
            inside = [(max(low, least), min(high, most), lex) for low, high, lex in spans if low <= most and high >= least]
            edges |= self._split(tuple(inside), width, lead)
        row = self.table.array[index]
        row[BEGINS], row[RANGE_FIRST], row[RANGE_STOP] = 1, first, self.ranges.size
        for byte, lex in edges.items():
            row[BYTE_0 + byte] = lex
        row[ENDS] = int(language.accepts_empty)

    def _split(self, spans: tuple[Span, ...], width: int, lead: int) -> dict[int, int]:
        """The bytes that begin the spans, each with the place of what is left of them: `width` more bytes of six bits."""
        edges: dict[int, list[Span]] = {}
        size = 1 << (6 * width)
        for low, high, lex in spans:
            for part in range(low // size, high // size + 1):
                start = part * size
                edges.setdefault(lead | part, []).append((max(low - start, 0), min(high - start, size - 1), lex))
        return {byte: self._inside(tuple(rest), width - 1) for byte, rest in edges.items()}

    def _inside(self, spans: tuple[Span, ...], width: int) -> int:
        """The place inside a character whose rest, `width + 1` bytes, lies in one of the spans."""
        name = (*spans, (width, 0, 0))
        found = self._inner.get(name)
        if found is None:
            edges = (
                self._split(spans, width, 0x80) if width else {0x80 | v: lex for a, b, lex in spans for v in range(a, b + 1)}
            )
            found = self._inner[name] = self.table.add()
            self._languages.append(None)
            row = self.table.array[found]
            row[ENDS] = row[BEGINS] = 0
            for byte, lex in edges.items():
                row[BYTE_0 + byte] = lex
        return strings.DFA | found
