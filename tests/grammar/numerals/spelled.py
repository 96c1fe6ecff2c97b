"""Every text that a notation knows, with its exact value: what numerals are judged by."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache

from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.numerals import Notation


def by_length(text: str) -> tuple[int, str]:
    return len(text), text


@cache
def unsigned(max_digits: int, max_exponent_digits: int) -> list[tuple[str, str, str, Fraction]]:
    """(whole part, fraction, exponent, value) of every number without a sign and a capital E."""

    def runs(most: int) -> list[str]:
        return [str(i).rjust(size, "0") for size in range(1, most + 1) for i in range(10**size)]

    wholes = [digits for digits in runs(max_digits) if len(digits) == 1 or digits[0] != "0"]
    fractions = ["", *("." + digits for digits in runs(max_digits))]
    exponents = ["", *(f"e{sign}{digits}" for sign in ("", "+", "-") for digits in runs(max_exponent_digits))]
    return [(w, f, e, Fraction(Decimal(w + f + e))) for w in wholes for f in fractions for e in exponents]


def spelled(numbers: NumberSet, notation: Notation) -> set[str]:
    """Every text of a member, but for those with a capital E."""
    return {
        sign + whole + fraction + exponent
        for sign in ("", "-")
        for whole, fraction, exponent, value in unsigned(notation.max_digits, notation.max_exponent_digits)
        if _is_of_profile(numbers, notation, sign, whole, fraction, exponent, value) and (-value if sign else value) in numbers
    }


def _is_of_profile(
    numbers: NumberSet, notation: Notation, sign: str, whole: str, fraction: str, exponent: str, value: Fraction
) -> bool:
    if notation.permissive:
        return True
    if numbers.integer:
        return not fraction and not exponent and not (sign and value == 0)
    return not exponent or _is_everything(numbers, sign) or (len(whole) == 1 and whole != "0")


def _is_everything(numbers: NumberSet, sign: str) -> bool:
    """Whether the set has all numbers of a sign."""
    low, high = (numbers.upper, numbers.lower) if sign else (numbers.lower, numbers.upper)
    holds_zero = low is None or Bound(Fraction(0)) == low or (low.value != 0 and (low.value < 0) != bool(sign))
    return high is None and holds_zero and numbers.multiple_of is None and not numbers.not_multiple_of
