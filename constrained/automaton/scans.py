"""Scans of the whole vocabulary from one place in a string: computed once, shared by every grammar that comes to the place.

What lies outside the string is not looked at: a scan finds the tokens that stay inside and those that end at its quote.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings, tables
from constrained.automaton.strings import ALIVE, EXIT, FREE_TAG, step_string
from constrained.automaton.tables import BYTE_CLASS
from constrained.automaton.walk_items import IS_TEXT
from constrained.tokens.jit import kernel, unowned
from constrained.tokens.trie import Trie


@kernel
def scan_value(items, num_items, pending, exits, num_exits, plain, edge_first, edge_byte, edge_node, first, ids, inside):  # type: ignore[no-untyped-def]  # numba
    """Go through the trie along a number or a literal from each item (node, lex): `inside` uint32 [num_words] takes its tokens.

    `exits` are nodes where it may end and something else follows. Items that meet an empty row are left in `pending`.
    Returns (num_pending, num_exits).
    """
    items, pending, exits, plain = unowned(items), unowned(pending), unowned(exits), unowned(plain)
    edge_first, edge_byte, edge_node = unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    first, ids, inside = unowned(first), unowned(ids), unowned(inside)
    num_pending = 0
    while num_items > 0:
        num_items -= 1
        node, lex = items[num_items, 0], items[num_items, 1]
        may_end = plain[lex, 0]
        if may_end == tables.UNRESOLVED:
            pending[num_pending, 0], pending[num_pending, 1] = node, lex
            num_pending += 1
            continue
        leaves = False
        for edge in range(edge_first[node], edge_first[node + 1]):
            klass = BYTE_CLASS[edge_byte[edge]]
            if klass == 0:
                continue
            if plain[lex, klass] < 0:
                leaves = True
                continue
            child = edge_node[edge]
            for i in range(first[child], first[child + 1]):
                inside[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
            # Where no token goes on, the place is not asked what leads on: it may not be filled in yet, nor have to be.
            if edge_first[child] < edge_first[child + 1]:
                items[num_items, 0], items[num_items, 1] = child, plain[lex, klass]
                num_items += 1
        if leaves and node > 0 and may_end != tables.NO:
            exits[num_exits] = node
            num_exits += 1
    return num_pending, num_exits


@kernel
def scan_text(node, byte, end, depth, max_depth, first, ids, inside, exits):  # type: ignore[no-untyped-def]  # numba
    """Go through the trie along plain text from below `node`, where a free string begins: `inside` uint32 takes its tokens.

    `exits` int32 [n, 2] are the nodes behind a closing quote or a backslash (AT_QUOTE, AT_BACKSLASH). Returns their number, and
    how many characters the longest text has.
    """
    states = np.zeros(max_depth + 1, np.uint8)
    lengths = np.zeros(max_depth + 1, np.int32)
    count, longest, child, stop = 0, 0, node + 1, end[node]
    while child < stop:
        before, code = states[depth[child] - 1], byte[child]
        if before == 0 and (code == strings.QUOTE or code == strings.BACKSLASH):
            exits[count, 0], exits[count, 1] = child, tables.AT_QUOTE if code == strings.QUOTE else tables.AT_BACKSLASH
            count += 1
        after = strings.UTF8[before, code]
        if after == strings.REJECT:
            child = end[child]
            continue
        states[depth[child]] = after
        lengths[depth[child]] = lengths[depth[child] - 1] + (1 if before == 0 else 0)
        longest = max(longest, lengths[depth[child]])
        for i in range(first[child], first[child + 1]):
            inside[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
        child += 1
    return count, longest


@kernel
def spelled(lex, max_depth, edge_first, edge_byte, edge_node, tries, dfa, ranges, found):  # type: ignore[no-untyped-def]  # numba
    """The places in a token trie where a string of the string trie at `lex` ends: (node, tag) rows in `found`, and their count.

    Falling back to a free string does not count. Returns -1 where `found` is too small.
    """
    edge_first, edge_byte, edge_node = unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    tries, dfa, ranges = unowned(tries), unowned(dfa), unowned(ranges)
    lexes = np.empty(max_depth + 2, np.int32)
    escs = np.empty(max_depth + 2, np.int32)
    ahead = np.empty((max_depth + 2, 2), np.int32)
    lexes[0], escs[0] = lex, 0
    ahead[0, 0], ahead[0, 1] = edge_first[0], edge_first[1]
    level, count = 0, 0
    while level >= 0:
        edge = ahead[level, 0]
        if edge == ahead[level, 1]:
            level -= 1
            continue
        ahead[level, 0] = edge + 1
        result, after, esc, _, _, tag = step_string(
            edge_byte[edge], lexes[level], escs[level], 0, strings.UNBOUNDED, tries, dfa, ranges
        )
        child = edge_node[edge]
        if edge_byte[edge] == strings.QUOTE and escs[level] == 0 and tag != FREE_TAG and tag != strings.NO_TAG:
            if count >= len(found):
                return -1
            found[count, 0] = child
            found[count, 1] = tag
            count += 1
        elif result == ALIVE and after >= strings.TRIE:
            level += 1
            lexes[level], escs[level] = after, esc
            ahead[level, 0], ahead[level, 1] = edge_first[child], edge_first[child + 1]
    return count


@kernel
def scan_string(lex, esc, byte, end, depth, max_depth, tries, dfa, ranges, inside, exits):  # type: ignore[no-untyped-def]  # numba
    """Walk the whole trie from a place in a free string.

    `inside[node]` becomes the characters that a token ending there needs (a begun one counts), -1 where it does not stay
    inside; `exits[node]` the characters before the quote that ends there, -1 where none does.
    """
    byte, end, depth = unowned(byte), unowned(end), unowned(depth)
    tries, dfa, ranges = unowned(tries), unowned(dfa), unowned(ranges)
    size = max_depth + 2
    lexes = np.empty(size, np.int32)
    escs = np.empty(size, np.int32)
    counts = np.empty(size, np.int32)
    inside[:] = -1
    exits[:] = -1
    lexes[0], escs[0], counts[0] = lex, esc, 0
    child = 1
    while child < len(byte):
        at = depth[child]
        code = byte[child]
        if lexes[at - 1] == strings.FREE and escs[at - 1] == 0 and IS_TEXT[code]:
            result, after, esc2, room = ALIVE, strings.FREE, 0, strings.UNBOUNDED - 2
        else:
            result, after, esc2, _, room, _ = step_string(
                code, lexes[at - 1], escs[at - 1], 0, strings.UNBOUNDED - 1, tries, dfa, ranges
            )
        if result == EXIT:
            exits[child] = counts[at - 1]
        if result != ALIVE:
            child = end[child]
            continue
        done = counts[at - 1] + (strings.UNBOUNDED - 1 - room)
        lexes[at], escs[at], counts[at] = after, esc2, done
        inside[child] = done + (1 if esc2 != 0 or after != strings.FREE else 0)
        child += 1


def before_quotes(trie: Trie) -> NDArray[np.uint8]:
    """Which nodes of a trie a quote follows, at once or later."""
    found = np.zeros(len(trie.byte), np.uint8)
    _before_quotes(trie.edge_first, trie.edge_byte, trie.edge_node, found)
    return found


@kernel
def _before_quotes(edge_first, edge_byte, edge_node, found):  # type: ignore[no-untyped-def]  # numba
    for node in range(len(found) - 1, -1, -1):  # children come after their parents
        for edge in range(edge_first[node], edge_first[node + 1]):
            if edge_byte[edge] == strings.QUOTE or found[edge_node[edge]]:
                found[node] = 1
