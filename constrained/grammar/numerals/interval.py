"""Magnitudes between two ends that are multiples of one number and of none of some others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

from constrained.grammar.number_sets import Bound, common_multiple
from constrained.grammar.numerals.magnitudes import Powers, decimals, num_digits, place, tens, trailing_zeros

BELOW, EQUAL, ABOVE = -1, 0, 1


class Grid(NamedTuple):
    """The members among the multiples of one power of ten: low..high, multiples of `step` and of none of `avoid`."""

    low: int
    high: int | None
    step: int
    avoid: tuple[int, ...]


class End:
    """A positive bound as digits: how a prefix compares with as many of its own."""

    def __init__(self, value: Fraction) -> None:
        self._value = value
        self.place = place(value)
        self._prefixes: list[int] = []

    def compare(self, n: int, size: int) -> int:
        """The order of a prefix of `size` significant digits."""
        while len(self._prefixes) <= size:
            self._prefixes.append(floor(self._value * Fraction(10) ** (len(self._prefixes) - self.place)))
        mine = self._prefixes[size]
        return (n > mine) - (n < mine)

    def compare_placed(self, n: int, size: int, fraction: int) -> int:
        """The same of a prefix whose point is read: first digits that stand elsewhere decide."""
        here = size - fraction
        if size == 0:
            return BELOW if here < self.place else EQUAL
        if here != self.place:
            return ABOVE if here > self.place else BELOW
        return self.compare(n, size)


class Interval:
    """The magnitudes from `low` to `high` (bounds >= 0) that are multiples of `step` and of none of `avoid`."""

    def __init__(self, low: Bound | None, high: Bound | None, step: Fraction | None, avoid: frozenset[Fraction]) -> None:
        self._low, self._high = low, high
        self._step = step
        self._avoid = _lifted(avoid, step)
        factors = self._avoid if step is None else (step, *self._avoid)
        self._decimals = max((decimals(factor) for factor in factors), default=0)
        scaled = [int(factor * 10**self._decimals) for factor in factors]
        self._modulus = lcm(*scaled)
        self._tens = max((tens(factor) for factor in scaled), default=0)
        self._low_end = End(low.value) if low is not None and low.value > 0 else None
        self._high_end = End(high.value) if high is not None and high.value > 0 else None
        self._grids: dict[int, Grid] = {}
        endless = high is None and not self._avoid
        self.spare = num_digits(int(common_multiple(step or Fraction(1), Fraction(1)))) if endless else None
        self.is_everything = low is None and high is None and not factors
        least = num_digits(floor(low.value)) if low is not None and low.value >= 1 else 1
        most = None if high is None else num_digits(floor(high.value)) if high.value >= 1 else 1
        self.whole_lens = least, most

    def find(self, first: int, last: int, scale: int) -> int | None:
        """See `Magnitudes.find`."""
        low, high, step, avoid = self._grids.get(scale) or self._grid(scale)
        if first < low:
            first = low
        if high is not None and last > high:
            last = high
        if step != 1:
            first = -(-first // step) * step
        if not avoid:
            return first if first <= last else None
        # No long run of integers has a divisor among few: the loop is short (Jacobsthal's function).
        while first <= last and any(first % factor == 0 for factor in avoid):
            first += step
        return first if first <= last else None

    def _grid(self, scale: int) -> Grid:
        unit = Fraction(10) ** scale
        low = high = None
        if self._low is not None:
            ratio = self._low.value / unit
            low = floor(ratio) + 1 if self._low.exclusive else ceil(ratio)
        if self._high is not None:
            ratio = self._high.value / unit
            high = ceil(ratio) - 1 if self._high.exclusive else floor(ratio)
        step = 1 if self._step is None else int(common_multiple(self._step, unit) / unit)
        avoid = tuple(int(common_multiple(factor, unit) / unit) for factor in self._avoid)
        if any(step % factor == 0 for factor in avoid):
            high, avoid = -1, ()  # every multiple is one to avoid
        grid = self._grids[scale] = Grid(low or 0, high, step, avoid)
        return grid

    def reach(self, n: int, more: int, powers: Powers) -> Iterator[Powers]:
        """See `Magnitudes.reach`."""
        first, last = powers
        size = num_digits(n)
        if self._high is not None and self._high_end is None:
            return  # nothing but zero
        # Where the first digits stand as those of a bound, the bound may cut the numbers that begin with n.
        cuts = set()
        if self._low_end is not None and (cut := self._low_end.place - size) >= first:
            first = cut + 1
            cuts.add(cut)
        if self._high_end is not None and (cut := self._high_end.place - size) <= last:
            last = cut - 1
            cuts.add(cut)
        for cut in cuts:
            if powers[0] <= cut <= powers[1] and first - 1 <= cut <= last + 1 and self._meets(n, more, cut):
                yield cut, cut
        if first <= last:
            yield from self._reach_inside(n, more, first, last)

    def _reach_inside(self, n: int, more: int, first: int, last: int) -> Iterator[Powers]:
        """The same where no bound cuts."""
        if self._step is None and not self._avoid:
            yield first, last
            return
        # From `steady` on every factor 2 and 5 is in the power of ten; below `ragged` n has digits that no multiple has.
        steady = self._tens - self._decimals + more
        ragged = -self._decimals - trailing_zeros(n)
        if last >= steady and self._meets(n, more, max(first, steady)):
            yield max(first, steady), last
        if self._step is None and first < ragged:
            yield first, min(last, ragged - 1)
        for power in range(min(last, steady - 1), max(first, ragged) - 1, -1):
            if self._meets(n, more, power):
                yield power, power

    def _meets(self, n: int, more: int, power: int) -> bool:
        return self.find(n * 10**more, (n + 1) * 10**more - 1, power - more) is not None

    def key(self, n: int, fraction: int, *, scales: bool) -> Hashable:
        """See `Magnitudes.key`."""
        return self._order(n, fraction, scales), self._residue(n, fraction, scales)

    def _order(self, n: int, fraction: int, scales: bool) -> Hashable:
        low, high = self._low_end, self._high_end
        if low is None and high is None:
            return n > 0
        size = num_digits(n) if n else 0
        if fraction and not scales:
            return (
                n > 0,
                low.compare_placed(n, size, fraction) if low is not None else ABOVE,
                high.compare_placed(n, size, fraction) if high is not None else BELOW,
            )
        orders = low.compare(n, size) if low is not None else ABOVE, high.compare(n, size) if high is not None else BELOW
        return size - fraction, *orders

    def _residue(self, n: int, fraction: int, scales: bool) -> Hashable:
        """What is left of `n` for its multiples: a remainder, and how many zeros wait at its end where exponents may follow."""
        if n == 0 or (self._step is None and not self._avoid):
            return None
        if scales:
            zeros = trailing_zeros(n)
            return zeros, n // 10**zeros % self._modulus
        if fraction <= self._decimals:
            return n % self._modulus
        multiple, rest = divmod(n, 10 ** (fraction - self._decimals))
        return multiple % self._modulus, rest > 0


def _lifted(avoid: frozenset[Fraction], step: Fraction | None) -> tuple[Fraction, ...]:
    """The factors that multiples of `step` must avoid, without those that are multiples of another."""
    lifted = sorted({factor if step is None else common_multiple(factor, step) for factor in avoid})
    kept: list[Fraction] = []
    for factor in lifted:
        if not any(factor % smaller == 0 for smaller in kept):
            kept.append(factor)
    return tuple(kept)
