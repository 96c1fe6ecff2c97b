"""Which edges of a node of a token trie a thread may take: most lead nowhere, and are passed over without a step."""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.stepping import DEAD, EDGE, NEW_CONTENT, NEW_KEY, NEW_LEX, NEW_LOCAL, place_behind
from constrained.automaton.strings import ALIVE, EXIT, INDEX
from constrained.automaton.tables import BYTE_CLASS, CLASS_BYTES, NUM_CLASSES
from constrained.automaton.walk_items import IS_TEXT
from constrained.tokens.jit import kernel

# The byte of each class; class 0 has none.
BYTE_OF_CLASS = np.array([0, *CLASS_BYTES], np.uint8)
# Up to how many edges of a node each is looked at, rather than each class.
FEW = 16


@kernel
def _find(byte, first, stop, edge_byte):  # type: ignore[no-untyped-def]  # numba
    """The edge by a byte among those of a node, which ascend; -1 where there is none."""
    while first < stop:
        middle = (first + stop) >> 1
        if edge_byte[middle] < byte:
            first = middle + 1
        elif edge_byte[middle] > byte:
            stop = middle
        else:
            return middle
    return -1


@kernel
def _takes(klass, lex, gap, may_end, row, plain, local_rows):  # type: ignore[no-untyped-def]  # numba
    """Whether a plain lexeme goes on by a class (ALIVE), or an edge of the local state does (EDGE)."""
    if plain[lex, klass] >= 0 or (gap >= 0 and plain[gap, klass] >= 0):
        return ALIVE
    if may_end == tables.NO:
        return DEAD
    if row == tables.UNRESOLVED:
        return NEW_LOCAL
    return EDGE if local_rows[row, klass] >= 0 else DEAD


@kernel
def _plain_branches(lex, local, first, stop, edge_byte, plain, local_rows, locals_, listed, top):  # type: ignore[no-untyped-def]  # numba
    may_end = plain[lex, 0]
    if may_end == tables.UNRESOLVED:
        return NEW_LEX, lex, 0
    gap = locals_[local, tables.ENTRY] if may_end == tables.VALUE else -1
    count, row = top, locals_[local, tables.ROW]
    if stop - first <= FEW:
        for edge in range(first, stop):
            klass = BYTE_CLASS[edge_byte[edge]]
            taken = _takes(klass, lex, gap, may_end, row, plain, local_rows) if klass > 0 else DEAD
            if taken == NEW_LOCAL:
                return NEW_LOCAL, local, 0
            if taken != DEAD:
                listed[count] = edge
                count += 1
        return ALIVE, top, count
    for klass in range(1, NUM_CLASSES):
        taken = _takes(klass, lex, gap, may_end, row, plain, local_rows)
        if taken != DEAD:
            edge = _find(BYTE_OF_CLASS[klass], first, stop, edge_byte)
            if edge >= 0:
                if taken == NEW_LOCAL:
                    return NEW_LOCAL, local, 0
                listed[count] = edge
                count += 1
    return ALIVE, top, count


@kernel
def _name_branches(node, first, stop, edge_byte, tries, listed, top):  # type: ignore[no-untyped-def]  # numba
    between = tries[node, strings.UTF8_STATE] == 0
    count = top
    if between:
        for byte in (strings.QUOTE, strings.BACKSLASH):
            edge = _find(byte, first, stop, edge_byte)
            if edge >= 0:
                listed[count] = edge
                count += 1
    child = node + 1
    while child < tries[node, strings.END]:
        byte = tries[child, strings.BYTE]
        if not between or byte >= 0x80 or IS_TEXT[byte]:
            edge = _find(byte, first, stop, edge_byte)
            if edge >= 0:
                listed[count] = edge
                count += 1
        child = tries[child, strings.END]
    return ALIVE, top, count


@kernel
def branches(  # type: ignore[no-untyped-def]  # numba
    lex, esc, local, named, first, stop, edge_byte, plain, local_rows, locals_, tags, tries, dfa, listed, top
):
    """Which edges of a token trie's node, `first` to `stop`, a thread may take: most lead nowhere.

    (ALIVE, top, end): those in `listed[top:end]`; (EXIT, first, stop): all have to be tried; else what is missing and which.
    `named`: falling back from names to a free string does not count.
    """
    if lex < strings.FREE:
        return _plain_branches(lex, local, first, stop, edge_byte, plain, local_rows, locals_, listed, top)
    if lex >= strings.DFA:
        if dfa[lex & INDEX, strings.ENDS] == strings.UNKNOWN:
            return NEW_CONTENT, lex & INDEX, 0
    elif lex >= strings.TRIE and esc == 0:
        if not named and tries[lex & INDEX, strings.TAG] >= 0 and locals_[local, tables.TAGS] >= 0:
            tag = tries[lex & INDEX, strings.TAG]
            behind = place_behind(local, tag, locals_, tags)
            if behind < tables.NOWHERE and _find(strings.QUOTE, first, stop, edge_byte) >= 0:
                return NEW_KEY, locals_[local, tables.TAGS] + tag, 0
        if not named and tries[lex & INDEX, strings.FALLBACK]:
            return EXIT, first, stop
        return _name_branches(lex & INDEX, first, stop, edge_byte, tries, listed, top)
    return EXIT, first, stop
