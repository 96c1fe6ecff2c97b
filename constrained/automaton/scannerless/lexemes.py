"""Terminals byte by byte: positions inside them as rows of a table, made when first met.

A position of a string language is what may still follow it, or a place inside a character; a position of a JSON Schema is
a state of its own automaton (`documents`). Every position leads to the end of its terminal.
"""

from __future__ import annotations

from collections.abc import Hashable

from constrained.automaton.scannerless.documents import Document
from constrained.automaton.scannerless.scan import BYTE_0, COLUMNS, DEAD, ENDS
from constrained.automaton.tables import Table
from constrained.errors import GrammarFuelError
from constrained.grammar.context_free.grammar import Strings
from constrained.grammar.context_free.words import first_word, ranked
from constrained.grammar.language import LanguageFuelError

# Code points by the number of bytes that UTF-8 takes: the first, the last, and the leading bits of the first byte.
_WIDTHS = ((0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))

# (least, most, language): code points, or what is left of them, that lead to strings.
Span = tuple[int, int, Strings]


class Between:
    """Between characters, with strings to come. Compared by them."""

    __slots__ = ("strings",)

    def __init__(self, strings: Strings) -> None:
        self.strings = strings

    @property
    def key(self) -> Hashable:
        return self.strings

    def expand(self) -> tuple[bool, dict[int, Between | Inside]]:
        spans = self.strings.steps()
        steps: dict[int, Between | Inside] = {}
        for low, high, after in spans:
            position = Between(after)
            for byte in range(low, min(high, 0x7F) + 1):
                steps[byte] = position
        for width, (least, most, lead) in enumerate(_WIDTHS, 1):
            inside = [(max(low, least), min(high, most), after) for low, high, after in spans if low <= most and high >= least]
            steps |= _split(inside, width, lead)
        return self.strings.accepts_empty, steps

    def closing(self) -> bytes:
        return first_word(self.strings)


class Inside:
    """Inside a character whose rest, `width` bytes of six bits, lies in one of `spans`."""

    __slots__ = ("spans", "width")

    def __init__(self, spans: tuple[Span, ...], width: int) -> None:
        self.spans = spans
        self.width = width

    @property
    def key(self) -> Hashable:
        return (self.spans, self.width)

    def expand(self) -> tuple[bool, dict[int, Between | Inside]]:
        return False, _split(list(self.spans), self.width - 1, 0x80)

    def closing(self) -> bytes:
        rests = (_continuation(low, self.width) + first_word(after) for low, _, after in self.spans)
        return min(map(ranked, rests))[2]


def _split(spans: list[Span], width: int, lead: int) -> dict[int, Between | Inside]:
    """The bytes that begin the spans, each with the place of what is left of them: `width` more bytes."""
    if width == 0:
        return {lead | value: Between(after) for low, high, after in spans for value in range(low, high + 1)}
    edges: dict[int, list[Span]] = {}
    size = 1 << (6 * width)
    for low, high, after in spans:
        for part in range(low // size, high // size + 1):
            start = part * size
            edges.setdefault(lead | part, []).append((max(low - start, 0), min(high - start, size - 1), after))
    return {byte: Inside(tuple(rest), width) for byte, rest in edges.items()}


def _continuation(value: int, width: int) -> bytes:
    return bytes(0x80 | (value >> (6 * shift)) & 0x3F for shift in range(width - 1, -1, -1))


Position = Between | Inside | Document


class Lexemes:
    """Positions by index, and the table of their steps; `kind` is what the caller gave, for errors."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.table = Table(COLUMNS)
        self.positions: list[Position] = []
        self._names: list[str] = []
        self._index: dict[Hashable, int] = {}
        self._closings: dict[int, bytes] = {}
        self._steps: list[dict[int, int] | None] = []  # the known steps of the positions, quicker than rows

    def index(self, position: Position, name: str) -> int:
        """The index of a position of the terminal `name`; its row may still be empty."""
        found = self._index.get(position.key)
        if found is None:
            found = self._index[position.key] = self.table.add()
            self.positions.append(position)
            self._names.append(name)
            self._steps.append(None)
        return found

    def resolve(self, index: int) -> dict[int, int]:
        """Fill the row of a position; of a document only whether it may end. The known steps. Raises `GrammarFuelError`."""
        known = self._steps[index]
        if known is not None:
            return known
        position = self.positions[index]
        if isinstance(position, Document):
            self.table.array[index, ENDS] = int(position.ends)
            known = self._steps[index] = {}
            return known
        try:
            ends, steps = position.expand()
        except LanguageFuelError as error:
            raise GrammarFuelError(str(error), self._kind, self._names[index]) from error
        targets = {after: self.index(after, self._names[index]) for after in dict.fromkeys(steps.values())}
        known = self._steps[index] = {byte: targets[after] for byte, after in steps.items()}
        row = self.table.array[index]
        row[BYTE_0:] = DEAD
        row[[BYTE_0 + byte for byte in known]] = list(known.values())
        row[ENDS] = int(ends)
        return known

    def fill(self, index: int, byte: int) -> None:
        """Fill the row of a position, and the row that one byte leads to."""
        if (after := self.step(index, byte)) >= 0:
            self.resolve(after)

    def ends(self, index: int) -> bool:
        """Whether the terminal may end here."""
        self.resolve(index)
        return bool(self.table.array[index, ENDS])

    def step(self, index: int, byte: int) -> int:
        """The position after one byte; negative where it leads nowhere."""
        steps = self._steps[index]
        if steps is None:
            steps = self.resolve(index)
        after = steps.get(byte, DEAD)
        position = self.positions[index]
        if after == DEAD and isinstance(position, Document):
            stepped = position.step(byte)
            after = DEAD if stepped is None else self.index(stepped, self._names[index])
            self.table.array[index, BYTE_0 + byte] = steps[byte] = after
        return after

    def next_bytes(self, index: int) -> list[int]:
        """The bytes that lead on from a position, ascending."""
        position = self.positions[index]
        return position.next_bytes() if isinstance(position, Document) else sorted(self.resolve(index))

    def closing(self, index: int) -> bytes:
        """The shortest way to end the terminal from a position."""
        known = self._closings.get(index)
        if known is None:
            try:
                known = self._closings[index] = self.positions[index].closing()
            except LanguageFuelError as error:
                raise GrammarFuelError(str(error), self._kind, self._names[index]) from error
        return known
