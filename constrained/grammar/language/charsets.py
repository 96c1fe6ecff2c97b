"""Sets of code points as sorted tuples of disjoint, non-adjacent ranges `(first, last)`; no automata here.

Surrogates are no characters: `ALPHABET` leaves D800 to DFFF out, and `complement` is relative to it.
"""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]

LAST_CODE_POINT = 0x10FFFF
ALPHABET: Ranges = ((0, 0xD7FF), (0xE000, LAST_CODE_POINT))


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same set, sorted and merged, as any caller may have collected it; surrogates are dropped."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    if any(low <= 0xDFFF and high >= 0xD800 for low, high in merged):
        return intersect(tuple(merged), ALPHABET)
    return tuple(merged)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def complement(ranges: Ranges) -> Ranges:
    """The code points of the alphabet outside `ranges`."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST_CODE_POINT:
        gaps.append((start, LAST_CODE_POINT))
    return intersect(tuple(gaps), ALPHABET)


def size(ranges: Ranges) -> int:
    """How many code points there are."""
    return sum(high - low + 1 for low, high in ranges)


def of_chars(chars: Iterable[str]) -> Ranges:
    return normalise((ord(char), ord(char)) for char in chars)


def spelled_by(allowed: frozenset[int]) -> Ranges:
    """The characters whose UTF-8 holds only these bytes."""
    ranges = [(byte, byte) for byte in allowed if byte < 0x80]
    if allowed.issuperset(range(0x80, 0xC0)):
        ranges += [span for lead in allowed if lead >= 0xC2 and (span := _begun_by(lead)) is not None]
    return normalise(ranges)


def _begun_by(lead: int) -> tuple[int, int] | None:
    """The code points that a first byte of UTF-8 begins."""
    for least, most, first, shift in ((0x80, 0x7FF, 0xC0, 6), (0x800, 0xFFFF, 0xE0, 12), (0x10000, 0x10FFFF, 0xF0, 18)):
        low = (lead - first) << shift
        if lead >= first and low <= most and low + (1 << shift) > least:
            return max(low, least), min(low + (1 << shift) - 1, most)
    return None


# ECMA-262, 22.2.2.9 CharacterClassEscape, and 12.2, 12.3 for white space and line terminators.
DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
LINE_TERMINATOR: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
