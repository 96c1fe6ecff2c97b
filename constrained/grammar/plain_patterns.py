"""Plain patterns: regular expressions of which their form shows that they are legal and that some string matches.

Characters, classes and groups with quantifiers, one after the other or as alternatives, and anchors at the ends alone: what
follows never depends on what was there, and each part has a string. Says nothing of any other pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

MAX_LEN = 500
MAX_KNOWN = 4096  # patterns that are remembered
MOST_CHARACTERS = 10_000  # that counts of repetitions may ask for
_MAX_GROUPS = 3  # inside each other

_ESCAPE = r"\\[dwsDWStnr.\-/\\+*?()\[\]{}|^$]"
_CHARACTER = r"""[A-Za-z0-9_ \-/:@,#%&=!~'"<>;]"""
_RANGE = "[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]"
# No upper-case escapes: two of them could leave nothing of a negated class. A hyphen stands at the end, or makes a range, or
# stands behind one and before no other hyphen.
_SINGLE = r"""(?:[A-Za-z0-9_ .:@/,#+*?=!&%~'"<>;()$|{}]|\\[dwstnr.\-/\\+*?()\[\]{}|^$])(?!-[^\]])"""
_CLASS = rf"\[\^?-?(?:(?:{_RANGE})(?:-(?![\]\-]))?|{_SINGLE})+-?\]"
_COUNT = r"(?:[*+?]|\{\d{1,3}(?:,(?:\d{1,4})?)?\})\??"
_CLASSES, _RANGES = re.compile(_CLASS), re.compile(_RANGE)
_LOWS = re.compile(r"\{(\d+)")
_COUNTS = re.compile(r"\{(\d+),(\d+)\}")


def _sequence(group: str) -> str:
    atom = f"(?:{_CHARACTER}|{_ESCAPE}|{_CLASS}|\\.{group})"
    return f"(?:{atom}(?:{_COUNT})?)*"


def _alternatives(num_groups: int) -> str:
    inner = rf"|\((?:\?:)?{_alternatives(num_groups - 1)}\)" if num_groups else ""
    sequence = _sequence(inner)
    return rf"{sequence}(?:\|{sequence})*"


_SOMETHING, _NONE = re.compile(r"[A-Za-z0-9\]]"), re.compile(r"\{0+\}|\{0+,0*\}")
# The last character may be one that a quantifier takes.
_PREFIX = re.compile(r"\^([A-Za-z0-9_\-]*)(?=[A-Za-z0-9_\-.\[(\\$]|$)(?![*?{])")
_PLAIN = re.compile(rf"\^?{_alternatives(_MAX_GROUPS)}\$?")


@lru_cache(MAX_KNOWN)
def is_plain(pattern: str) -> bool:
    """Whether it is plain that a pattern is legal and matches some string."""
    if len(pattern) > MAX_LEN or _PLAIN.fullmatch(pattern) is None:
        return False
    if prod(int(low) or 1 for low in _LOWS.findall(pattern)) > MOST_CHARACTERS:
        return False
    ranges = (one for found in _CLASSES.findall(pattern) for one in _RANGES.findall(found))
    return all(one[0] <= one[2] for one in ranges) and all(int(low) <= int(high) for low, high in _COUNTS.findall(pattern))


@lru_cache(MAX_KNOWN)
def fits(pattern: str, least: int, most: int) -> bool:
    """Whether it is plain that some string of `least` to `most` characters matches a plain pattern."""
    longest = len(pattern) * prod(int(low) or 1 for low in _LOWS.findall(pattern))  # that a shortest string may be
    if max(least, longest) > most:
        return False
    if "|" in pattern or least == 0:
        return least == 0
    if not pattern.startswith("^") or not pattern.endswith("$"):
        return True  # what comes before or behind may be anything
    return least == 1 and _SOMETHING.search(pattern) is not None and _NONE.search(pattern) is None


def prefix(pattern: str) -> str:
    """A text that all strings which match a plain pattern begin with, as far as it is plain to see."""
    found = _PREFIX.match(pattern)
    return found[1] if found is not None and "|" not in pattern else ""
