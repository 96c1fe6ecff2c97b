"""Shortcuts (`cuts`) as walks take them: the bits of what stays inside, and an item for each way out."""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.stepping import place_behind
from constrained.automaton.strings import FREE_TAG, ending_tag, step_content
from constrained.automaton.tables import ADDED, BLOCK_SHIFT
from constrained.automaton.walk_items import NODE, store
from constrained.tokens.jit import int32_array, int32_table, kernel


@kernel
def cut_at(shortcuts, node, lex):  # type: ignore[no-untyped-def]  # numba
    """The shortcut for a lexeme position at a node, -1 where there is none."""
    spans = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)
    cut = int32_array(shortcuts[tables.CUT_INDEX])[node]
    while cut >= 0 and spans[cut, tables.C_LEX] != lex:
        cut = spans[cut, tables.C_NEXT]
    return cut


@kernel
def longest_text(shortcuts, cut):  # type: ignore[no-untyped-def]  # numba
    """How many characters the longest text of a shortcut has."""
    return int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)[cut, tables.C_LONGEST]


@kernel
def _num_characters(shortcuts, exit_):  # type: ignore[no-untyped-def]  # numba
    """How many characters lead to an exit of a shortcut."""
    exits, paths = int32_table(shortcuts[tables.CUT_EXITS], tables.EXIT_COLUMNS), int32_array(shortcuts[tables.CUT_PATHS])
    count = 0
    for i in range(exits[exit_, 2], exits[exit_, 3]):
        if paths[i] & 0xC0 != 0x80:
            count += 1
    return count


@kernel
def _take_bits(shortcuts, cut, words, touched):  # type: ignore[no-untyped-def]  # numba
    spans, bits = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS), int32_table(shortcuts[tables.CUT_BITS], 2)
    for i in range(spans[cut, tables.C_BITS], spans[cut, tables.C_BITS_STOP]):
        words[bits[i, 0]] |= bits[i, 1]
        touched[bits[i, 0] >> BLOCK_SHIFT] |= ADDED


@kernel
def _along(shortcuts, exit_, lex, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """The place in a string that falls back to a free one after the text that leads to an exit of a shortcut."""
    exits, paths = int32_table(shortcuts[tables.CUT_EXITS], tables.EXIT_COLUMNS), int32_array(shortcuts[tables.CUT_PATHS])
    for i in range(exits[exit_, 2], exits[exit_, 3]):
        lex = step_content(paths[i], lex, tries, dfa, ranges)
    return lex


@kernel
def missing_behind(shortcuts, cut, lex, local, locals_, tags, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """The row of tags of a key's end behind which no place is made yet, -1 where all are."""
    spans = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)
    exits = int32_table(shortcuts[tables.CUT_EXITS], tables.EXIT_COLUMNS)
    for i in range(spans[cut, tables.C_EXITS], spans[cut, tables.C_EXITS_STOP]):
        if exits[i, 1] == tables.AT_QUOTE:
            tag = ending_tag(_along(shortcuts, i, lex, tries, dfa, ranges), tries, dfa, ranges)
            if tag >= 0 and place_behind(local, tag, locals_, tags) < tables.NOWHERE:
                return locals_[local, tables.TAGS] + tag
    return -1


@kernel
def take_cut(  # type: ignore[no-untyped-def]  # numba
    shortcuts, cut, room, local, cell, opened, num_closed, entry,
    words, touched, items, num_items, max_items, first, ids, edge_first,
):  # fmt: skip
    """Set the bits of a shortcut and add an item for each way out of it; returns the number of items, -1 without space.

    `room` is how many characters may come: as many as the text of any token has, at least.
    """
    spans = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)
    exits = int32_table(shortcuts[tables.CUT_EXITS], tables.EXIT_COLUMNS)
    _take_bits(shortcuts, cut, words, touched)
    for i in range(spans[cut, tables.C_EXITS], spans[cut, tables.C_EXITS_STOP]):
        node, kind = exits[i, 0], exits[i, 1]
        if kind != tables.INSIDE:
            for j in range(first[node], first[node + 1]):
                words[ids[j] >> 5] |= np.int32(1) << np.int32(ids[j] & 31)
                touched[ids[j] >> (5 + BLOCK_SHIFT)] |= ADDED
        if edge_first[node] < edge_first[node + 1]:
            if num_items >= max_items:
                return -1
            if kind == tables.AT_BACKSLASH:
                esc = strings.AFTER_BACKSLASH << strings.MODE_SHIFT
                left = room if room >= strings.UNBOUNDED else room - _num_characters(shortcuts, i)
                store(items, num_items, strings.FREE, esc, 0, left, local, cell, opened, num_closed)
            else:
                store(items, num_items, entry, 0, 0, 0, local, cell, opened, num_closed)
            items[num_items, NODE] = node
            num_items += 1
    return num_items


@kernel
def take_key_cut(  # type: ignore[no-untyped-def]  # numba
    shortcuts, cut, lex, local, cell, opened, num_closed, is_own, locals_, tags, tries, dfa, ranges,
    words, touched, items, num_items, max_items, keys, num_keys, max_keys, first, ids, edge_first,
):  # fmt: skip
    """`_take_cut` for a key that may be any, whose places behind are all made; notes where free keys end.

    Returns the numbers of items and of noted keys; the former is -1 without room for either.
    """
    spans = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)
    exits = int32_table(shortcuts[tables.CUT_EXITS], tables.EXIT_COLUMNS)
    _take_bits(shortcuts, cut, words, touched)
    for i in range(spans[cut, tables.C_EXITS], spans[cut, tables.C_EXITS_STOP]):
        node, closed = exits[i, 0], num_closed
        after, place = _along(shortcuts, i, lex, tries, dfa, ranges), local
        esc, room = strings.AFTER_BACKSLASH << strings.MODE_SHIFT, strings.UNBOUNDED
        if exits[i, 1] == tables.AT_QUOTE:
            tag = ending_tag(after, tries, dfa, ranges)
            place = place_behind(local, tag, locals_, tags) if tag >= 0 else tables.NOWHERE
            if place == tables.NOWHERE:
                continue
            after, esc, room = locals_[place, tables.ENTRY], 0, 0
            if tag == FREE_TAG:
                if is_own or num_closed > 0:  # else the key is the first of a frame that this walk opened
                    if num_keys >= max_keys:
                        return -1, num_keys
                    keys[num_keys, 0], keys[num_keys, 1], keys[num_keys, 2], keys[num_keys, 3] = node, opened, num_closed, cell
                    num_keys += 1
                closed += 1
        for j in range(first[node], first[node + 1]):
            words[ids[j] >> 5] |= np.int32(1) << np.int32(ids[j] & 31)
            touched[ids[j] >> (5 + BLOCK_SHIFT)] |= ADDED
        if edge_first[node] < edge_first[node + 1]:
            if num_items >= max_items:
                return -1, num_keys
            store(items, num_items, after, esc, 0, room, place, cell, opened, closed)
            items[num_items, NODE] = node
            num_items += 1
    return num_items, num_keys
