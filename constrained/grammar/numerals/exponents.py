"""Exponents: integers of some ranges, read digit by digit, with a sign or without and with leading zeros."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from constrained.grammar.numerals.numeral import DIGITS, Numeral, by_length

MINUS, PLUS = b"-+"
SIGN, FIRST, FURTHER = range(3)  # behind e, behind its sign, behind a digit


@dataclass(frozen=True)
class Exponent(Numeral):
    """A place in an exponent: the ranges that it must end in (behind the sign, of its magnitude), and the digits read."""

    ranges: tuple[tuple[int, int], ...]
    max_digits: int
    phase: int = SIGN
    value: int = 0
    count: int = 0

    @property
    def accepts(self) -> bool:
        """See `Numeral.accepts`."""
        return self.phase == FURTHER and any(low <= self.value <= high for low, high in self.ranges)

    @cached_property
    def steps(self) -> dict[int, Numeral]:
        """See `Numeral.steps`."""
        found: dict[int, Numeral] = {}
        if self.phase == SIGN:
            positive, negative = self._signed
            found |= {PLUS: positive} if positive.ranges else {}
            found |= {MINUS: negative} if negative.ranges else {}
            return found | positive.steps
        if self.count < self.max_digits:
            digits = {byte: self._after(digit) for digit, byte in enumerate(DIGITS)}
            found |= {byte: place for byte, place in digits.items() if place.is_alive}
        return found

    @cached_property
    def closing(self) -> bytes | None:
        """See `Numeral.closing`."""
        if self.phase == SIGN:
            positive, negative = self._signed
            signed = None if negative.closing is None else b"-" + negative.closing
            return min((text for text in (positive.closing, signed) if text is not None), key=by_length, default=None)
        for more in range(int(self.phase == FIRST), self.max_digits - self.count + 1):
            first = self.value * 10**more
            found = [max(first, low) for low, high in self.ranges if max(first, low) <= min(first + 10**more - 1, high)]
            if found:
                return str(min(found) - first).rjust(more, "0").encode() if more else b""
        return None

    @cached_property
    def is_alive(self) -> bool:
        """Whether it can be ended."""
        return self.closing is not None

    @property
    def _signed(self) -> tuple[Exponent, Exponent]:
        positive = tuple((max(low, 0), high) for low, high in self.ranges if high >= 0)
        negative = tuple((max(-high, 0), -low) for low, high in reversed(self.ranges) if low <= 0)
        return replace(self, ranges=positive, phase=FIRST), replace(self, ranges=negative, phase=FIRST)

    def _after(self, digit: int) -> Exponent:
        value, count = self.value * 10 + digit, self.count + 1
        most = (value + 1) * 10 ** (self.max_digits - count) - 1
        if any(low <= value and most <= high for low, high in self.ranges):
            # Whatever follows is allowed: the digits do not matter any more.
            return replace(self, ranges=((0, 10**self.max_digits - 1),), phase=FURTHER, value=0, count=count)
        return replace(self, phase=FURTHER, value=value, count=count)
