"""The number machine: JSON numbers inside exact bounds, read digit by digit.

A state compares what was read with both ends of an interval of magnitudes; values are never rounded. States are made
when they are first met. In the default spelling a number without bounds may have an exponent; a bounded one is plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor

from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.texts import MAX_DIGITS

START, MINUS, ZERO, WHOLE, POINT, FRACTION, EXP, EXP_SIGN, EXP_DIGITS = range(9)
BELOW, EQUAL, ABOVE = -1, 0, 1
MAX_EXPONENT_DIGITS = 3
DIGITS = b"0123456789"


@dataclass(frozen=True, slots=True)
class Magnitude:
    """One end of an interval of magnitudes: whole digits, fraction digits (exact or cut), and whether it may be met."""

    whole: str
    fraction: str
    exclusive: bool
    endless: bool  # the decimal expansion goes on past `fraction`

    @classmethod
    def of(cls, value: Fraction, *, exclusive: bool) -> Magnitude:
        """From an exact non-negative value."""
        whole = floor(value)
        scaled = (value - whole) * 10 ** (MAX_DIGITS + 1)
        digits = str(floor(scaled)).rjust(MAX_DIGITS + 1, "0").rstrip("0")
        return cls(str(whole), digits, exclusive, scaled.denominator != 1)

    def compare(self, order: int, count: int, digit: int) -> int:
        """`order` of the digits read against this end after one more `digit`, the `count`-th (from 0) of the fraction."""
        if order != EQUAL:
            return order
        mine = int(self.fraction[count]) if count < len(self.fraction) else 0
        return (digit > mine) - (digit < mine)

    def final(self, order: int, count: int) -> int:
        """The order if no digit follows the `count` fraction digits read."""
        return BELOW if order == EQUAL and (count < len(self.fraction) or self.endless) else order


@dataclass(frozen=True, slots=True)
class Position:
    """Where in a number: phase, sign, digits of the current run, and the order against the low and the high end."""

    phase: int
    negative: bool = False
    count: int = 0
    low: int = EQUAL
    high: int = EQUAL
    nonzero: bool = False  # a fraction digit that is not zero was read (kept only where that matters)


class NumberMachine:
    """The machine of one `NumberSet` without a finite list of values."""

    def __init__(self, numbers: NumberSet) -> None:
        self._numbers = numbers
        self._free = numbers.lower is None and numbers.upper is None and not numbers.fractional
        self._ends = {sign: self._interval(numbers, sign) for sign in (False, True)}
        self._steps: dict[Position, dict[int, Position]] = {}
        self._closings: dict[Position, bytes | None] = {}

    @staticmethod
    def _interval(numbers: NumberSet, negative: bool) -> tuple[Magnitude | None, Magnitude | None] | None:
        """The ends of the magnitudes of one sign; None where no number of that sign is in the set."""
        low, high = (numbers.upper, numbers.lower) if negative else (numbers.lower, numbers.upper)
        sign = -1 if negative else 1
        low = Bound(low.value * sign, low.exclusive) if low is not None else None
        high = Bound(high.value * sign, high.exclusive) if high is not None else None
        if high is not None and high.value < 0:
            return None
        below = None if low is None or low.value < 0 else Magnitude.of(low.value, exclusive=low.exclusive)
        above = None if high is None else Magnitude.of(high.value, exclusive=high.exclusive)
        return below, above

    start = Position(START)

    def accepts(self, at: Position) -> bool:
        """Whether the number may end here."""
        if at.phase not in (ZERO, WHOLE, FRACTION, EXP_DIGITS):
            return False
        if self._numbers.integer and at.negative and at.phase == ZERO:
            return False
        if self._numbers.fractional and not at.nonzero:
            return False
        ends = self._ends[at.negative]
        if ends is None or at.phase == EXP_DIGITS:
            return ends is not None
        low, high = ends
        fraction = at.count if at.phase == FRACTION else 0
        low_order, high_order = self._whole_orders(at)
        if low is not None:
            order = low.final(low_order, fraction)
            if order < 0 or (order == 0 and low.exclusive):
                return False
        if high is not None:
            order = high.final(high_order, fraction)
            if order > 0 or (order == 0 and high.exclusive):
                return False
        return True

    def _whole_orders(self, at: Position) -> tuple[int, int]:
        """The orders with the lengths of the whole parts taken into account."""
        if at.phase not in (ZERO, WHOLE):
            return at.low, at.high
        low, high = self._ends[at.negative] or (None, None)
        return _with_length(low, at.low, at.count), _with_length(high, at.high, at.count)

    def steps(self, at: Position) -> dict[int, Position]:
        """The bytes that lead on from here, each to a position from which the number can be ended."""
        found = self._steps.get(at)
        if found is None:
            found = {byte: to for byte, to in self._raw_steps(at).items() if self.closing(to) is not None}
            self._steps[at] = found
        return found

    def closing(self, at: Position) -> bytes | None:
        """The shortest way to end the number from here; None where there is none."""
        if at not in self._closings:
            self._search(at)
        return self._closings[at]

    def _search(self, origin: Position) -> None:
        """Breadth-first from `origin`; every position on the shortest way learns its own rest."""
        came: dict[Position, tuple[Position, int] | None] = {origin: None}
        layer = [origin]
        while layer:
            following: list[Position] = []
            for at in layer:
                if self.accepts(at):
                    self._record(at, came)
                    return
                for byte, to in self._raw_steps(at).items():
                    if to not in came and self._closings.get(to, b"") is not None:
                        came[to] = (at, byte)
                        following.append(to)
            layer = following
        for at in came:
            self._closings[at] = None

    def _record(self, at: Position, came: dict[Position, tuple[Position, int] | None]) -> None:
        rest = b""
        self._closings[at] = rest
        step = came[at]
        while step is not None:
            at, byte = step
            rest = bytes([byte]) + rest
            self._closings.setdefault(at, rest)
            step = came[at]

    def _raw_steps(self, at: Position) -> dict[int, Position]:
        if at.phase == START:
            steps = self._first_digits(False) if self._ends[False] is not None else {}
            if self._ends[True] is not None:
                steps[ord("-")] = Position(MINUS, True)
            return steps
        if at.phase == MINUS:
            return self._first_digits(True)
        if at.phase in (ZERO, WHOLE):
            return self._after_whole(at)
        if at.phase in (POINT, FRACTION):
            return self._fraction_digits(at) | (self._exponent(at) if at.phase == FRACTION else {})
        return self._exponent_digits(at)

    def _first_digits(self, negative: bool) -> dict[int, Position]:
        ends = self._ends[negative]
        low, high = ends if ends is not None else (None, None)
        steps = {}
        for digit, byte in enumerate(DIGITS):
            orders = _whole_digit(low, EQUAL, 0, digit), _whole_digit(high, EQUAL, 0, digit)
            steps[byte] = Position(ZERO if digit == 0 else WHOLE, negative, 1, *orders)
        return steps

    def _after_whole(self, at: Position) -> dict[int, Position]:
        low, high = self._ends[at.negative] or (None, None)
        steps: dict[int, Position] = {}
        if at.phase == WHOLE and at.count < MAX_DIGITS:
            for digit, byte in enumerate(DIGITS):
                orders = _whole_digit(low, at.low, at.count, digit), _whole_digit(high, at.high, at.count, digit)
                steps[byte] = Position(WHOLE, at.negative, at.count + 1, *orders)
        if not self._numbers.integer:
            steps[ord(".")] = Position(POINT, at.negative, 0, *self._whole_orders(at))
            steps |= self._exponent(at)
        return steps

    def _fraction_digits(self, at: Position) -> dict[int, Position]:
        if at.count >= MAX_DIGITS:
            return {}
        low, high = self._ends[at.negative] or (None, None)
        steps = {}
        for digit, byte in enumerate(DIGITS):
            low_order = low.compare(at.low, at.count, digit) if low is not None else ABOVE
            high_order = high.compare(at.high, at.count, digit) if high is not None else BELOW
            nonzero = self._numbers.fractional and (at.nonzero or digit > 0)
            steps[byte] = Position(FRACTION, at.negative, at.count + 1, low_order, high_order, nonzero)
        return steps

    def _exponent(self, at: Position) -> dict[int, Position]:
        if not self._free:
            return {}
        return {byte: Position(EXP, at.negative) for byte in b"eE"}

    def _exponent_digits(self, at: Position) -> dict[int, Position]:
        steps: dict[int, Position] = {}
        if at.phase == EXP:
            steps = {byte: Position(EXP_SIGN, at.negative) for byte in b"+-"}
        if at.count < MAX_EXPONENT_DIGITS:
            steps |= {byte: Position(EXP_DIGITS, at.negative, at.count + 1) for byte in DIGITS}
        return steps


def _whole_digit(end: Magnitude | None, order: int, count: int, digit: int) -> int:
    """Order of the first `count + 1` whole digits against as many of the end's (lengths are compared at the end)."""
    if end is None or order != EQUAL or count >= len(end.whole):
        return order
    mine = int(end.whole[count])
    return (digit > mine) - (digit < mine)


def _with_length(end: Magnitude | None, order: int, count: int) -> int:
    if end is None or count == len(end.whole):
        return order
    return ABOVE if count > len(end.whole) else BELOW


@lru_cache(maxsize=256)
def number_machine(numbers: NumberSet) -> NumberMachine:
    """The machine of a set, shared by every grammar that has it."""
    return NumberMachine(numbers)
