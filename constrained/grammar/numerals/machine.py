"""The machine of a set of numbers: where a number begins, and from there `Numeral.steps`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.numerals.interval import Interval
from constrained.grammar.numerals.listed import Listed
from constrained.grammar.numerals.magnitudes import Magnitudes
from constrained.grammar.numerals.mantissa import Beginning, Places
from constrained.grammar.numerals.notation import DEFAULT, Notation
from constrained.grammar.numerals.numeral import Numeral
from constrained.grammar.numerals.prefix import Side

_POSITIVE_ONLY = Bound(Fraction(0), exclusive=True)


@lru_cache(maxsize=1024)
def numeral(numbers: NumberSet, notation: Notation = DEFAULT) -> Numeral:
    """The place before a number of the set, shared by every grammar that has it."""
    plain = numbers.plain or (numbers.integer and not notation.permissive)
    sides = {}
    for negative in (False, True):
        magnitudes = _listed(numbers.values, negative) if numbers.values is not None else _interval(numbers, negative, plain)
        sides[negative] = Places(Side(magnitudes, notation, plain)).first_digits() if magnitudes is not None else {}
    steps = sides[False]
    if sides[True]:
        steps = {ord("-"): Beginning(sides[True]), **steps}
    return Beginning(steps)


def _listed(values: frozenset[Fraction], negative: bool) -> Magnitudes | None:
    magnitudes = [abs(value) for value in values if value == 0 or (value < 0) == negative]
    return Listed(magnitudes) if magnitudes else None


def _interval(numbers: NumberSet, negative: bool, plain: bool) -> Magnitudes | None:
    """The magnitudes of the numbers of one sign; None where there are none. Plain numbers have no negative zero."""
    low, high = numbers.lower, numbers.upper
    if negative:
        low, high = _mirrored(high), _mirrored(low)
    if high is not None and (high.value < 0 or (high.value == 0 and high.exclusive)):
        return None
    if low is not None and (low.value < 0 or (low.value == 0 and not low.exclusive)):
        low = None
    if low is None and negative and plain:
        low = _POSITIVE_ONLY
    return Interval(low, high, numbers.step, numbers.not_multiple_of)


def _mirrored(bound: Bound | None) -> Bound | None:
    return None if bound is None else replace(bound, value=-bound.value)
