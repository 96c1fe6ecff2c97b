"""Sets of characters as bits, and the tokens that hold none but those of a set, against a look at each."""

from __future__ import annotations

import random

import numpy as np
import pytest

from constrained.automaton import characters
from constrained.automaton.characters import FIRST_LEAD, LONG, TextTokens
from constrained.automaton.string_rows import flattened
from constrained.grammar.language import charsets
from constrained.grammar.language.charsets import ALPHABET, Ranges

RANGES = [
    (),
    ALPHABET,
    charsets.WORD,
    charsets.SPACE,
    charsets.complement(charsets.SPACE),
    charsets.complement(charsets.of_chars('"\\\n')),
    ((0x41, 0x41), (0x80, 0x7FF)),
    ((0x61, 0x7A), (0xC0, 0xFF), (0x800, 0x1FFF), (0xD000, 0xD7FF), (0x10000, 0x3FFFF)),
    ((0xE000, 0x10FFFF),),
    charsets.of_chars("abcdefghijklmnopqrstuvwxyz0123456789-"),
    ((0x20, 0x20), (0x30, 0x39), (0x41, 0x5A), (0x61, 0x6A)),
]
TEXTS = [
    "a",
    "B",
    "zz",
    "7",
    " ",
    "-",
    "_-_",
    "é",
    "ßa",
    "中",
    "a 中",
    "😀",
    "\u2028",
    "\ud7ff",
    '"',
    "\\",
    "\n",
    "\x7f",
    "ab-" * 7,
]


def by_first_byte() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for code_point in [*range(0x80, 0xD800), *range(0xE000, 0x110000, 16), *range(0xE00F, 0x110000, 16)]:
        found.setdefault(chr(code_point).encode()[0], []).append(code_point)
    return found


LEADS = by_first_byte()


@pytest.mark.parametrize("ranges", RANGES)
def test_sets_are_those_of_their_characters(ranges: Ranges) -> None:
    def holds(code_point: int) -> bool:
        return any(low <= code_point <= high for low, high in ranges)

    for found, enough in ((characters.all_of(ranges), all), (characters.some_of(ranges), any)):
        assert found & ~characters.TEXT == 0
        for code_point in range(0x80):
            assert bool(found >> code_point & 1) == (holds(code_point) and bool(characters.PLAIN >> code_point & 1))
        for lead, members in LEADS.items():
            assert bool(found >> (128 + lead - FIRST_LEAD) & 1) == enough(map(holds, members)), hex(lead)


def test_tokens_of_a_set() -> None:
    pick = random.Random(5)
    tokens = ["".join(pick.choices(TEXTS, k=pick.randrange(1, 5))).encode() for _ in range(500)]
    tokens += [token[: pick.randrange(len(token))] for token in tokens] + [bytes([byte]) for byte in range(256)]
    seen = TextTokens(*flattened(tokens), len(tokens) // 32 + 1)

    def fits(token: bytes, bits: int) -> bool:
        """Each character is in the set, one that is cut off at the end by its first byte."""
        for cut in range(4):
            try:
                text = token[: len(token) - cut].decode()
            except UnicodeDecodeError:
                continue
            end = token[len(token) - cut :]
            held = [ord(char) if char < "\x80" else 128 + char.encode()[0] - FIRST_LEAD for char in text]
            begun = [128 + end[0] - FIRST_LEAD] if end and end[0] >= FIRST_LEAD and _may_begin(end) else []
            return bool(token) and len(begun) == (cut > 0) and all(bits >> at & 1 for at in held + begun)
        return False

    for ranges in RANGES:
        bits = characters.all_of(ranges)
        for max_len in (1, 3, 8, 1000):
            row = seen.row(bits, max_len)
            taken = {token for token in range(len(tokens)) if row[token >> 5] >> np.uint32(token & 31) & np.uint32(1)}
            assert taken == {at for at, token in enumerate(tokens) if len(token) <= max_len and fits(token, bits)}
        for low, high in ((LONG + 1, 1000), (20, 21), (30, 40)):
            some = any(low <= len(token) <= high and fits(token, bits) for token in tokens)
            assert seen.some_of_length(bits, low, high) == some


def _may_begin(end: bytes) -> bool:
    """Whether bytes are the beginning of a character."""
    return any((end + rest).decode(errors="replace") == (end + rest).decode(errors="ignore") for rest in _RESTS)


_RESTS = [rest[:size] for rest in (b"\x80\x80\x80", b"\xa0\x80\x80", b"\x90\x80\x80") for size in (1, 2, 3)]
