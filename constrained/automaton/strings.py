"""The string machine: JSON's escape layer over a machine of decoded content, one byte at a time.

A position in a string is (content, escape). The content machine reads UTF-8: the free one is the automaton of valid
UTF-8 (RFC 3629), a trie holds names or enum values, an automaton the strings of a pattern or format. Direct bytes step it;
an escape steps it with the character that it means, once the escape is whole. An escape is begun only where some character
that it can still mean leads on, so no position is a dead end. `need` and `room` count the code points that must and may
still come.

Lexeme positions are int32: kind in the upper bits, index in the lower (`PLAIN`, `FREE`, `TRIE`, `DFA`).
"""

from __future__ import annotations

import numpy as np

from constrained.tokens.jit import kernel

KIND_SHIFT = 28
INDEX = (1 << KIND_SHIFT) - 1
PLAIN, FREE, TRIE, DFA = (kind << KIND_SHIFT for kind in range(4))
UNBOUNDED = 1 << 30

# Columns of the table of string tries; `TAG` holds a tag, NO_TAG (not the end of a string) or EXCLUDED (a string that is out).
BYTE, END, TAG, UTF8_STATE, FALLBACK = range(5)
TRIE_COLUMNS = 5
NO_TAG, EXCLUDED = -1, -2
FREE_TAG = 0  # the tag of a string that no trie holds
VALUE_TAG = 1

# Columns of the table of automata, before one column for each byte: may the string end here (UNKNOWN: the row is not filled),
# does a character begin here, which rows of `ranges` (least, most, how much room they need; row 0 is `SPELLING`) hold the
# characters that lead on, how many characters must still come at least (where lengths are counted beside the automaton), and
# how many characters out of a set (bits, see `LOOP_WORDS`) lead on whatever they are: these are known before a row is filled.
ENDS, BEGINS, RANGE_FIRST, RANGE_STOP, SHORTEST, RUN, LOOP_0 = range(7)
# A set of characters has a bit for each byte of ASCII, and from bit 128 on one for each leading byte from C0 on.
LOOP_WORDS = 6
BYTE_0 = LOOP_0 + LOOP_WORDS
LANGUAGE_COLUMNS = BYTE_0 + 256
RANGE_COLUMNS = 3
UNCOUNTED = 1 << 29  # stands for `SHORTEST` where lengths are not counted
UNKNOWN = -1

# Results of a step.
DEAD, ALIVE, EXIT, NEW_CONTENT = 0, 1, 2, 7

QUOTE, BACKSLASH = 0x22, 0x5C
REJECT = 255

# Escapes as (mode, digits, value): after the backslash; in the first unit; after a high surrogate; after the backslash
# that follows it; in the low unit.
AFTER_BACKSLASH, FIRST_UNIT, AFTER_HIGH, AFTER_HIGH_BACKSLASH, LOW_UNIT = 1, 2, 3, 4, 5
MODE_SHIFT, DIGITS_SHIFT = 26, 23
VALUE = (1 << DIGITS_SHIFT) - 1


def _utf8_table() -> np.ndarray:
    """States of valid UTF-8: 0 between characters; 1, 2, 3 continuation bytes to come; 4..7 after E0, ED, F0, F4."""
    table = np.full((8, 256), REJECT, np.uint8)
    table[0, 0x20:0x80] = 0
    table[0, [QUOTE, BACKSLASH]] = REJECT
    table[0, 0xC2:0xE0] = 1
    table[0, 0xE0:0xF0] = 2
    table[0, [0xE0, 0xED]] = [4, 5]
    table[0, 0xF0:0xF5] = 3
    table[0, [0xF0, 0xF4]] = [6, 7]
    table[1, 0x80:0xC0] = 0
    table[2, 0x80:0xC0] = 1
    table[3, 0x80:0xC0] = 2
    table[4, 0xA0:0xC0] = 1
    table[5, 0x80:0xA0] = 1
    table[6, 0x90:0xC0] = 2
    table[7, 0x80:0x90] = 2
    return table


UTF8 = _utf8_table()

# What may follow a backslash, other than u, and what it means; 0 is nothing.
SHORT = np.zeros(256, np.uint8)
for _letter, _meaning in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    SHORT[_letter] = _meaning

HEX = np.full(256, 255, np.uint8)
for _digit, _code in enumerate(b"0123456789abcdef"):
    HEX[_code] = _digit
for _digit, _code in enumerate(b"ABCDEF"):
    HEX[_code] = _digit + 10

# ASCII characters that encoders write as \uXXXX: controls, and what is unsafe inside HTML. Beyond ASCII all are.
# In the permissive spelling every character may be written so: then `ranges[SPELLING, 0]` is 1, else 0.
SPELLING = 0
ESCAPED = np.zeros(128, np.bool_)
ESCAPED[:0x20] = True
ESCAPED[[0x7F, *b"\"\\/<>&'+`"]] = True


@kernel
def step_string(byte, lex, esc, need, room, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """One byte inside a string: (result, lex, esc, need, room, tag)."""
    if lex >= DFA and dfa[lex & INDEX, ENDS] == UNKNOWN:
        return NEW_CONTENT, lex, esc, need, room, NO_TAG
    if esc != 0:
        result, lex, esc = _step_escape(byte, lex, esc, room, tries, dfa, ranges)
        if result == ALIVE and esc == 0:
            need, room = _count(need, room)
            result = ALIVE if _fits(lex, room, dfa) else DEAD
        return result, lex, esc, need, room, NO_TAG
    if _is_between(lex, tries, dfa, ranges):
        if byte == QUOTE:
            tag = ending_tag(lex, tries, dfa, ranges)
            return (EXIT if tag >= 0 and need == 0 else DEAD), lex, 0, need, room, tag
        if room < 1:
            return DEAD, lex, 0, need, room, NO_TAG
        if byte == BACKSLASH:
            alive = _any_short(lex, room, tries, dfa, ranges) or _any_unit(lex, room, tries, dfa, ranges, 0, 0xFFFF)
            return (ALIVE if alive else DEAD), lex, AFTER_BACKSLASH << MODE_SHIFT, need, room, NO_TAG
        if byte < 0x20:
            return DEAD, lex, 0, need, room, NO_TAG
    lex = step_content(byte, lex, tries, dfa, ranges)
    if lex < 0:
        return DEAD, lex, 0, need, room, NO_TAG
    if _is_between(lex, tries, dfa, ranges):
        need, room = _count(need, room)
    return (ALIVE if _fits(lex, room, dfa) else DEAD), lex, 0, need, room, NO_TAG


@kernel
def _fits(lex, room, dfa):  # type: ignore[no-untyped-def]  # numba
    """Whether there is room to end the string from a place."""
    return lex < DFA or dfa[lex & INDEX, SHORTEST] <= room


@kernel
def _is_between(lex, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """Whether a character may begin here, that is, none is half read."""
    if lex < TRIE:
        return lex & INDEX == 0
    if lex < DFA:
        return tries[lex & INDEX, UTF8_STATE] == 0
    return dfa[lex & INDEX, BEGINS] != 0


@kernel
def _count(need, room):  # type: ignore[no-untyped-def]  # numba
    """One character more."""
    return max(need - 1, 0), (room if room >= UNBOUNDED else room - 1)


@kernel
def ending_tag(lex, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """The tag of the string that ends here; negative where none may end."""
    if lex < TRIE:
        return FREE_TAG
    if lex >= DFA:
        return VALUE_TAG if dfa[lex & INDEX, ENDS] == 1 else NO_TAG
    tag = tries[lex & INDEX, TAG]
    if tag == NO_TAG and tries[lex & INDEX, FALLBACK]:
        return FREE_TAG
    return tag


@kernel
def step_content(byte, lex, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """One UTF-8 byte of decoded content; negative where it leads nowhere. Quote and backslash come here only escaped.

    Inside a character an automaton's rows are always filled: they come with the row that the character begins at.
    """
    if lex < TRIE:
        return _step_utf8(byte, lex & INDEX)
    if lex >= DFA:
        return dfa[lex & INDEX, BYTE_0 + byte]
    node = lex & INDEX
    child = node + 1
    while child < tries[node, END]:
        if tries[child, BYTE] == byte:
            return TRIE | child
        child = tries[child, END]
    if tries[node, FALLBACK]:
        return _step_utf8(byte, tries[node, UTF8_STATE])
    return -1


@kernel
def _step_utf8(byte, state):  # type: ignore[no-untyped-def]  # numba
    if state == 0 and byte < 0x80:
        return FREE
    after = UTF8[state, byte]
    return -1 if after == REJECT else FREE | after


@kernel
def _step_escape(byte, lex, esc, room, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """One byte of an escape: (result, lex, esc); esc is 0 once the character is whole."""
    mode, digits, value = esc >> MODE_SHIFT, (esc >> DIGITS_SHIFT) & 7, esc & VALUE
    if mode == AFTER_BACKSLASH:
        if byte == 0x75:
            return (ALIVE if _any_unit(lex, room, tries, dfa, ranges, 0, 0xFFFF) else DEAD), lex, FIRST_UNIT << MODE_SHIFT
        if SHORT[byte] == 0:
            return DEAD, lex, esc
        lex = feed(SHORT[byte], lex, tries, dfa, ranges)
        return (ALIVE if lex >= 0 else DEAD), lex, 0
    if mode == AFTER_HIGH:
        return (ALIVE if byte == BACKSLASH else DEAD), lex, (AFTER_HIGH_BACKSLASH << MODE_SHIFT) | value
    if mode == AFTER_HIGH_BACKSLASH:
        return (ALIVE if byte == 0x75 else DEAD), lex, (LOW_UNIT << MODE_SHIFT) | (value << 12)
    if HEX[byte] == 255:
        return DEAD, lex, esc
    digits += 1
    if mode == FIRST_UNIT:
        return _first_unit((value << 4) | HEX[byte], digits, lex, room, tries, dfa, ranges)
    # The low unit's top digit is D, so 12 bits hold the other three.
    if digits == 1:
        if HEX[byte] != 0xD:
            return DEAD, lex, esc
        return ALIVE, lex, (LOW_UNIT << MODE_SHIFT) | (1 << DIGITS_SHIFT) | value
    high, low = value >> 12, ((value & 0xFFF) << 4) | HEX[byte]
    return _low_unit(high, low, digits, lex, room, tries, dfa, ranges)


@kernel
def _first_unit(value, digits, lex, room, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    if digits < 4:
        left = 4 * (4 - digits)
        alive = _any_unit(lex, room, tries, dfa, ranges, value << left, (value << left) | ((1 << left) - 1))
        return (ALIVE if alive else DEAD), lex, (FIRST_UNIT << MODE_SHIFT) | (digits << DIGITS_SHIFT) | value
    if not _any_unit(lex, room, tries, dfa, ranges, value, value):
        return DEAD, lex, 0
    if 0xD800 <= value <= 0xDBFF:
        return ALIVE, lex, (AFTER_HIGH << MODE_SHIFT) | (value - 0xD800)
    lex = feed(value, lex, tries, dfa, ranges)
    return (ALIVE if lex >= 0 else DEAD), lex, 0


@kernel
def _low_unit(high, low, digits, lex, room, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """`low` holds the digits after the D; a low surrogate is DC00 to DFFF."""
    left = 4 * (4 - digits)
    least, most = max(low << left, 0xC00), (low << left) | ((1 << left) - 1)
    base = 0x10000 + (high << 10) - 0xC00
    if most < 0xC00 or not _any_content(lex, room, tries, dfa, ranges, base + least, base + most):
        return DEAD, lex, 0
    if digits < 4:
        return ALIVE, lex, (LOW_UNIT << MODE_SHIFT) | (digits << DIGITS_SHIFT) | (high << 12) | low
    lex = feed(base + low, lex, tries, dfa, ranges)
    return (ALIVE if lex >= 0 else DEAD), lex, 0


@kernel
def feed(character, lex, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """Step the content machine with one character; negative where it leads nowhere."""
    if character < 0x80:
        return step_content(character, lex, tries, dfa, ranges)
    if character < 0x800:
        lex = step_content(0xC0 | (character >> 6), lex, tries, dfa, ranges)
    else:
        if character < 0x10000:
            lex = step_content(0xE0 | (character >> 12), lex, tries, dfa, ranges)
        else:
            lex = step_content(0xF0 | (character >> 18), lex, tries, dfa, ranges)
            if lex >= 0:
                lex = step_content(0x80 | ((character >> 12) & 0x3F), lex, tries, dfa, ranges)
        if lex >= 0:
            lex = step_content(0x80 | ((character >> 6) & 0x3F), lex, tries, dfa, ranges)
    if lex >= 0:
        lex = step_content(0x80 | (character & 0x3F), lex, tries, dfa, ranges)
    return lex


@kernel
def _any_short(lex, room, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """Whether a short escape leads on."""
    for letter in range(256):
        if SHORT[letter] != 0:
            after = step_content(SHORT[letter], lex, tries, dfa, ranges)
            if after >= 0 and _fits(after, room - 1, dfa):
                return True
    return False


@kernel
def _any_unit(lex, room, tries, dfa, ranges, least, most):  # type: ignore[no-untyped-def]  # numba
    """Whether a first \\u unit between `least` and `most` leads on, alone or as a high surrogate."""
    if least < 0xD800 and _any_content(lex, room, tries, dfa, ranges, least, min(most, 0xD7FF)):
        return True
    if most > 0xDFFF and _any_content(lex, room, tries, dfa, ranges, max(least, 0xE000), most):
        return True
    high, last = max(least, 0xD800), min(most, 0xDBFF)
    if high > last:
        return False
    return _any_content(lex, room, tries, dfa, ranges, 0x10000 + ((high - 0xD800) << 10), 0x103FF + ((last - 0xD800) << 10))


@kernel
def _any_content(lex, room, tries, dfa, ranges, least, most):  # type: ignore[no-untyped-def]  # numba
    """Whether a character between `least` and `most` that may be written as \\u leads on."""
    if lex >= DFA:
        for i in range(dfa[lex & INDEX, RANGE_FIRST], dfa[lex & INDEX, RANGE_STOP]):
            low, high = max(least, ranges[i, 0]), min(most, ranges[i, 1])
            if low <= high and ranges[i, 2] <= room and _may_escape(low, high, ranges):
                return True
        return False
    if lex < TRIE or tries[lex & INDEX, FALLBACK]:
        return _may_escape(least, most, ranges)
    return _any_child(lex & INDEX, tries, dfa, ranges, least, most)


@kernel
def _may_escape(least, most, ranges):  # type: ignore[no-untyped-def]  # numba
    """Whether some character between `least` and `most` may be written as \\u."""
    if most >= 128 or ranges[SPELLING, 0] != 0:
        return True
    for character in range(least, most + 1):
        if ESCAPED[character]:
            return True
    return False


@kernel
def _any_child(node, tries, dfa, ranges, least, most):  # type: ignore[no-untyped-def]  # numba
    """Whether a character below `node`, which stands between characters, lies between the limits."""
    # One level for each byte of a character; no recursion, which numba's cache on disk does not survive.
    children = np.empty(4, np.int32)
    stops = np.empty(4, np.int32)
    values = np.empty(4, np.int32)
    level = 0
    children[0], stops[0] = node + 1, tries[node, END]
    missing = np.empty(4, np.int32)
    while level >= 0:
        child = children[level]
        if child >= stops[level]:
            level -= 1
            continue
        children[level] = tries[child, END]
        byte = tries[child, BYTE]
        if level > 0:
            left, value = missing[level - 1] - 1, (values[level - 1] << 6) | (byte & 0x3F)
        elif byte < 0x80:
            left, value = 0, byte
        else:
            left = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            value = byte & (0x3F >> left)
        if left == 0:
            if least <= value <= most and _may_escape(value, value, ranges):
                return True
            continue
        values[level], missing[level] = value, left
        level += 1
        children[level], stops[level] = child + 1, tries[child, END]
    return False
