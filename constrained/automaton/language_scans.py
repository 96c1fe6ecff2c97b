"""Scans of the vocabulary from a place in a string of a language, between two characters.

What lies outside the string is not looked at: a scan finds the tokens that stay inside and those that end at its quote.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings
from constrained.automaton.strings import ALIVE, INDEX, step_string
from constrained.automaton.tables import T_EDGE_BYTE, T_EDGE_FIRST, T_EDGE_NODE, T_END, T_FIRST, T_IDS
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel, uint8_array, unowned
from constrained.tokens.rows import hashed

HEIGHT = strings.LOOP_WORDS  # the column of `bytes_below` behind its sets
# Columns of the table of nodes (`ScannedTokens.nodes`), which lie in the order of the edges that lead to them: the byte; the
# node's own edges; the strings that begin there, of which the first end there; how deep it is, and what is below it.
N_BYTE, N_EDGES, N_EDGES_STOP, N_FIRST, N_OWN, N_STOP, N_DEPTH, N_HEIGHT, N_BELOW = range(9)
NODE_COLUMNS = N_BELOW + strings.LOOP_WORDS
# Slots of what scans read and write: the nodes and the strings' names; the trie of tokens with a quote or a
# backslash; the rows of a free string, and of tokens that end with the quote; the memory of a walk; what is known
# before it; the rows that are made, and how many words they have.
S_NODES, S_IDS, S_ENDS, S_FREE_INSIDE, S_FREE_CLOSING, S_BARE, S_STACK = range(7)
S_ITEMS, S_PENDING, S_MAX_ITEMS, S_KNOWN, S_INSIDE, S_CLOSING, S_NUM_WORDS, S_SECRET, S_NO_TRIES, NUM_SCAN_SLOTS = range(7, 17)
ITEM_COLUMNS = 4


@kernel
def try_tokens(start, lex, room, tokens, flat, starts, tries, dfa, ranges, fits):  # type: ignore[no-untyped-def]  # numba
    """Which of `tokens` int32 [n] stay inside a string from a place with so much room: `fits` bool [n], from index `start` on.

    Token t is `flat[starts[t] : starts[t + 1]]`. Returns n and -1, or the index of a token and the row that it misses.
    """
    tokens, flat, starts, fits = unowned(tokens), unowned(flat), unowned(starts), unowned(fits)
    tries, dfa, ranges = unowned(tries), unowned(dfa), unowned(ranges)
    for i in range(start, len(tokens)):
        here, esc, left, result = lex, 0, room, ALIVE
        for at in range(starts[tokens[i]], starts[tokens[i] + 1]):
            result, here, esc, _, left, _ = step_string(flat[at], here, esc, 0, left, tries, dfa, ranges)
            if result != ALIVE:
                break
        if result == strings.NEW_CONTENT:
            return i, here & INDEX
        fits[i] = result == ALIVE
    return len(tokens), -1


@kernel
def scan_language(arena, num_items, dfa):  # type: ignore[no-untyped-def]  # numba
    """Take the tokens of text that stay inside a string of a language: those below each item (edges, their end, lex, known).

    `S_KNOWN` int32 [2 * LOOP_WORDS + 2] says what `S_INSIDE` holds already: all tokens of certain characters, of at most so
    many bytes; which characters are no matter, since they lead nowhere from any place behind such characters; and whether
    tokens of more such characters lead nowhere either. An item is `known` where only such characters lead to it. Where the
    language has become "anything", tokens are as for a free string. Items that meet an empty row are left in `S_PENDING`;
    returns how many, or -1 if they are too many.
    """
    slots, dfa = int64_array(arena), unowned(dfa)
    nodes, ids = int32_table(slots[S_NODES], NODE_COLUMNS), int32_array(slots[S_IDS])
    items, pending = int32_table(slots[S_ITEMS], ITEM_COLUMNS), int32_table(slots[S_PENDING], ITEM_COLUMNS)
    stack, known = int32_table(slots[S_STACK], ITEM_COLUMNS), int32_array(slots[S_KNOWN])
    inside, free_inside = int32_array(slots[S_INSIDE]), int32_array(slots[S_FREE_INSIDE])
    max_len, is_tight, num_pending = known[2 * strings.LOOP_WORDS], known[2 * strings.LOOP_WORDS + 1], 0
    while num_items > 0:
        num_items -= 1
        level = 0
        for column in range(ITEM_COLUMNS):
            stack[0, column] = items[num_items, column]
        while level >= 0:
            edge = stack[level, 0]
            if edge == stack[level, 1]:
                level -= 1
                continue
            stack[level, 0] = edge + 1
            code, on = nodes[edge, N_BYTE], stack[level, 3]
            after = dfa[stack[level, 2] & INDEX, strings.BYTE_0 + code]
            if after < 0 or code < 0x20 or code == strings.QUOTE or code == strings.BACKSLASH:
                continue
            if after == strings.FREE:
                for i in range(nodes[edge, N_FIRST], nodes[edge, N_STOP]):
                    inside[ids[i] >> 5] |= free_inside[ids[i] >> 5] & np.int32(1 << (ids[i] & 31))
                continue
            if on != 0 and (code < 0x80 or code >= 0xC0):
                bit = code if code < 0x80 else 128 + code - 0xC0
                on = (known[bit >> 5] >> (bit & 31)) & 1
            if on != 0:
                rest = max_len - nodes[edge, N_DEPTH]
                if rest < 0:
                    on = 0
                elif is_tight != 0 or nodes[edge, N_HEIGHT] <= rest:
                    left = 0
                    for part in range(strings.LOOP_WORDS):
                        left |= nodes[edge, N_BELOW + part] & ~known[strings.LOOP_WORDS + part]
                    if left == 0:
                        continue
            index = after & INDEX
            if on == 0:
                stop = nodes[edge, N_OWN]
                if nodes[edge, N_HEIGHT] <= dfa[index, strings.RUN]:
                    left = 0
                    for part in range(strings.LOOP_WORDS):
                        left |= nodes[edge, N_BELOW + part] & ~dfa[index, strings.LOOP_0 + part]
                    # Where whatever is below leads on, nothing below need be looked at.
                    if left == 0:
                        stop = nodes[edge, N_STOP]
                for i in range(nodes[edge, N_FIRST], stop):
                    inside[ids[i] >> 5] |= np.int32(1 << (ids[i] & 31))
                if stop == nodes[edge, N_STOP]:
                    continue
            if nodes[edge, N_EDGES] == nodes[edge, N_EDGES_STOP]:
                continue
            if dfa[index, strings.ENDS] == strings.UNKNOWN:
                if num_pending == slots[S_MAX_ITEMS]:
                    return -1
                pending[num_pending, 0], pending[num_pending, 1] = nodes[edge, N_EDGES], nodes[edge, N_EDGES_STOP]
                pending[num_pending, 2], pending[num_pending, 3] = after, on
                num_pending += 1
                continue
            level += 1
            stack[level, 0], stack[level, 1] = nodes[edge, N_EDGES], nodes[edge, N_EDGES_STOP]
            stack[level, 2], stack[level, 3] = after, on
    return num_pending


@kernel
def scan_ends(arena, num_items, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """The same for tokens with a quote or a backslash, below each item (edges, their end, lex, escape), without what is known.

    Tokens that end the string at its quote go into `S_CLOSING`.
    """
    slots, dfa, ranges = int64_array(arena), unowned(dfa), unowned(ranges)
    trie = int64_array(slots[S_ENDS])
    edge_first, edge_byte = int32_array(trie[T_EDGE_FIRST]), uint8_array(trie[T_EDGE_BYTE])
    edge_node, end = int32_array(trie[T_EDGE_NODE]), int32_array(trie[T_END])
    first, ids = int32_array(trie[T_FIRST]), int32_array(trie[T_IDS])
    tries = int32_table(slots[S_NO_TRIES], strings.TRIE_COLUMNS)
    items, pending = int32_table(slots[S_ITEMS], ITEM_COLUMNS), int32_table(slots[S_PENDING], ITEM_COLUMNS)
    stack, inside, closing = (
        int32_table(slots[S_STACK], ITEM_COLUMNS),
        int32_array(slots[S_INSIDE]),
        int32_array(slots[S_CLOSING]),
    )
    free_inside, free_closing = int32_array(slots[S_FREE_INSIDE]), int32_array(slots[S_FREE_CLOSING])
    num_pending = 0
    while num_items > 0:
        num_items -= 1
        level = 0
        for column in range(ITEM_COLUMNS):
            stack[0, column] = items[num_items, column]
        while level >= 0:
            edge = stack[level, 0]
            if edge == stack[level, 1]:
                level -= 1
                continue
            stack[level, 0] = edge + 1
            code, lex, esc = edge_byte[edge], stack[level, 2], stack[level, 3]
            child, between = edge_node[edge], esc == 0 and lex >= strings.DFA
            if between and code == strings.QUOTE and dfa[lex & INDEX, strings.BEGINS] != 0:
                if dfa[lex & INDEX, strings.ENDS] == 1:
                    for i in range(first[child], first[end[child]]):
                        closing[ids[i] >> 5] |= np.int32(1 << (ids[i] & 31))
                continue
            if between and code != strings.BACKSLASH:
                lex = dfa[lex & INDEX, strings.BYTE_0 + code] if code >= 0x20 else -1
                alive = lex >= 0
            else:
                result, lex, esc, _, _, _ = step_string(code, lex, esc, 0, strings.UNBOUNDED, tries, dfa, ranges)
                alive = result == ALIVE
            if not alive:
                continue
            if esc == 0 and lex == strings.FREE:
                for i in range(first[child], first[end[child]]):
                    word, bit = ids[i] >> 5, np.int32(1 << (ids[i] & 31))
                    inside[word] |= free_inside[word] & bit
                    closing[word] |= free_closing[word] & bit
                continue
            for i in range(first[child], first[child + 1]):
                inside[ids[i] >> 5] |= np.int32(1 << (ids[i] & 31))
            if edge_first[child] == edge_first[child + 1]:
                continue
            if lex >= strings.DFA and dfa[lex & INDEX, strings.ENDS] == strings.UNKNOWN:
                if num_pending == slots[S_MAX_ITEMS]:
                    return -1
                pending[num_pending, 0], pending[num_pending, 1] = edge_first[child], edge_first[child + 1]
                pending[num_pending, 2], pending[num_pending, 3] = lex, esc
                num_pending += 1
                continue
            level += 1
            stack[level, 0], stack[level, 1] = edge_first[child], edge_first[child + 1]
            stack[level, 2], stack[level, 3] = lex, esc
    return num_pending


@kernel
def end_scan(arena):  # type: ignore[no-untyped-def]  # numba
    """Let `S_INSIDE` have the tokens of `S_CLOSING` that end with the quote; the digests of both (`rows.digest_of`)."""
    slots = int64_array(arena)
    inside, closing, bare = int32_array(slots[S_INSIDE]), int32_array(slots[S_CLOSING]), int32_array(slots[S_BARE])
    secret, first, second, third, fourth = slots[S_SECRET], np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for at in range(slots[S_NUM_WORDS]):
        inside[at] |= closing[at] & bare[at]
        one, two = hashed(at, inside[at], secret)
        three, four = hashed(at, closing[at], secret)
        first += one
        second += two
        third += three
        fourth += four
    return np.int64(first), np.int64(second), np.int64(third), np.int64(fourth)


@kernel
def bytes_below(byte, end, depth, max_depth):  # type: ignore[no-untyped-def]  # numba
    """What occurs below each node of a trie, read from between characters: int32 [n, LOOP_WORDS + 1].

    The set of characters (`strings.LOOP_WORDS`), where bit 0 stands for what is no valid UTF-8, and how many bytes.
    """
    found = np.zeros((len(byte), strings.LOOP_WORDS + 1), np.int32)
    states = np.zeros(max_depth + 1, np.int32)
    broken = np.zeros(len(byte), np.bool_)
    for node in range(1, len(byte)):
        before = states[depth[node] - 1]
        if before == 0 and byte[node] < 0x80:
            states[depth[node]] = 0
        else:
            after = strings.UTF8[before, byte[node]] if before != strings.REJECT else strings.REJECT
            states[depth[node]] = after
            broken[node] = after == strings.REJECT
    for node in range(len(byte) - 1, -1, -1):
        child = node + 1
        while child < end[node]:
            code = byte[child]
            bit = 0 if broken[child] else code if code < 0x80 else 128 + code - 0xC0 if code >= 0xC0 else -1
            if bit >= 0:
                found[node, bit >> 5] |= np.int32(1) << np.int32(bit & 31)
            for part in range(strings.LOOP_WORDS):
                found[node, part] |= found[child, part]
            found[node, HEIGHT] = max(found[node, HEIGHT], found[child, HEIGHT] + 1)
            child = end[child]
    return found
