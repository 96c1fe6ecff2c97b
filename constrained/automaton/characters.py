"""Sets of characters as bits, and the tokens of a vocabulary that hold none but those of a set.

A set has a bit for each character of ASCII and one for each first byte of UTF-8 from `FIRST_LEAD` on (`strings.LOOP_WORDS`
words). Bit 0 stands for bytes that are no valid UTF-8. Only tokens of text are looked at here: without quote and
backslash, which end a string or begin an escape, and without what a string may not hold as it is.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings
from constrained.automaton.strings import LOOP_WORDS
from constrained.grammar.language.charsets import Ranges
from constrained.tokens.jit import kernel
from constrained.tokens.rows import Words, set_bits

FIRST_LEAD = 0xC0
ENDLESS = 1 << 20
MAX_ROWS = 256
# Tokens of more bytes are few.
LONG = 16

# Code points by the number of bytes that UTF-8 takes: the first, the last, the first byte without its part of the code
# point, and how many bits the other bytes hold.
_WIDTHS = ((0x80, 0x7FF, 0xC0, 6), (0x800, 0xFFFF, 0xE0, 12), (0x10000, 0x10FFFF, 0xF0, 18))
# The characters of each first byte, with its bit: the last of one comes right before the first of the next.
_LEADS = sorted(
    (
        max(least, part << shift),
        min(most, ((part + 1) << shift) - 1, 0xD7FF if lead | (part & 0x3F) == 0xED else most),
        1 << (128 + (lead | (part & 0x3F)) - FIRST_LEAD),
    )
    for least, most, lead, shift in _WIDTHS
    for part in range(least >> shift, (most >> shift) + 1)
)
_FIRSTS, _LASTS = [first for first, _, _ in _LEADS], [last for _, last, _ in _LEADS]
# The bits of so many first bytes.
_BITS = [0, *accumulate(bit for _, _, bit in _LEADS)]
_BEYOND_ASCII = _BITS[-1]
QUOTE_OR_BACKSLASH = 1 << strings.QUOTE | 1 << strings.BACKSLASH
# ASCII that a string may hold as it is; all that text is made of; what no string holds as it is.
PLAIN = (1 << 0x80) - (1 << 0x20) - QUOTE_OR_BACKSLASH
TEXT = PLAIN | _BEYOND_ASCII
NEVER = ~(TEXT | QUOTE_OR_BACKSLASH) & ((1 << 32 * LOOP_WORDS) - 1)


@lru_cache(1024)
def all_of(ranges: Ranges) -> int:
    """Of the characters of text, those in `ranges`; of first bytes, those whose characters all are."""
    found = _ascii(ranges)
    for low, high in reversed(ranges):
        if high < 0x80:
            break
        first, stop = bisect_left(_FIRSTS, low), bisect_right(_LASTS, high)
        if first < stop:
            found |= _BITS[stop] - _BITS[first]
    return found


@lru_cache(1024)
def some_of(ranges: Ranges) -> int:
    """Of the characters of text, those in `ranges`; of first bytes, those of which some character is."""
    found = _ascii(ranges)
    for low, high in reversed(ranges):
        if high < 0x80:
            break
        found |= _BITS[bisect_right(_FIRSTS, high)] & ~_BITS[bisect_left(_LASTS, low)]
    return found


def _ascii(ranges: Ranges) -> int:
    found = 0
    for low, high in ranges:
        if low < 0x80:
            found |= (2 << min(high, 0x7F)) - (1 << low)
    return found & PLAIN


def words(bits: int) -> NDArray[np.int32]:
    """A set as the kernels read it, int32 [LOOP_WORDS]."""
    return np.frombuffer(bits.to_bytes(4 * LOOP_WORDS, "little"), np.int32)


def _between(low: str, high: str) -> int:
    return (2 << ord(high)) - (1 << ord(low))


# Kinds of characters: a token that holds one of some kind need not be looked at for a set that has none of it.
_LETTERS = _between("a", "z"), _between("A", "Z")
_ALONE = (*_LETTERS, _between("0", "9"), *(1 << ord(char) for char in " _-."), _BEYOND_ASCII)
_KINDS = (*_ALONE, PLAIN & ~sum(_ALONE))
_BEYOND = _ALONE.index(_BEYOND_ASCII)


def _kinds_of(held: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Of each set uint64 [n, LOOP_WORDS / 2] which kinds are in it: a bit for each of `_KINDS`."""
    found = np.zeros(len(held), np.int64)
    for at, kind in enumerate(_KINDS):
        found |= np.int64(1 << at) * (held & words(kind).view(np.uint64)).any(axis=1)
    return found


class TextTokens:
    """The tokens of text in a vocabulary, by what they hold; its rows are bounded and safe between threads."""

    def __init__(self, flat: NDArray[np.uint8], starts: NDArray[np.int64], num_words: int) -> None:
        lengths = np.diff(starts).astype(np.int32)
        held = np.zeros((len(lengths), LOOP_WORDS // 2), np.uint64)
        is_text = np.zeros(len(lengths), np.bool_)
        _held_by(flat, starts, held, is_text)
        tokens = np.flatnonzero(is_text)
        kinds = _kinds_of(held[tokens])
        order = np.lexsort((lengths[tokens], kinds))
        self._tokens, self._held = tokens[order].astype(np.int32), np.ascontiguousarray(held[tokens[order]])
        self._max_len = int(lengths.max(initial=0))
        # Tokens of each mixture of kinds (`_kinds_of`), the shortest first.
        firsts = np.searchsorted(kinds[order], np.arange((1 << len(_KINDS)) + 1)).tolist()
        self._parts = [
            (mixture, first, lengths[self._tokens[first:stop]])
            for mixture, (first, stop) in enumerate(pairwise(firsts))
            if first < stop
        ]
        long = tokens[lengths[tokens] > LONG]
        self._long = lengths[long], held[long]
        self._num_words = num_words
        self._whole = self._common_unions()
        self._rows: OrderedDict[tuple[int, int], Words] = OrderedDict()
        self._lock = threading.Lock()

    def some_of_length(self, bits: int, low: int, high: float) -> bool:
        """Whether some token of `low` (more than `LONG`) to `high` bytes holds none but the characters of a set."""
        lengths, held = self._long
        fits = (lengths >= low) & (lengths <= min(high, self._max_len))
        return bool((~(held[fits] & ~words(bits).view(np.uint64)).any(axis=1)).any())

    def row(self, bits: int, max_len: int) -> Words:
        """The tokens of at most `max_len` bytes that hold none but the characters of a set; read-only."""
        key = (bits, min(max_len, self._max_len))
        with self._lock:
            found = self._rows.get(key)
            if found is None:
                found = self._rows[key] = self._find(*key)
                if len(self._rows) > MAX_ROWS:
                    self._rows.popitem(last=False)
            return found

    def _find(self, bits: int, max_len: int) -> Words:
        whole = sum(1 << at for at, kind in enumerate(_KINDS) if kind & bits == kind)
        some = sum(1 << at for at, kind in enumerate(_KINDS) if kind & bits)
        found = np.zeros(self._num_words, np.uint32) if max_len < self._max_len else self._of_kinds(whole).copy()
        limits = words(bits).view(np.uint64)
        for mixture, first, lengths in self._parts:
            if not mixture & ~some and (mixture & ~whole or max_len < self._max_len):
                stop = first + int(np.searchsorted(lengths, max_len, side="right"))
                _collect(self._tokens, self._held, first, stop, limits, found)
        return found

    def _of_kinds(self, kinds: int) -> Words:
        """The tokens that hold none but characters of some kinds: most sets have whole kinds, and few more."""
        found = self._whole.get(kinds)
        if found is None:
            found = self._whole[kinds] = self._union(kinds)
        return found

    def _union(self, kinds: int) -> Words:
        found = np.zeros(self._num_words, np.uint32)
        for mixture, first, lengths in self._parts:
            if not mixture & ~kinds:
                set_bits(found, self._tokens[first : first + len(lengths)])
        return found

    def _common_unions(self) -> dict[int, Words]:
        """Those that patterns ask for most: of letters and digits, with any of the kinds of one character, or beyond ASCII."""
        letters, signs = (1, 2, 3, 4, 5, 6, 7), range(0, 1 << _BEYOND, 8)
        found = [kinds | more for kinds in letters for more in signs] + [7 | more | 1 << _BEYOND for more in signs]
        return {kinds: self._union(kinds) for kinds in found}


@kernel
def _held_by(flat, starts, held, is_text):  # type: ignore[no-untyped-def]  # numba
    """The characters that each token holds, uint64 [n, LOOP_WORDS / 2], and whether it is text (maybe cut at its end)."""
    for token in range(len(is_text)):
        state = 0
        for i in range(starts[token], starts[token + 1]):
            code = flat[i]
            if state == 0:
                bit = code if code < 0x80 else 128 + code - FIRST_LEAD
                if code < 0x80 or code >= FIRST_LEAD:
                    held[token, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            # The table rejects quote, backslash and controls.
            state = strings.UTF8[state, code]
            if state == strings.REJECT:
                break
        is_text[token] = state != strings.REJECT and starts[token] < starts[token + 1]


@kernel
def _collect(tokens, held, first, stop, bits, found):  # type: ignore[no-untyped-def]  # numba
    """Set the bits of those tokens from `first` to `stop` that hold none but `bits` uint64 [LOOP_WORDS / 2]."""
    one, two, three = ~bits[0], ~bits[1], ~bits[2]
    for i in range(first, stop):
        if (held[i, 0] & one) | (held[i, 1] & two) | (held[i, 2] & three) == 0:
            found[tokens[i] >> 5] |= np.uint32(1) << np.uint32(tokens[i] & 31)
