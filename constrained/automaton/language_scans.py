"""Scans of the vocabulary from a place in a string of a language, between two characters.

What lies outside the string is not looked at: a scan finds the tokens that stay inside and those that end at its quote.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings
from constrained.automaton.strings import ALIVE, INDEX, step_string
from constrained.tokens.jit import kernel, unowned

HEIGHT = strings.LOOP_WORDS  # the column of `bytes_below` behind its sets


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
def scan_language(  # type: ignore[no-untyped-def]  # numba
    items, num_items, pending, stack, edge_first, edge_byte, edge_node, end, depth, first, ids, below,
    dfa, free_inside, known, inside,
):  # fmt: skip
    """Take the tokens of text that stay inside a string of a language: those of a trie below each item (node, lex, known).

    `known` int32 [2 * LOOP_WORDS + 2] says what `inside` uint32 [num_words] holds already: all tokens of certain characters,
    of at most so many bytes; which characters are no matter, since they lead nowhere from any place behind such
    characters; and whether tokens of more such characters lead nowhere either. An item is `known` where only such characters
    lead to it. Where the language has become "anything", tokens are as for a free string. Items that meet an empty row are
    left in `pending`; returns how many, or -1 if they are too many.
    """
    items, pending, stack = unowned(items), unowned(pending), unowned(stack)
    edge_first, edge_byte, edge_node, end = unowned(edge_first), unowned(edge_byte), unowned(edge_node), unowned(end)
    depth, first, ids, below, dfa = unowned(depth), unowned(first), unowned(ids), unowned(below), unowned(dfa)
    free_inside, known, inside = unowned(free_inside), unowned(known), unowned(inside)
    max_len, is_tight, num_pending = known[2 * strings.LOOP_WORDS], known[2 * strings.LOOP_WORDS + 1], 0
    while num_items > 0:
        num_items -= 1
        level, node = 0, items[num_items, 0]
        stack[0, 0], stack[0, 1] = edge_first[node], edge_first[node + 1]
        stack[0, 2], stack[0, 3] = items[num_items, 1] & INDEX, items[num_items, 2]
        while level >= 0:
            edge = stack[level, 0]
            if edge == stack[level, 1]:
                level -= 1
                continue
            stack[level, 0] = edge + 1
            code = edge_byte[edge]
            after = dfa[stack[level, 2], strings.BYTE_0 + code]
            if after < 0 or code < 0x20 or code == strings.QUOTE or code == strings.BACKSLASH:
                continue
            child, on = edge_node[edge], stack[level, 3]
            if after == strings.FREE:
                for i in range(first[child], first[end[child]]):
                    inside[ids[i] >> 5] |= free_inside[ids[i] >> 5] & (np.uint32(1) << np.uint32(ids[i] & 31))
                continue
            if on != 0 and (code < 0x80 or code >= 0xC0):
                bit = code if code < 0x80 else 128 + code - 0xC0
                on = (known[bit >> 5] >> (bit & 31)) & 1
            if on != 0:
                rest = max_len - depth[child]
                if rest < 0:
                    on = 0
                elif is_tight != 0 or below[child, HEIGHT] <= rest:
                    left = 0
                    for part in range(strings.LOOP_WORDS):
                        left |= below[child, part] & ~known[strings.LOOP_WORDS + part]
                    if left == 0:
                        continue
            index = after & INDEX
            if on == 0:
                stop = first[child + 1]
                if below[child, HEIGHT] <= dfa[index, strings.RUN]:
                    left = 0
                    for part in range(strings.LOOP_WORDS):
                        left |= below[child, part] & ~dfa[index, strings.LOOP_0 + part]
                    # Where whatever is below leads on, nothing below need be looked at.
                    if left == 0:
                        stop = first[end[child]]
                for i in range(first[child], stop):
                    inside[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
                if stop == first[end[child]]:
                    continue
            if edge_first[child] == edge_first[child + 1]:
                continue
            if dfa[index, strings.ENDS] == strings.UNKNOWN:
                if num_pending == len(pending):
                    return -1
                pending[num_pending, 0], pending[num_pending, 1], pending[num_pending, 2] = child, after, on
                num_pending += 1
                continue
            level += 1
            stack[level, 0], stack[level, 1] = edge_first[child], edge_first[child + 1]
            stack[level, 2], stack[level, 3] = index, on
    return num_pending


@kernel
def scan_ends(  # type: ignore[no-untyped-def]  # numba
    items, num_items, pending, stack, edge_first, edge_byte, edge_node, end, first, ids,
    tries, dfa, ranges, free_inside, free_closing, inside, closing,
):  # fmt: skip
    """The same for tokens with a quote or a backslash, below each item (node, lex, escape), without what is known before.

    Tokens that end the string at its quote go into `closing` uint32 [num_words].
    """
    items, pending, stack = unowned(items), unowned(pending), unowned(stack)
    edge_first, edge_byte, edge_node, end = unowned(edge_first), unowned(edge_byte), unowned(edge_node), unowned(end)
    first, ids, tries, dfa, ranges = unowned(first), unowned(ids), unowned(tries), unowned(dfa), unowned(ranges)
    free_inside, free_closing = unowned(free_inside), unowned(free_closing)
    inside, closing = unowned(inside), unowned(closing)
    num_pending = 0
    while num_items > 0:
        num_items -= 1
        level, node = 0, items[num_items, 0]
        stack[0, 0], stack[0, 1] = edge_first[node], edge_first[node + 1]
        stack[0, 2], stack[0, 3] = items[num_items, 1], items[num_items, 2]
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
                        closing[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
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
                    word, bit = ids[i] >> 5, np.uint32(1) << np.uint32(ids[i] & 31)
                    inside[word] |= free_inside[word] & bit
                    closing[word] |= free_closing[word] & bit
                continue
            for i in range(first[child], first[child + 1]):
                inside[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
            if edge_first[child] == edge_first[child + 1]:
                continue
            if lex >= strings.DFA and dfa[lex & INDEX, strings.ENDS] == strings.UNKNOWN:
                if num_pending == len(pending):
                    return -1
                pending[num_pending, 0], pending[num_pending, 1], pending[num_pending, 2] = child, lex, esc
                num_pending += 1
                continue
            level += 1
            stack[level, 0], stack[level, 1], stack[level, 2], stack[level, 3] = (
                edge_first[child], edge_first[child + 1], lex, esc,
            )  # fmt: skip
    return num_pending


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
