"""Which value of an enum a half-read scalar must become: sorted once per location, then narrowed by bisection.

A string is known by its decoded prefix. A number may be spelled in many ways (`10`, `1e1`, `100e-1`), so only its sign and
its significant digits count; where they leave more than one value, its end decides.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from constrained.guide import Location
from constrained.stream.ops import Scalar

_CACHE_SIZE = 256

Entry = tuple[str, Any]


class Candidates:
    """The entries, sorted by key, whose key begins with what was read; `fill` pads keys on the right without end."""

    def __init__(self, entries: Sequence[Entry], fill: str = "") -> None:
        self._entries = entries
        self._fill = fill
        self._low, self._high = 0, len(entries)
        self._len = 0

    @property
    def count(self) -> int:
        return self._high - self._low

    @property
    def first(self) -> Any:
        """The value of the shortest key left."""
        return self._entries[self._low][1]

    @property
    def is_whole(self) -> bool:
        """Whether what was read is a whole key, and not only its beginning."""
        return self.count > 0 and len(self._entries[self._low][0]) == self._len

    def advance(self, piece: str) -> None:
        """Goes on with the candidates that have `piece` next. Logarithmic in their number."""
        start, end = self._len, self._len + len(piece)

        def part(entry: Entry) -> str:
            return entry[0][start:end].ljust(len(piece), self._fill) if self._fill else entry[0][start:end]

        self._low = bisect_left(self._entries, piece, self._low, self._high, key=part)
        self._high = bisect_right(self._entries, piece, self._low, self._high, key=part)
        self._len = end


class NumberCandidates:
    """Candidates of a number, from the pieces of its lexeme after the sign."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._candidates = Candidates(entries, fill="0")
        self._in_exponent = False
        self._significant = False

    @property
    def count(self) -> int:
        return self._candidates.count

    @property
    def first(self) -> Any:
        return self._candidates.first

    def advance(self, piece: str) -> None:
        """Takes the next characters of the lexeme."""
        if self._in_exponent:
            return
        mantissa, exponent, _ = piece.lower().partition("e")
        self._in_exponent = bool(exponent)
        digits = mantissa.replace(".", "")
        digits = digits if self._significant else digits.lstrip("0")
        if digits:
            self._significant = True
            self._candidates.advance(digits)


class EnumIndex:
    """The scalars that one location may hold, ready to be narrowed."""

    def __init__(self, values: Iterable[Any]) -> None:
        distinct = list(values)
        self._literals = [value for value in distinct if value is None or isinstance(value, bool)]
        self._texts = frozenset(value for value in distinct if isinstance(value, str))
        self._numbers = frozenset(value for value in distinct if _is_number(value))
        self._strings = sorted((text, text) for text in self._texts)
        self._by_sign = {negative: _significands(self._numbers, negative=negative) for negative in (False, True)}

    def __contains__(self, value: Scalar) -> bool:
        """Equality is JSON's: 1 is 1.0 and is not true."""
        if value is None or isinstance(value, bool):
            return any(value is literal for literal in self._literals)
        return value in (self._texts if isinstance(value, str) else self._numbers)

    def strings(self) -> Candidates:
        return Candidates(self._strings)

    def numbers(self, *, negative: bool) -> NumberCandidates | None:
        """The candidates of one sign, zero under both; None where one lies beyond the doubles, so that only the end tells."""
        if any(math.isinf(number) for number in self._numbers if isinstance(number, float)):
            return None
        return NumberCandidates(self._by_sign[negative])


class EnumCache:
    """The index of each finite location. Bounded: it forgets everything when it is full."""

    def __init__(self) -> None:
        self._indices: dict[int, tuple[Location, EnumIndex]] = {}

    def of(self, location: Location | None) -> EnumIndex | None:
        """The index of `location`; None where its values are not finitely many."""
        if location is None or location.enum is None:
            return None
        # Kept with its location, whose id therefore stays its own.
        kept = self._indices.get(id(location))
        if kept is None:
            if len(self._indices) >= _CACHE_SIZE:
                self._indices.clear()
            kept = self._indices[id(location)] = (location, EnumIndex(location.enum))
        return kept[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _significands(numbers: Iterable[int | float], *, negative: bool) -> list[Entry]:
    """The numbers of one sign (zero has both) by their significant digits, without zeros at either end."""
    entries = []
    for number in numbers:
        if math.isfinite(number) and (number == 0 or (number < 0) == negative):
            digits = Decimal(repr(number) if isinstance(number, float) else number).as_tuple().digits
            entries.append(("".join(map(str, digits)).strip("0"), number))
    return sorted(entries, key=lambda entry: entry[0])
