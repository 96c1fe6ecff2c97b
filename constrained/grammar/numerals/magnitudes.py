"""What a numeral asks of a set of magnitudes (numbers without their sign) while its digits are read.

A prefix of digits is the integer `n` that they make without their point. More digits make a run of integers, and a place
of the point or an exponent makes of them multiples of a power of ten: so everything that may follow is a question about
integers first..last times 10**scale, answered by arithmetic and never by trying digits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Protocol

# (first, last): powers u, as in n * 10**u, of which one integer serves for all.
Powers = tuple[int, int]


class Magnitudes(Protocol):
    """A set of magnitudes of one sign."""

    is_everything: bool
    spare: int | None  # so many further digits before the point always make a large member; None where that is not so plain
    whole_lens: tuple[int, int | None]  # of the whole parts of the members: fewest and most digits; None without end

    def find(self, first: int, last: int, scale: int) -> int | None:
        """The least of the integers first..last which, times 10**scale, is a member."""

    def reach(self, n: int, more: int, powers: Powers) -> Iterator[Powers]:
        """Which numbers that begin with `n` >= 1 are members: `more` digits follow, and the first digits stand for n * 10**u.

        Yields runs of u within `powers` for which there is a member; within a run the least further digits are the same.
        """

    def key(self, n: int, fraction: int, *, scales: bool) -> Hashable:
        """Equal for prefixes with `fraction` digits behind the point that the same can follow; `scales`: an exponent too."""


def num_digits(n: int) -> int:
    """Decimal digits of a positive integer of any size (`str` refuses large ones)."""
    if n.bit_length() < 10_000:
        return len(str(n))
    digits = n.bit_length() * 30_103 // 100_000
    while 10**digits > n:
        digits -= 1
    while 10**digits <= n:
        digits += 1
    return digits


def place(value: Fraction) -> int:
    """Where the first digit of a positive number stands: 10**(place - 1) <= value < 10**place."""
    found = num_digits(value.numerator) - num_digits(value.denominator)
    return found + 1 if value >= Fraction(10) ** found else found


def trailing_zeros(n: int) -> int:
    """Zeros at the end of a positive integer."""
    zeros = 0
    while n % 10 == 0:
        n, zeros = n // 10, zeros + 1
    return zeros


def decimals(value: Fraction) -> int:
    """Digits behind the point of a decimal number. `ValueError` where they do not end."""
    twos, rest = _divide_out(value.denominator, 2)
    fives, rest = _divide_out(rest, 5)
    if rest != 1:
        raise ValueError(f"{value} is no decimal number")
    return max(twos, fives)


def tens(n: int) -> int:
    """The least power of ten that holds all factors 2 and 5 of `n`."""
    twos, rest = _divide_out(n, 2)
    return max(twos, _divide_out(rest, 5)[0])


def _divide_out(n: int, prime: int) -> tuple[int, int]:
    power = 0
    while n % prime == 0:
        n, power = n // prime, power + 1
    return power, n
