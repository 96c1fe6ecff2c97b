"""Short texts of numbers: the spellings of one value, and the shortest member of a set."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from constrained.grammar.number_sets import NumberSet
from constrained.grammar.numerals.machine import numeral
from constrained.grammar.numerals.magnitudes import decimals
from constrained.grammar.numerals.notation import Notation


def decimal_text(value: Fraction) -> str | None:
    """`value` in plain decimal notation; None where that does not end."""
    try:
        digits = decimals(value)
    except ValueError:
        return None
    text = str(abs(value.numerator) * 10**digits // value.denominator).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}")


def spellings(value: Fraction, notation: Notation, *, plain: bool = False) -> list[str]:
    """The spellings of one constant by default, shortest first: decimal, and what Python and JavaScript print.

    `plain` ones hold neither point nor exponent (see `NumberSet`).
    """
    decimal = decimal_text(value)
    found = [decimal] if decimal is not None and len(decimal.partition(".")[2]) <= notation.max_digits else []
    if plain:
        return found if value.denominator == 1 else []
    try:
        double = float(value)
    except OverflowError:
        return found
    if Fraction(Decimal(repr(double))) == value:
        found.append(repr(double))
    return sorted(dict.fromkeys(found), key=len)


def shortest_number(numbers: NumberSet, notation: Notation) -> str | None:
    """The shortest text of a number in the set; None where none can be written."""
    if numbers.values is None or notation.permissive:
        closing = numeral(numbers, notation).closing
        return None if closing is None else closing.decode()
    texts = [text for value in numbers.values for text in spellings(value, notation, plain=numbers.plain)[:1]]
    return min(texts, key=lambda text: (len(text), text), default=None)


def min_number_len(numbers: NumberSet, notation: Notation) -> int | None:
    """Bytes of `shortest_number`; None where there is none."""
    text = shortest_number(numbers, notation)
    return None if text is None else len(text)
