"""Sets of numbers that one alternative of a node allows, and their intersections; all values are exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval of numbers; the value is exact."""

    value: Fraction
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Numbers between two bounds: whole ones only where `integer`, none of those where `fractional`.

    One of `values` only where that is not None.
    """

    lower: Bound | None = None
    upper: Bound | None = None
    integer: bool = False
    fractional: bool = False
    values: frozenset[Fraction] | None = None

    def __contains__(self, value: Fraction) -> bool:
        if (self.integer and value.denominator != 1) or (self.fractional and value.denominator == 1):
            return False
        if self.values is not None and value not in self.values:
            return False
        low, up = self.lower, self.upper
        if low is not None and (value < low.value or (low.exclusive and value == low.value)):
            return False
        return up is None or value < up.value or (value == up.value and not up.exclusive)

    def meet(self, other: NumberSet) -> NumberSet:
        """The intersection; finite sets are filtered at once."""
        both = NumberSet(
            _tighter(self.lower, other.lower, 1),
            _tighter(self.upper, other.upper, -1),
            self.integer or other.integer,
            self.fractional or other.fractional,
        )
        if self.values is None and other.values is None:
            return both
        candidates = self.values if self.values is not None else other.values
        assert candidates is not None
        return NumberSet(values=frozenset(v for v in candidates if v in both and v in self and v in other))


def _tighter(a: Bound | None, b: Bound | None, sign: int) -> Bound | None:
    if a is None or b is None:
        return a or b
    if a.value == b.value:
        return a if a.exclusive else b
    return a if (a.value - b.value) * sign > 0 else b
