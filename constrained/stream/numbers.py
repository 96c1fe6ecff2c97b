"""JSON numbers (RFC 8259 section 6): a lexeme's value, and whether a binary double holds it.

A double holds a lexeme if it equals it exactly or if its shortest decimal spelling does: so `0.1` and 2**70 pass, and
2**53 + 1, `1e400` and `1e-400` do not.
"""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal

LARGEST_DOUBLE = sys.float_info.max

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_SAFE_LEN = 15  # any integer of so many digits is exact in a double
_NONZERO_SIGNIFICAND = re.compile(r"-?[0.]*[1-9]")


def read_number(lexeme: str) -> tuple[int | float, str | None]:
    """The value of `lexeme` as `json.loads` reads it, and the lexeme itself where a double would lose it.

    Integers are exact at any length. `ValueError` where it is not a JSON number.
    """
    match = _NUMBER.fullmatch(lexeme)
    if match is None:
        raise ValueError(f"{lexeme!r} is not a JSON number")
    if not match["real"] and len(lexeme) <= _SAFE_LEN:
        return int(lexeme), None
    value = float(lexeme) if match["real"] else _read_integer(lexeme)
    return value, None if _double_holds(lexeme) else lexeme


def finite(value: int | float) -> int | float:
    """`value`, or the largest finite double of its sign where it lies beyond the doubles: JSON on the wire has no infinity."""
    if -LARGEST_DOUBLE <= value <= LARGEST_DOUBLE:
        return value
    return math.copysign(LARGEST_DOUBLE, -1.0 if value < 0 else 1.0)


def _read_integer(lexeme: str) -> int:
    # int() of text refuses more than a few thousand digits; a Decimal of any length is exact.
    return int(Decimal(lexeme))


def _double_holds(lexeme: str) -> bool:
    double = float(lexeme)
    if math.isinf(double):
        return False
    if double == 0.0:
        return _NONZERO_SIGNIFICAND.match(lexeme) is None
    exact = Decimal(lexeme)
    return Decimal(repr(double)) == exact or Decimal(double) == exact
