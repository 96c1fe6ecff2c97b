"""The walk of a trie of tokens that finds which of its strings lead on from a thread, and what it takes: the kernels.

Whatever is not in the tables yet is left for Python among the pending items; the walk is then called again.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.branches import branches
from constrained.automaton.cut_kernels import cut_at, longest_text, missing_behind, take_cut, take_key_cut
from constrained.automaton.stepping import DEAD, EDGE, KEY_EXIT, NEW_KEY, follow, step, tables_of
from constrained.automaton.strings import ALIVE, EXIT, INDEX
from constrained.automaton.tables import ADDED, BLOCK_SHIFT
from constrained.automaton.walk_items import (
    ASKED,
    CELLS_FULL,
    FINISHED,
    I_CELL,
    I_ESC,
    I_KEYS,
    I_LEX,
    I_LOCAL,
    I_NEED,
    I_OPENED,
    I_ROOM,
    IS_TEXT,
    ITEM_COLUMNS,
    ITEMS_FULL,
    KEYS_FULL,
    LARGE,
    LIST,
    MAX_WANTED,
    NEXT,
    NODE,
    NOT_LISTED,
    NUM_COPIED,
    PENDING_FULL,
    STOP,
    WHICH,
    WHY,
    store,
    trie_of,
)
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel, uint8_array


@kernel
def walk(  # type: ignore[no-untyped-def]  # numba
    machine,
    scratch,
    trie,
    cuts,
    waiting,
    num_items,
    num_cells,
    own_cells,
    own,
    node,
    lex,
    esc,
    need,
    room,
    local,
    cell,
    num_closed,
    num_keys,
):
    """Allow in the scratch's words every string of a trie that a work item leads through.

    The items are the scratch's first `num_items`, or so many pending ones as are no longer `waiting`; and the thread
    (lex, ..., cell) at `node` unless that is negative, which has closed `num_closed` free keys. Items that wait for Python are
    left among the pending ones. Behind the first `num_keys`, where a free key ended that began at depth `begun` in the frame
    `cell`, (node, begun, earlier keys, cell) is noted; (node, -1, `ASKED`, cell) where an ASK edge was taken. Cells from
    `own_cells` on are this walk's. `cuts` are shortcuts (`automaton.cuts`), or 0; which would be welcome is noted as the
    scratch's WANTED.
    Returns (status, num_pending, num_keys, num_cells, how many of the frames from `own` down it left).
    """
    slots, here = int64_array(machine), int64_array(scratch)
    plain, local_rows, locals_, edges, tags, tries, dfa, ranges, cells = tables_of(slots)
    below, depth, first, ids, edge_first, edge_byte, edge_node = trie_of(trie)
    shortcuts, wanted, num_wanted = int64_array(cuts), int32_table(here[tables.WANTED], 2), 0
    stack, listed = int32_table(here[tables.STACK], ITEM_COLUMNS), int32_array(here[tables.BRANCHES])
    items, pending = int32_table(here[tables.ITEMS], ITEM_COLUMNS), int32_table(here[tables.PENDING], ITEM_COLUMNS)
    keys, words = int32_table(here[tables.KEYS], 4), int32_array(here[tables.WORDS])
    touched = uint8_array(here[tables.TOUCHED])
    max_items, max_pending, max_keys = here[tables.NUM_ITEMS], here[tables.NUM_PENDING], here[tables.NUM_KEYS]
    max_cells = slots[tables.NUM_CELLS] - 8
    for i in range(waiting):
        for column in range(NUM_COPIED):
            items[i, column] = pending[i, column]
        num_items = waiting
    if node >= 0:
        store(items, num_items, lex, esc, need, room, local, cell, -1, num_closed)
        items[num_items, NODE] = node
        num_items += 1
    num_pending, left = 0, 0
    while num_items > 0:
        num_items -= 1
        for column in range(NUM_COPIED):
            stack[0, column] = items[num_items, column]
        stack[0, NEXT] = -1
        level, top = 0, 0
        above = depth[stack[0, NODE]]
        while level >= 0:
            if stack[level, NEXT] < 0:  # a node that was just come to
                node = stack[level, NODE]
                if cuts != 0 and below[node] - node > LARGE and stack[level, I_ESC] == 0 and stack[level, I_NEED] == 0:
                    lex, room, local = stack[level, I_LEX], stack[level, I_ROOM], stack[level, I_LOCAL]
                    cut = -1
                    is_key = lex >= strings.FREE and locals_[local, tables.TAGS] >= 0
                    if lex == strings.FREE or (is_key and lex < strings.DFA and tries[lex & INDEX, strings.FALLBACK]):
                        cut = cut_at(shortcuts, node, strings.FREE)
                        if cut >= 0 and room < longest_text(shortcuts, cut):
                            cut = -1
                    elif lex < strings.FREE and (plain[lex, 0] == tables.NO or plain[lex, 0] == tables.VALUE):
                        cut = cut_at(shortcuts, node, lex)
                        if cut < 0 and num_wanted < MAX_WANTED:
                            num_wanted += 1
                            wanted[0, 0] = num_wanted
                            wanted[num_wanted, 0], wanted[num_wanted, 1] = node, lex
                    if cut >= 0 and is_key:
                        missing = missing_behind(shortcuts, cut, lex, local, locals_, tags, tries, dfa, ranges)
                        if missing >= 0:
                            if num_pending >= max_pending:
                                return PENDING_FULL, num_pending, num_keys, num_cells, left
                            for column in range(NUM_COPIED):
                                pending[num_pending, column] = stack[level, column]
                            pending[num_pending, WHY], pending[num_pending, WHICH] = NEW_KEY, missing
                            num_pending += 1
                        else:
                            num_items, num_keys = take_key_cut(
                                shortcuts, cut, lex, local, stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS],
                                stack[level, I_CELL] < own_cells, locals_, tags, tries, dfa, ranges,
                                words, touched, items, num_items, max_items, keys, num_keys, max_keys, first, ids, edge_first,
                            )  # fmt: skip
                            if num_items < 0:
                                return ITEMS_FULL, num_pending, num_keys, num_cells, left
                        level -= 1
                        continue
                    if cut >= 0:
                        num_items = take_cut(
                            shortcuts, cut, room, local, stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS],
                            locals_[local, tables.ENTRY], words, touched, items, num_items, max_items, first, ids, edge_first,
                        )  # fmt: skip
                        if num_items < 0:
                            return ITEMS_FULL, num_pending, num_keys, num_cells, left
                        level -= 1
                        continue
                kind, begin, end = branches(
                    stack[level, I_LEX], stack[level, I_ESC], stack[level, I_LOCAL], False,
                    edge_first[node], edge_first[node + 1], edge_byte, plain,
                    local_rows, locals_, tags, tries, dfa, listed, top,
                )  # fmt: skip
                if kind != ALIVE and kind != EXIT:
                    if num_pending >= max_pending:
                        return PENDING_FULL, num_pending, num_keys, num_cells, left
                    for column in range(NUM_COPIED):
                        pending[num_pending, column] = stack[level, column]
                    pending[num_pending, WHY], pending[num_pending, WHICH] = kind, begin
                    num_pending += 1
                    level -= 1
                    continue
                stack[level, NEXT], stack[level, STOP] = begin, end
                stack[level, LIST] = NOT_LISTED
                if kind == ALIVE:
                    stack[level, LIST] = top
                    top = end
            branch = stack[level, NEXT]
            if branch == stack[level, STOP]:
                if stack[level, LIST] != NOT_LISTED:
                    top = stack[level, LIST]
                level -= 1
                continue
            stack[level, NEXT] = branch + 1
            edge = branch if stack[level, LIST] == NOT_LISTED else listed[branch]
            code = edge_byte[edge]
            lex, esc, need, room = stack[level, I_LEX], stack[level, I_ESC], stack[level, I_NEED], stack[level, I_ROOM]
            local, which = stack[level, I_LOCAL], -1
            if lex == strings.FREE and esc == 0 and IS_TEXT[code] and room > 0:
                # Plain text inside a free string: most of every vocabulary.
                result = ALIVE
                need, room = max(need - 1, 0), (room if room >= strings.UNBOUNDED else room - 1)
            else:
                result, lex, esc, need, room, local, which = step(
                    code, lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges
                )
            if result == DEAD:
                continue
            child = edge_node[edge]
            cell, opened, num_closed = stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS]
            if result == KEY_EXIT:
                # A key of a frame that this walk opened is the frame's first, unless the walk closed another before.
                if cell < own_cells or num_closed > 0:
                    if num_keys >= max_keys:
                        return KEYS_FULL, num_pending, num_keys, num_cells, left
                    keys[num_keys, 0] = child
                    keys[num_keys, 1] = opened
                    keys[num_keys, 2] = num_closed
                    keys[num_keys, 3] = cell
                    num_keys += 1
                num_closed += 1
            elif result == EDGE:
                before = cell
                if edges[which, tables.KIND] == tables.ASK:
                    if num_keys >= max_keys:
                        return KEYS_FULL, num_pending, num_keys, num_cells, left
                    keys[num_keys, 0], keys[num_keys, 1], keys[num_keys, 2], keys[num_keys, 3] = child, -1, ASKED, cell
                    num_keys += 1
                further, esc, at = which, 0, local
                while True:
                    if num_cells >= max_cells:
                        return CELLS_FULL, num_pending, num_keys, num_cells, left
                    if edges[further, tables.KIND] == tables.POP and before < own_cells:
                        left = max(left, cells[own, tables.DEPTH] - cells[before, tables.DEPTH] + 1)
                    lex, need, room, local, cell, num_cells = follow(further, at, before, edges, cells, num_cells, locals_)
                    further = edges[further, tables.NEXT]
                    if further < 0:
                        break
                    if num_items >= max_items:
                        return ITEMS_FULL, num_pending, num_keys, num_cells, left
                    begun = above + level + 1 if lex >= strings.FREE else opened
                    store(items, num_items, lex, 0, need, room, local, cell, begun, num_closed)
                    items[num_items, NODE] = child
                    num_items += 1
                if lex >= strings.FREE:
                    opened = above + level + 1
            for i in range(first[child], first[child + 1]):
                words[ids[i] >> 5] |= np.int32(1) << np.int32(ids[i] & 31)
                touched[ids[i] >> (5 + BLOCK_SHIFT)] |= ADDED
            if edge_first[child] < edge_first[child + 1]:
                level += 1
                store(stack, level, lex, esc, need, room, local, cell, opened, num_closed)
                stack[level, NODE] = child
    return FINISHED, num_pending, num_keys, num_cells, left
