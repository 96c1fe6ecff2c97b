"""Small builders of patterns, so that a format reads like the ABNF of its RFC (RFC 5234, section 3 and appendix B.1).

A pattern is ECMA-262 syntax for a whole string, without anchors. Every builder returns one that can be put beside another:
an alternation is always in a group. Nothing here knows a format.
"""

from __future__ import annotations

ALPHA = "[A-Za-z]"
DIGIT = "[0-9]"
HEXDIG = "[0-9A-Fa-f]"
ANYTHING = "[^]*"


def any_of(*parts: str) -> str:
    """ABNF's `a / b`."""
    return f"(?:{'|'.join(parts)})"


def optional(part: str) -> str:
    """ABNF's `[a]`."""
    return f"(?:{part})?"


def repeated(part: str, low: int = 0, high: int | None = None) -> str:
    """ABNF's `<low>*<high>a`; no `high` means any number."""
    return f"(?:{part}){{{low},{'' if high is None else high}}}"


def exactly(part: str, count: int) -> str:
    """ABNF's `<count>a`."""
    return f"(?:{part}){{{count}}}"


def separated(part: str, separator: str, low: int, high: int | None = None) -> str:
    """`low` (at least one) to `high` parts with separators between them."""
    return part + repeated(separator + part, low - 1, None if high is None else high - 1)
