"""The digits of a number read so far, and whether and how it can be ended: questions to its set of magnitudes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from constrained.grammar.numerals.magnitudes import Magnitudes, Powers
from constrained.grammar.numerals.notation import Notation

ZERO, WHOLE, POINT, FRACTION = range(4)


@dataclass(frozen=True, slots=True)
class Side:
    """The numbers of one sign: their magnitudes, and how they are written (`plain` ones without point and exponent)."""

    magnitudes: Magnitudes
    notation: Notation
    plain: bool

    def scales(self, n: int, whole: int, fraction: int) -> bool:
        """Whether an exponent may come. By default one nonzero digit stands before the point then, as encoders write it."""
        if self.plain or self.notation.permissive or self.magnitudes.is_everything:
            return not self.plain
        return whole == 1 and n >= 10**fraction


class Prefix(NamedTuple):
    """Digits that make the integer `n`: `whole` of them before the point, `fraction` behind it.

    `phase` is ZERO (a single zero), WHOLE, POINT (just read) or FRACTION; `scales`: see `Side.scales`.
    """

    side: Side
    phase: int
    n: int
    whole: int
    fraction: int
    scales: bool

    @property
    def accepts(self) -> bool:
        """Whether the number may end here."""
        return self.phase != POINT and self.side.magnitudes.find(self.n, self.n, -self.fraction) is not None

    @property
    def may_have_point(self) -> bool:
        """Whether a point may come next."""
        return self.phase <= WHOLE and not self.side.plain

    @property
    def left(self) -> int:
        """How many digits may still come behind the point."""
        return 0 if self.side.plain else self.side.notation.max_digits - self.fraction

    @property
    def more_plain(self) -> range:
        """How many digits may still come before the point, where no exponent follows."""
        if self.phase != WHOLE:
            return range(1)
        fewest, most = self.side.magnitudes.whole_lens
        room = self.side.notation.max_digits
        return range(max(fewest - self.whole, 0), (room if most is None else min(room, most)) - self.whole + 1)

    @property
    def more_scaled(self) -> range:
        """How many digits may still come before the point, where an exponent follows."""
        many = self.phase == WHOLE and (self.side.notation.permissive or self.side.magnitudes.is_everything)
        return range(self.side.notation.max_digits - self.whole + 1 if many else 1)

    def powers(self, more: int) -> Powers:
        """The powers u for which the digits may be n * 10**u with an exponent and `more` further digits before the point."""
        most, shift = self.side.notation.max_exponent, more - self.fraction
        return shift - most, shift + most

    @property
    def exponents(self) -> tuple[Powers, ...]:
        """The ranges of the exponents that may come next, ascending."""
        if not self.scales or self.phase == POINT:
            return ()
        most, magnitudes = self.side.notation.max_exponent, self.side.magnitudes
        if self.n == 0 or magnitudes.is_everything:
            return ((-most, most),) if magnitudes.find(self.n, self.n, 0) is not None else ()
        joined: list[Powers] = []
        for first, last in sorted(magnitudes.reach(self.n, 0, self.powers(0))):
            run = (first + self.fraction, last + self.fraction)
            if joined and joined[-1][1] + 1 == run[0]:
                run = (joined.pop()[0], run[1])
            joined.append(run)
        return tuple(joined)

    @property
    def is_alive(self) -> bool:
        """Whether the number can be ended."""
        if self.side.magnitudes.is_everything or self._has_room():
            return True
        return self._has_plain_end() or (self.scales and self._has_scaled_end())

    def _has_room(self) -> bool:
        """Whether the longest number that begins so is past the lower bound, with digits enough to come to a multiple."""
        magnitudes, most = self.side.magnitudes, self.side.notation.max_digits
        spare = magnitudes.spare
        return spare is not None and self.phase == WHOLE and most - self.whole >= spare and most > magnitudes.whole_lens[0]

    def _has_plain_end(self) -> bool:
        # The more digits, the more numbers: the longest run is tried first.
        finest = 0 if self.side.plain else -self.side.notation.max_digits
        for more in reversed(self.more_plain):
            size = 10 ** (more - self.fraction - finest)
            if self.side.magnitudes.find(self.n * size, (self.n + 1) * size - 1, finest) is not None:
                return True
        return False

    def _has_scaled_end(self) -> bool:
        low, high = self.powers(0)
        if self.n:
            shifts = self.more_scaled[-1]
            return self._reaches(self.n, self.left + shifts, (low + shifts, high + shifts), shifts)
        if self.side.magnitudes.find(0, 0, 0) is not None:
            return True
        shifts = self.left - 1
        return shifts >= 0 and any(self._reaches(digit, shifts, (low - 1, high - 1), shifts) for digit in range(1, 10))

    def _reaches(self, n: int, more: int, powers: Powers, shifts: int) -> bool:
        """Whether an exponent ends a number that begins with `n`; each of up to `shifts` shifts costs a digit."""
        reach, (low, high) = self.side.magnitudes.reach, powers
        if any(reach(n, more, powers)):
            return True
        if not any(reach(n, more, (low - shifts, low - 1))):
            return False
        return any(any(reach(n, more - i, (low - i, high - i))) for i in range(1, shifts + 1))
