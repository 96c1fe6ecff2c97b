"""Short JSON texts of single values: canonical spellings, and the shortest member of a set of numbers or strings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any

from constrained.grammar.number_sets import NumberSet
from constrained.grammar.string_sets import UNBOUNDED, StringSet

# Longest run of digits before the point, and after it, that a number may be spelled with.
MAX_DIGITS = 64


def canonical(value: Any) -> str:
    """The one JSON text of equal values: members sorted, numbers exact (1 and 1.0 are one value; true and 1 are two)."""
    if isinstance(value, Mapping):
        members = sorted((json.dumps(name), canonical(member)) for name, member in value.items())
        return "{" + ",".join(f"{name}:{member}" for name, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        return _canonical_number(exact) if exact.is_finite() else str(exact)
    return json.dumps(value)


def _canonical_number(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    stripped = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - len(stripped)
    if not stripped:
        return "0"
    text = f"{stripped}e{power}" if power else stripped
    return f"-{text}" if sign else text


def parsed(text: str) -> Any:
    """The value of a JSON text, numbers exact."""
    return json.loads(text, parse_float=Decimal)


def quote(text: str) -> bytes:
    """The JSON string of `text` in UTF-8, with no escape that is not needed."""
    return json.dumps(text, ensure_ascii=False).encode()


def decimal_text(value: Fraction) -> str | None:
    """`value` in plain decimal notation; None where that does not end or is past `MAX_DIGITS`."""
    denominator, digits = value.denominator, 0
    while denominator % 10 == 0:
        denominator, digits = denominator // 10, digits + 1
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    digits += max(twos, fives)
    if denominator != 1 or digits > MAX_DIGITS:
        return None
    scaled = abs(value) * 10**digits
    text = str(int(scaled)).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}")


def number_spellings(value: Fraction) -> list[str]:
    """The spellings of one constant, shortest first: plain decimal, and what Python and JavaScript print."""
    spellings = [text for text in (decimal_text(value),) if text is not None]
    try:
        double = float(value)
    except OverflowError:
        return spellings
    if Fraction(Decimal(repr(double))) == value:
        spellings.append(repr(double))
    return sorted(dict.fromkeys(spellings), key=len)


def shortest_number(numbers: NumberSet) -> str | None:
    """The shortest plain text of a number in the set; None where the set is empty."""
    if numbers.values is not None:
        texts = [text for value in numbers.values for text in number_spellings(value)[:1]]
        return min(texts, key=lambda text: (len(text), text), default=None)
    if Fraction(0) in numbers:
        return "0"
    for digits in range(int(numbers.fractional), 1 if numbers.integer else MAX_DIGITS + 1):
        for value in _nearest_to_zero(numbers, digits):
            text = decimal_text(value)
            if value in numbers and text is not None and len(text.lstrip("-").split(".")[0]) <= MAX_DIGITS:
                return text
    return None


def _nearest_to_zero(numbers: NumberSet, digits: int) -> list[Fraction]:
    """Values with `digits` decimals that lie nearest to zero inside the bounds; zero is not in the set."""
    scale = 10**digits
    found = [Fraction(1, scale), Fraction(-1, scale)]
    if numbers.lower is not None and numbers.lower.value >= 0:
        low = ceil(numbers.lower.value * scale)
        found = [Fraction(low, scale), Fraction(low + 1, scale)]
    elif numbers.upper is not None and numbers.upper.value <= 0:
        high = floor(numbers.upper.value * scale)
        found = [Fraction(high, scale), Fraction(high - 1, scale)]
    return found


def min_number_len(numbers: NumberSet) -> int | None:
    """Bytes of `shortest_number`; None where the set is empty."""
    text = shortest_number(numbers)
    return None if text is None else len(text)


def shortest_string(strings: StringSet) -> bytes | None:
    """The shortest JSON string in the set; None where the set is empty."""
    if strings.values is not None:
        return min((quote(value) for value in strings.values), key=lambda text: (len(text), text), default=None)
    if strings.language is not None:
        text = strings.language.shortest()
        return None if text is None else quote(text)
    if strings.min_len >= UNBOUNDED:
        return None
    for length in range(strings.min_len, min(strings.max_len, strings.min_len + 1) + 1):
        # Only the last characters vary: a few hundred candidates are more than any finite exclusion here needs.
        fixed, free = "a" * max(length - 3, 0), min(length, 3)
        for ending in product(_LETTERS, repeat=free):
            if (text := fixed + "".join(ending)) not in strings.excluded:
                return quote(text)
    return None


def min_string_len(strings: StringSet) -> int | None:
    """Bytes of `shortest_string`; None where the set is empty."""
    if strings.values is None and strings.language is None and not strings.excluded:
        empty = strings.min_len > strings.max_len or strings.min_len >= UNBOUNDED
        return None if empty else strings.min_len + 2
    text = shortest_string(strings)
    return None if text is None else len(text)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
