"""The hot loops: one byte of one thread, a run of bytes, and the walk of a trie that fills a mask row.

A thread is (lex, esc, need, room, local, cell): the position in the current lexeme, what to do after it inside the
current frame, and the stack below. Whatever is not in the tables yet is handed back to Python, which fills it in and
calls again; nothing here creates anything but scratch stack cells.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.strings import ALIVE, EXIT, FREE_TAG, INDEX, PLAIN, step_string
from constrained.automaton.tables import BYTE_CLASS
from constrained.tokens.jit import kernel, unowned

# Results of `step` beside DEAD and ALIVE.
DEAD = strings.DEAD
EDGE, KEY_EXIT, NEW_LEX, NEW_LOCAL, NEW_CONTENT = 3, 4, 5, 6, strings.NEW_CONTENT

# Columns of a work item: where in the trie, how to go on, the thread, where its key began, how many free keys it closed.
NODE, MODE, I_LEX, I_ESC, I_NEED, I_ROOM, I_LOCAL, I_CELL, I_OPENED, I_KEYS = range(10)
ITEM_COLUMNS = 10
BELOW, AT = 0, 1  # the thread stands after the node's byte; the thread stands before it
ONE_STEP = -2  # stands for the edge of an AT item
ASKED = -1  # stands for `earlier` where not a key but an item ended on whose value it depends what may follow

# ASCII that stands for itself inside a string.
IS_TEXT = np.zeros(256, np.bool_)
IS_TEXT[0x20:0x80] = True
IS_TEXT[[strings.QUOTE, strings.BACKSLASH]] = False

# What `walk` returns beside a count: what ran out.
FINISHED, ITEMS_FULL, PENDING_FULL, CELLS_FULL, KEYS_FULL = range(5)


@kernel
def step(byte, lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """One byte: (result, lex, esc, need, room, local, which); `which` is an edge, or the place that is not filled in."""
    if lex >= strings.FREE:
        result, lex, esc, need, room, tag = step_string(byte, lex, esc, need, room, tries, dfa, ranges)
        if result != EXIT:
            return result, lex, esc, need, room, local, lex & INDEX
        base = locals_[local, tables.TAGS]
        if base < 0:
            return ALIVE, locals_[local, tables.ENTRY], 0, 0, 0, local, -1
        local = tags[base + tag, 0]
        if local < 0:
            return DEAD, lex, 0, 0, 0, local, -1
        is_free = tag == FREE_TAG or lex >= strings.DFA
        return (KEY_EXIT if is_free else ALIVE), locals_[local, tables.ENTRY], 0, 0, 0, local, -1
    klass = BYTE_CLASS[byte]
    index = lex & INDEX
    may_end = plain[index, 0]
    if may_end == tables.UNRESOLVED:
        return NEW_LEX, lex, 0, 0, 0, local, index
    if klass == 0:
        return DEAD, lex, 0, 0, 0, local, -1
    after = plain[index, klass]
    if after >= 0:
        return ALIVE, PLAIN | after, 0, 0, 0, local, -1
    if may_end == tables.VALUE:
        gap = plain[locals_[local, tables.ENTRY], klass]
        if gap >= 0:
            return ALIVE, PLAIN | gap, 0, 0, 0, local, -1
    if may_end == tables.NO:
        return DEAD, lex, 0, 0, 0, local, -1
    if local_rows[local, 0] == tables.UNRESOLVED:
        return NEW_LOCAL, lex, 0, 0, 0, local, local
    edge = local_rows[local, klass]
    return (EDGE if edge >= 0 else DEAD), lex, 0, 0, 0, local, edge


@kernel
def follow(edge, cell, edges, cells, num_cells, locals_):  # type: ignore[no-untyped-def]  # numba
    """One edge of a local state: (lex, need, room, local, cell, num_cells)."""
    kind = edges[edge, tables.KIND]
    if kind == tables.POP:
        local = cells[cell, tables.RETURN_LOCAL]
        return locals_[local, tables.ENTRY], 0, 0, local, cells[cell, tables.PARENT], num_cells
    if kind == tables.PUSH:
        cells[num_cells, tables.PARENT] = cell
        cells[num_cells, tables.RETURN_LOCAL] = edges[edge, tables.RETURN]
        cell = num_cells
        num_cells += 1
    return (
        edges[edge, tables.LEX],
        edges[edge, tables.NEED],
        edges[edge, tables.ROOM],
        edges[edge, tables.LOCAL],
        cell,
        num_cells,
    )


@kernel
def run(data, start, thread, num_cells, plain, local_rows, locals_, edges, tags, tries, dfa, ranges, cells):  # type: ignore[no-untyped-def]  # numba
    """Step `thread` (int64 [6], in place) through `data[start:]` as far as it goes by itself.

    Returns (result, position, which, num_cells): ALIVE at the end of the data; else the byte at `position` was not
    taken (KEY_EXIT: it was), and the thread stands before it.
    """
    data, plain, local_rows = unowned(data), unowned(plain), unowned(local_rows)
    locals_, edges = unowned(locals_), unowned(edges)
    tags, tries, dfa, ranges, cells = unowned(tags), unowned(tries), unowned(dfa), unowned(ranges), unowned(cells)
    lex, esc, need, room, local, cell = thread[0], thread[1], thread[2], thread[3], thread[4], thread[5]
    limit = len(cells) - 1
    result, position, which = ALIVE, start, -1
    while position < len(data):
        result, lex2, esc2, need2, room2, local2, which = step(
            data[position], lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges
        )
        if result == EDGE:
            if edges[which, tables.NEXT] >= 0 or edges[which, tables.KIND] == tables.ASK or num_cells >= limit:
                break
            lex, need, room, local, cell, num_cells = follow(which, cell, edges, cells, num_cells, locals_)
            result = ALIVE
        elif result == ALIVE or result == KEY_EXIT:
            lex, esc, need, room, local = lex2, esc2, need2, room2, local2
        if result != ALIVE:
            break
        position += 1
    thread[0], thread[1], thread[2], thread[3], thread[4], thread[5] = lex, esc, need, room, local, cell
    return result, position, which, num_cells


@kernel
def walk(  # type: ignore[no-untyped-def]  # numba
    stack,
    items,
    num_items,
    row,
    pending,
    keys,
    num_cells,
    scratch,
    byte,
    depth,
    edge_first,
    edge_byte,
    edge_node,
    first,
    ids,
    plain,
    local_rows,
    locals_,
    edges,
    tags,
    tries,
    dfa,
    ranges,
    cells,
):
    """Allow in `row` every string of the trie that a work item leads through.

    `stack` int32 [max depth + 2, 10] is scratch. `items` int32 [?, 10] is a stack of `num_items`; `pending` takes the items
    that wait for Python, `keys` the places (node, begun, earlier, cell) where a free key ended that began at depth `begun` in
    the frame `cell`, or (`ASKED`) where an ASK edge was taken. Cells from `scratch` on are this walk's.
    Returns (status, num_items, num_pending, num_keys, num_cells).
    """
    stack, items, row, pending, keys = unowned(stack), unowned(items), unowned(row), unowned(pending), unowned(keys)
    byte, depth, first, ids = unowned(byte), unowned(depth), unowned(first), unowned(ids)
    edge_first, edge_byte, edge_node = unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    plain, local_rows, locals_, edges = unowned(plain), unowned(local_rows), unowned(locals_), unowned(edges)
    tags, tries, dfa, ranges, cells = unowned(tags), unowned(tries), unowned(dfa), unowned(ranges), unowned(cells)
    num_pending = 0
    num_keys = 0
    ahead = np.empty((len(stack), 2), np.int32)  # edges left to take at each level: next, stop
    while num_items > 0:
        num_items -= 1
        top = items[num_items, NODE]
        level, above = 0, depth[top]
        ahead[0, 0], ahead[0, 1] = edge_first[top], edge_first[top + 1]
        if items[num_items, MODE] == AT:
            above -= 1
            ahead[0, 0], ahead[0, 1] = ONE_STEP, ONE_STEP + 1
        _copy(items, num_items, stack, 0)
        while level >= 0:
            edge = ahead[level, 0]
            if edge == ahead[level, 1]:
                level -= 1
                continue
            ahead[level, 0] = edge + 1
            code = edge_byte[edge] if edge >= 0 else byte[top]
            lex, esc, need, room = stack[level, I_LEX], stack[level, I_ESC], stack[level, I_NEED], stack[level, I_ROOM]
            local, which = stack[level, I_LOCAL], -1
            if lex < strings.FREE and plain[lex, 0] != tables.UNRESOLVED:
                # Most siblings lead nowhere: see that without a call.
                klass = BYTE_CLASS[code]
                if klass == 0:
                    continue
                if plain[lex, klass] < 0:
                    may_end = plain[lex, 0]
                    if may_end == tables.NO:
                        continue
                    gap = plain[locals_[local, tables.ENTRY], klass] if may_end == tables.VALUE else -1
                    if gap < 0 and local_rows[local, 0] != tables.UNRESOLVED and local_rows[local, klass] < 0:
                        continue
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
            child = edge_node[edge] if edge >= 0 else top
            if result == NEW_LEX or result == NEW_LOCAL or result == NEW_CONTENT:
                if num_pending >= len(pending):
                    return PENDING_FULL, num_items, num_pending, num_keys, num_cells
                _copy(stack, level, pending, num_pending)
                pending[num_pending, NODE] = child
                pending[num_pending, MODE] = AT
                num_pending += 1
                continue
            cell, opened, num_closed = stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS]
            if result == KEY_EXIT:
                # A key of a frame that this walk opened is the frame's first, unless the walk closed another before.
                if cell < scratch or num_closed > 0:
                    if num_keys >= len(keys):
                        return KEYS_FULL, num_items, num_pending, num_keys, num_cells
                    keys[num_keys, 0] = child
                    keys[num_keys, 1] = opened
                    keys[num_keys, 2] = num_closed
                    keys[num_keys, 3] = cell
                    num_keys += 1
                num_closed += 1
            elif result == EDGE:
                before = cell
                if num_cells + 8 >= len(cells):
                    return CELLS_FULL, num_items, num_pending, num_keys, num_cells
                if edges[which, tables.KIND] == tables.ASK:
                    if num_keys >= len(keys):
                        return KEYS_FULL, num_items, num_pending, num_keys, num_cells
                    keys[num_keys, 0], keys[num_keys, 1], keys[num_keys, 2], keys[num_keys, 3] = child, -1, ASKED, cell
                    num_keys += 1
                further = edges[which, tables.NEXT]
                esc = 0
                lex, need, room, local, cell, num_cells = follow(which, before, edges, cells, num_cells, locals_)
                while further >= 0:
                    if num_items >= len(items) or num_cells + 8 >= len(cells):
                        return ITEMS_FULL, num_items, num_pending, num_keys, num_cells
                    lex2, need2, room2, local2, cell2, num_cells = follow(further, before, edges, cells, num_cells, locals_)
                    begun = above + level + 1 if lex2 >= strings.FREE else opened
                    _store(items, num_items, lex2, 0, need2, room2, local2, cell2, begun, num_closed)
                    items[num_items, NODE], items[num_items, MODE] = child, BELOW
                    num_items += 1
                    further = edges[further, tables.NEXT]
                if lex >= strings.FREE:
                    opened = above + level + 1
            level += 1
            _store(stack, level, lex, esc, need, room, local, cell, opened, num_closed)
            for i in range(first[child], first[child + 1]):
                row[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
            ahead[level, 0], ahead[level, 1] = edge_first[child], edge_first[child + 1]
    return FINISHED, 0, num_pending, num_keys, num_cells


@kernel
def _copy(source, i, target, j):  # type: ignore[no-untyped-def]  # numba
    for column in range(ITEM_COLUMNS):
        target[j, column] = source[i, column]


@kernel
def _store(target, i, lex, esc, need, room, local, cell, opened, num_closed):  # type: ignore[no-untyped-def]  # numba
    target[i, I_LEX], target[i, I_ESC], target[i, I_NEED], target[i, I_ROOM] = lex, esc, need, room
    target[i, I_LOCAL], target[i, I_CELL], target[i, I_OPENED], target[i, I_KEYS] = local, cell, opened, num_closed
