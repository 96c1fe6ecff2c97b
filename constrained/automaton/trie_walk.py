"""The walk of a trie of tokens that finds which of its strings lead on from a thread, and what it takes: the kernels.

Whatever is not in the tables yet is left for Python among the pending items; the walk is then called again.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.stepping import (
    DEAD,
    EDGE,
    KEY_EXIT,
    NEW_CONTENT,
    NEW_KEY,
    NEW_LEX,
    NEW_LOCAL,
    follow,
    place_behind,
    step,
    tables_of,
)
from constrained.automaton.strings import ALIVE, EXIT, FREE_TAG, INDEX, ending_tag, step_content, step_string
from constrained.automaton.tables import ADDED, BLOCK_SHIFT, BYTE_CLASS, CLASS_BYTES, NUM_CLASSES
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel, uint8_array

# Columns of a work item: a node of the trie, the thread that stands there, where its key began, how many free keys it closed;
# for one that waits: why (NEW_...) and for which; for a level of the stack: the branches left, and where their list begins.
NODE, I_LEX, I_ESC, I_NEED, I_ROOM, I_LOCAL, I_CELL, I_OPENED, I_KEYS, WHY, WHICH, NEXT, STOP, LIST = range(14)
ITEM_COLUMNS = 14
NUM_COPIED = 9
NOT_LISTED = -1
ASKED = -1  # stands for `earlier` where not a key but an item ended on whose value it depends what may follow

# ASCII that stands for itself inside a string.
IS_TEXT = np.zeros(256, np.bool_)
IS_TEXT[0x20:0x80] = True
IS_TEXT[[strings.QUOTE, strings.BACKSLASH]] = False

# The byte of each class; class 0 has none.
BYTE_OF_CLASS = np.array([0, *CLASS_BYTES], np.uint8)
# Up to how many edges of a node each is looked at, rather than each class.
FEW = 16

# How many nodes below a node are worth a shortcut, and how many that are missing a walk notes.
LARGE, MAX_WANTED = 24, 64

# What `walk` returns beside counts: what ran out.
FINISHED, ITEMS_FULL, PENDING_FULL, CELLS_FULL, KEYS_FULL = range(5)


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
def _branches(  # type: ignore[no-untyped-def]  # numba
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


@kernel
def _trie(trie):  # type: ignore[no-untyped-def]  # numba
    slots = int64_array(trie)
    return (
        int32_array(slots[tables.T_END]),
        int32_array(slots[tables.T_DEPTH]),
        int32_array(slots[tables.T_FIRST]),
        int32_array(slots[tables.T_IDS]),
        int32_array(slots[tables.T_EDGE_FIRST]),
        uint8_array(slots[tables.T_EDGE_BYTE]),
        int32_array(slots[tables.T_EDGE_NODE]),
    )


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
    below, depth, first, ids, edge_first, edge_byte, edge_node = _trie(trie)
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
        _store(items, num_items, lex, esc, need, room, local, cell, -1, num_closed)
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
                        cut = _cut(shortcuts, node, strings.FREE)
                        if cut >= 0 and room < _longest(shortcuts, cut):
                            cut = -1
                    elif lex < strings.FREE and (plain[lex, 0] == tables.NO or plain[lex, 0] == tables.VALUE):
                        cut = _cut(shortcuts, node, lex)
                        if cut < 0 and num_wanted < MAX_WANTED:
                            num_wanted += 1
                            wanted[0, 0] = num_wanted
                            wanted[num_wanted, 0], wanted[num_wanted, 1] = node, lex
                    if cut >= 0 and is_key:
                        missing = _missing_behind(shortcuts, cut, lex, local, locals_, tags, tries, dfa, ranges)
                        if missing >= 0:
                            if num_pending >= max_pending:
                                return PENDING_FULL, num_pending, num_keys, num_cells, left
                            for column in range(NUM_COPIED):
                                pending[num_pending, column] = stack[level, column]
                            pending[num_pending, WHY], pending[num_pending, WHICH] = NEW_KEY, missing
                            num_pending += 1
                        else:
                            num_items, num_keys = _take_key_cut(
                                shortcuts, cut, lex, local, stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS],
                                stack[level, I_CELL] < own_cells, locals_, tags, tries, dfa, ranges,
                                words, touched, items, num_items, max_items, keys, num_keys, max_keys, first, ids, edge_first,
                            )  # fmt: skip
                            if num_items < 0:
                                return ITEMS_FULL, num_pending, num_keys, num_cells, left
                        level -= 1
                        continue
                    if cut >= 0:
                        num_items = _take_cut(
                            shortcuts, cut, room, local, stack[level, I_CELL], stack[level, I_OPENED], stack[level, I_KEYS],
                            locals_[local, tables.ENTRY], words, touched, items, num_items, max_items, first, ids, edge_first,
                        )  # fmt: skip
                        if num_items < 0:
                            return ITEMS_FULL, num_pending, num_keys, num_cells, left
                        level -= 1
                        continue
                kind, begin, end = _branches(
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
                    _store(items, num_items, lex, 0, need, room, local, cell, begun, num_closed)
                    items[num_items, NODE] = child
                    num_items += 1
                if lex >= strings.FREE:
                    opened = above + level + 1
            for i in range(first[child], first[child + 1]):
                words[ids[i] >> 5] |= np.int32(1) << np.int32(ids[i] & 31)
                touched[ids[i] >> (5 + BLOCK_SHIFT)] |= ADDED
            if edge_first[child] < edge_first[child + 1]:
                level += 1
                _store(stack, level, lex, esc, need, room, local, cell, opened, num_closed)
                stack[level, NODE] = child
    return FINISHED, num_pending, num_keys, num_cells, left


@kernel
def _cut(shortcuts, node, lex):  # type: ignore[no-untyped-def]  # numba
    """The shortcut for a lexeme position at a node, -1 where there is none."""
    spans = int32_table(shortcuts[tables.CUT_SPANS], tables.CUT_COLUMNS)
    cut = int32_array(shortcuts[tables.CUT_INDEX])[node]
    while cut >= 0 and spans[cut, tables.C_LEX] != lex:
        cut = spans[cut, tables.C_NEXT]
    return cut


@kernel
def _longest(shortcuts, cut):  # type: ignore[no-untyped-def]  # numba
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
def _missing_behind(shortcuts, cut, lex, local, locals_, tags, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
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
def _take_cut(  # type: ignore[no-untyped-def]  # numba
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
                _store(items, num_items, strings.FREE, esc, 0, left, local, cell, opened, num_closed)
            else:
                _store(items, num_items, entry, 0, 0, 0, local, cell, opened, num_closed)
            items[num_items, NODE] = node
            num_items += 1
    return num_items


@kernel
def _take_key_cut(  # type: ignore[no-untyped-def]  # numba
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
            _store(items, num_items, after, esc, 0, room, place, cell, opened, closed)
            items[num_items, NODE] = node
            num_items += 1
    return num_items, num_keys


@kernel
def _store(target, i, lex, esc, need, room, local, cell, opened, num_closed):  # type: ignore[no-untyped-def]  # numba
    target[i, I_LEX], target[i, I_ESC], target[i, I_NEED], target[i, I_ROOM] = lex, esc, need, room
    target[i, I_LOCAL], target[i, I_CELL], target[i, I_OPENED], target[i, I_KEYS] = local, cell, opened, num_closed
    target[i, NEXT] = -1


@kernel
def replace_block(block, words, touched, before, under, num_words):  # type: ignore[no-untyped-def]  # numba
    """Have the words of a block be those of a row, with the bits that were added as far as they are set `under` another."""
    if touched[block] < tables.REPLACED:
        touched[block] = tables.REPLACED
        begin = block << BLOCK_SHIFT
        for at in range(begin, min(begin + (1 << BLOCK_SHIFT), num_words)):
            words[at] = (words[at] & under[at]) | before[at]


@kernel
def settle_names(machine, scratch, trie, quoted, lex, local, cell, base, under):  # type: ignore[no-untyped-def]  # numba
    """Put right, in the scratch's words, the tokens that end a name below the place `lex` of a string trie.

    In the row that is made of that at `base` they stand as those of a free string (`replace_block`): they are taken out, and
    what leads on behind the quote from a thread at `local` becomes a work item. Returns their number, or -1 where there is no
    room for them; and how many places behind names are not made yet, which are left among the pending items: then it is to be
    asked again. `quoted` says of each node of the trie whether a quote follows, at once or later.

    What leads on behind a name is within `under`: it is a key, and may have any length.
    """
    slots, here, leads_on = int64_array(machine), int64_array(scratch), uint8_array(quoted)
    plain, local_rows, locals_, _, tags, tries, dfa, ranges, _ = tables_of(slots)
    end, _, first, ids, edge_first, edge_byte, edge_node = _trie(trie)
    stack, listed = int32_table(here[tables.STACK], ITEM_COLUMNS), int32_array(here[tables.BRANCHES])
    items, words = int32_table(here[tables.ITEMS], ITEM_COLUMNS), int32_array(here[tables.WORDS])
    pending, max_items = int32_table(here[tables.PENDING], ITEM_COLUMNS), here[tables.NUM_ITEMS]
    before, mask = int32_array(base), int32_array(under)
    touched, num_words = uint8_array(here[tables.TOUCHED]), here[tables.NUM_WORDS]
    slot = locals_[local, tables.TAGS]
    level, top, count, num_missing = 0, 0, 0, 0
    stack[0, NODE], stack[0, I_LEX], stack[0, I_ESC], stack[0, NEXT] = 0, lex, 0, -1
    while level >= 0:
        lex, esc = stack[level, I_LEX], stack[level, I_ESC]
        if stack[level, NEXT] < 0:
            node = stack[level, NODE]
            kind, stack[level, NEXT], stack[level, STOP] = _branches(
                lex, esc, local, True, edge_first[node], edge_first[node + 1],
                edge_byte, plain, local_rows, locals_, tags, tries, dfa, listed, top,
            )  # fmt: skip
            stack[level, LIST] = NOT_LISTED
            if kind == ALIVE:
                stack[level, LIST] = top
                top = stack[level, STOP]
        branch = stack[level, NEXT]
        if branch == stack[level, STOP]:
            if stack[level, LIST] != NOT_LISTED:
                top = stack[level, LIST]
            level -= 1
            continue
        stack[level, NEXT] = branch + 1
        edge = branch if stack[level, LIST] == NOT_LISTED else listed[branch]
        code, child = edge_byte[edge], edge_node[edge]
        if code != strings.QUOTE and not leads_on[child]:
            continue
        result, after, esc2, _, _, tag = step_string(code, lex, esc, 0, strings.UNBOUNDED, tries, dfa, ranges)
        if code == strings.QUOTE and esc == 0 and tag != FREE_TAG and tag != strings.NO_TAG:
            for i in range(first[child], first[end[child]]):
                # Tokens that go on behind the quote are there only if the walk behind a free key added them.
                bit = np.int32(1) << np.int32(ids[i] & 31)
                if i < first[child + 1] or words[ids[i] >> 5] & bit:
                    replace_block(ids[i] >> (5 + BLOCK_SHIFT), words, touched, before, mask, num_words)
                    words[ids[i] >> 5] &= ~bit
            behind = tables.NOWHERE if tag < 0 else place_behind(local, tag, locals_, tags) if slot >= 0 else local
            if behind != tables.NOWHERE:
                if count >= max_items:
                    return -1, 0
                if behind < 0:
                    if edge_first[child] < edge_first[child + 1]:
                        pending[num_missing, WHY], pending[num_missing, WHICH] = NEW_KEY, slot + tag
                        num_missing += 1
                    behind = local
                for i in range(first[child], first[child + 1]):
                    words[ids[i] >> 5] |= np.int32(1) << np.int32(ids[i] & 31)  # its block was replaced above
                _store(items, count, locals_[behind, tables.ENTRY], 0, 0, 0, behind, cell, -1, 0)
                items[count, NODE] = child
                count += 1
        elif result == ALIVE and after >= strings.TRIE:
            level += 1
            stack[level, NODE], stack[level, I_LEX], stack[level, I_ESC], stack[level, NEXT] = child, after, esc2, -1
    return count, num_missing
