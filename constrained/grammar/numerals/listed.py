"""Finitely many magnitudes: what an enum or a constant leaves, where each may be spelled in every way."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from math import floor

from constrained.grammar.numerals.magnitudes import Powers, num_digits, place


class Listed:
    """The magnitudes `values`."""

    is_everything = False
    spare: int | None = None

    def __init__(self, values: Iterable[Fraction]) -> None:
        self._values = sorted(values)
        # The positive ones by their significant digits alone: (0.123..., place).
        self._digits = sorted((v / Fraction(10) ** place(v), place(v)) for v in self._values if v > 0)
        sizes = [num_digits(floor(v)) if v >= 1 else 1 for v in self._values]
        self.whole_lens: tuple[int, int | None] = min(sizes, default=1), max(sizes, default=1)

    def find(self, first: int, last: int, scale: int) -> int | None:
        """See `Magnitudes.find`."""
        unit = Fraction(10) ** scale
        for value in self._values[bisect_left(self._values, first * unit) :]:
            integer = value / unit
            if integer > last:
                return None
            if integer.denominator == 1:
                return int(integer)
        return None

    def reach(self, n: int, more: int, powers: Powers) -> Iterator[Powers]:
        """See `Magnitudes.reach`."""
        size = num_digits(n)
        low, high = self._begin_with(n, size)
        for digits, where in self._digits[low:high]:
            power = where - size
            if powers[0] <= power <= powers[1] and (digits * 10 ** (size + more)).denominator == 1:
                yield power, power

    def key(self, n: int, fraction: int, *, scales: bool) -> Hashable:
        """See `Magnitudes.key`."""
        size = num_digits(n) if n else 0
        return (*self._begin_with(n, size), size - fraction, n > 0)

    def _begin_with(self, n: int, size: int) -> tuple[int, int]:
        """Which of the sorted digits begin with those of `n`."""
        unit = Fraction(1, 10**size)
        return bisect_left(self._digits, (n * unit,)), bisect_left(self._digits, ((n + 1) * unit,))
