"""Sets of numbers that one alternative of a node allows, and their algebra; all values are exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval of numbers; the value is exact."""

    value: Fraction
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Numbers between two bounds, multiples of `multiple_of`, and of none of `not_multiple_of`.

    `integer` numbers are whole, and also written so in the default spelling, `plain` ones in every spelling. One of `values`
    only where that is not None.
    """

    lower: Bound | None = None
    upper: Bound | None = None
    integer: bool = False
    multiple_of: Fraction | None = None
    not_multiple_of: frozenset[Fraction] = frozenset()
    values: frozenset[Fraction] | None = None
    plain: bool = False

    @property
    def step(self) -> Fraction | None:
        """What every member is a multiple of, whole numbers being multiples of 1."""
        if not self.integer:
            return self.multiple_of
        return Fraction(1) if self.multiple_of is None else common_multiple(self.multiple_of, Fraction(1))

    def __contains__(self, value: Fraction) -> bool:
        if (self.integer and value.denominator != 1) or (self.values is not None and value not in self.values):
            return False
        if self.multiple_of is not None and value % self.multiple_of != 0:
            return False
        if any(value % factor == 0 for factor in self.not_multiple_of):
            return False
        low, up = self.lower, self.upper
        if low is not None and (value < low.value or (low.exclusive and value == low.value)):
            return False
        return up is None or value < up.value or (value == up.value and not up.exclusive)

    def meet(self, other: NumberSet) -> NumberSet:
        """The intersection; finite sets are filtered at once."""
        if other is ALL_NUMBERS or self is ALL_NUMBERS:
            return self if other is ALL_NUMBERS else other
        if self.values is None and other.values is None:
            return NumberSet(
                _tighter(self.lower, other.lower, 1),
                _tighter(self.upper, other.upper, -1),
                self.integer or other.integer,
                _both(self.multiple_of, other.multiple_of),
                self.not_multiple_of | other.not_multiple_of,
                plain=self.plain or other.plain,
            )
        candidates = self.values if self.values is not None else other.values
        assert candidates is not None
        found = frozenset(v for v in candidates if v in self and v in other)
        return NumberSet(values=found, plain=self.plain or other.plain)

    def holds(self, other: NumberSet) -> bool:
        """Whether it is plain that every member of `other`, an infinite set, is one of this infinite set too."""
        step, wider = other.step, self.step
        return (
            (other.integer or not self.integer)
            and (other.plain or not self.plain)
            and (wider is None or (step is not None and step % wider == 0))
            and all(any(factor % known == 0 for known in other.not_multiple_of) for factor in self.not_multiple_of)
            and _tighter(self.lower, other.lower, 1) == other.lower
            and _tighter(self.upper, other.upper, -1) == other.upper
        )


ALL_NUMBERS = NumberSet()


def common_multiple(a: Fraction, b: Fraction) -> Fraction:
    """The least number that is a multiple of both."""
    scale = lcm(a.denominator, b.denominator)
    return Fraction(lcm(int(a * scale), int(b * scale)), scale)


def union(sets: Iterable[NumberSet]) -> tuple[NumberSet, ...]:
    """Few sets with the same members together: finite ones in one, touching intervals joined, none inside another."""
    distinct = list(dict.fromkeys(sets))
    if NumberSet() in distinct:
        return (NumberSet(),)
    infinite = _outermost([_joined(family) for family in _families([s for s in distinct if s.values is None])])
    loose = frozenset(v for s in distinct if s.values is not None and not s.plain for v in s.values)
    plain = frozenset(v for s in distinct if s.values is not None and s.plain for v in s.values) - loose
    loose = frozenset(v for v in loose if not any(v in i for i in infinite if not i.plain))
    plain = frozenset(v for v in plain if not any(v in i for i in infinite))
    finite = [NumberSet(values=values, plain=bare) for values, bare in ((loose, False), (plain, True)) if values]
    return (*infinite, *finite)


def _families(sets: list[NumberSet]) -> list[list[NumberSet]]:
    """Sets that differ in nothing but their bounds, together."""
    families: dict[NumberSet, list[NumberSet]] = {}
    for numbers in sets:
        families.setdefault(replace(numbers, lower=None, upper=None), []).append(numbers)
    return list(families.values())


def _joined(family: list[NumberSet]) -> list[NumberSet]:
    """Overlapping and touching intervals made one."""
    family.sort(key=_start)
    joined = family[:1]
    for numbers in family[1:]:
        last = joined[-1]
        if _touch(last.upper, numbers.lower):
            joined[-1] = replace(last, upper=_looser(last.upper, numbers.upper))
        else:
            joined.append(numbers)
    return joined


def _outermost(families: list[list[NumberSet]]) -> list[NumberSet]:
    """What is inside no set of another family."""
    kept: list[NumberSet] = []
    for family in families:
        fresh = [numbers for numbers in family if not any(other.holds(numbers) for other in kept)]
        kept = [other for other in kept if not any(numbers.holds(other) for numbers in fresh)] + fresh
    return kept


def _start(numbers: NumberSet) -> tuple[bool, Fraction, bool]:
    low = numbers.lower
    return (False, Fraction(0), False) if low is None else (True, low.value, low.exclusive)


def _touch(upper: Bound | None, lower: Bound | None) -> bool:
    """Whether nothing lies between an interval that ends at `upper` and one that begins, not before it, at `lower`."""
    if upper is None or lower is None:
        return True
    return lower.value < upper.value or (lower.value == upper.value and not (lower.exclusive and upper.exclusive))


def _looser(a: Bound | None, b: Bound | None) -> Bound | None:
    """The higher of two upper bounds."""
    if a is None or b is None:
        return None
    if a.value == b.value:
        return b if a.exclusive else a
    return a if a.value > b.value else b


def _tighter(a: Bound | None, b: Bound | None, sign: int) -> Bound | None:
    if a is None or b is None:
        return a or b
    if a.value == b.value:
        return a if a.exclusive else b
    return a if (a.value - b.value) * sign > 0 else b


def _both(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    if a is None or b is None:
        return a or b
    return common_multiple(a, b)
