"""The digits of a JSON number before its exponent as places of a machine.

Places that the same can follow are made one by a key (the order against each bound, the remainder for multiples, the room
for digits), and the digits that led there first stand for all: so places are few while every question is asked of exact
digits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property

from constrained.grammar.numerals.endings import shortest_ending
from constrained.grammar.numerals.exponents import Exponent
from constrained.grammar.numerals.numeral import DIGITS, Numeral, by_length
from constrained.grammar.numerals.prefix import FRACTION, POINT, WHOLE, ZERO, Prefix, Side

MAX_PLACES = 100_000


class Places:
    """The places of one sign that were met so far."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._known: dict[Hashable, Mantissa] = {}

    def first_digits(self) -> dict[int, Numeral]:
        """The places after one digit."""
        digits = (self.after(ZERO if digit == 0 else WHOLE, digit, 1, 0) for digit in range(10))
        return {byte: place for byte, place in zip(DIGITS, digits, strict=True) if place.is_alive}

    def after(self, phase: int, n: int, whole: int, fraction: int) -> Mantissa:
        """The place after digits; see `Prefix`."""
        magnitudes, scales = self.side.magnitudes, self.side.scales(n, whole, fraction)
        what = None if magnitudes.is_everything else magnitudes.key(n, fraction, scales=scales)
        key = (phase, whole if phase == WHOLE else fraction, scales, what)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_PLACES:
                self._known.clear()
            found = self._known[key] = Mantissa(self, Prefix(self.side, phase, n, whole, fraction, scales))
        return found


class Mantissa(Numeral):
    """A place in the digits of a number; made by `Places` alone."""

    __slots__ = ("_closing", "_places", "_prefix", "_steps", "is_alive")

    def __init__(self, places: Places, prefix: Prefix) -> None:
        self._places = places
        self._prefix = prefix
        self._steps: dict[int, Numeral] | None = None
        self._closing: bytes | None = None
        self.is_alive = prefix.is_alive  # whether the number can be ended

    @property
    def accepts(self) -> bool:
        """See `Numeral.accepts`."""
        return self._prefix.accepts

    @property
    def steps(self) -> dict[int, Numeral]:
        """See `Numeral.steps`."""
        if self._steps is None:
            self._steps = self._find_steps()
        return self._steps

    def _find_steps(self) -> dict[int, Numeral]:
        prefix = self._prefix
        found: dict[int, Numeral] = {byte: place for byte, place in self._digits() if place.is_alive}
        if prefix.may_have_point:
            point = self._places.after(POINT, prefix.n, prefix.whole, 0)
            found |= {ord("."): point} if point.is_alive else {}
        if exponents := prefix.exponents:
            found |= dict.fromkeys(b"eE", Exponent(exponents, prefix.side.notation.max_exponent_digits))
        return found

    def _digits(self) -> Iterator[tuple[int, Mantissa]]:
        """The places after one more digit."""
        prefix = self._prefix
        n, room = prefix.n * 10, prefix.side.notation.max_digits
        if prefix.phase == WHOLE and prefix.whole < room:
            for digit, byte in enumerate(DIGITS):
                yield byte, self._places.after(WHOLE, n + digit, prefix.whole + 1, 0)
        elif prefix.phase >= POINT and prefix.fraction < room:
            for digit, byte in enumerate(DIGITS):
                yield byte, self._places.after(FRACTION, n + digit, prefix.whole, prefix.fraction + 1)

    @property
    def closing(self) -> bytes | None:
        """See `Numeral.closing`."""
        if self._closing is None and self.is_alive:
            self._closing = shortest_ending(self._prefix)
        return self._closing


class Beginning(Numeral):
    """The place before a number, or behind its sign."""

    def __init__(self, steps: dict[int, Numeral]) -> None:
        self._steps = steps

    @property
    def accepts(self) -> bool:
        """See `Numeral.accepts`."""
        return False

    @property
    def steps(self) -> dict[int, Numeral]:
        """See `Numeral.steps`."""
        return self._steps

    @cached_property
    def closing(self) -> bytes | None:
        """See `Numeral.closing`."""
        for byte, place in self._steps.items():
            if place.accepts:
                return bytes([byte])
        closings = (bytes([byte]) + (place.closing or b"") for byte, place in self._steps.items())
        return min(closings, key=by_length, default=None)
