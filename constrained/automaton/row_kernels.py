"""The mask row of a single thread: one call of a kernel finds it, or says what is missing in the tables.

How a row is found depends on where the thread stands. Before whitespace that may come: what all grammars share of that gap,
and a walk of the tokens without it. In a number or a literal: what is shared of its inside, and walks of what may follow.
Inside a string of any text, or of a language: the same with the suffixes behind its quote; where it may also be one of some
names, the tokens that end a name are put right. Elsewhere: a walk of the whole vocabulary.
A row is kept as the words in which it differs from one that is shared (`thread_rows`).
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.joining import gather
from constrained.automaton.name_rows import settle_names
from constrained.automaton.stepping import NEW_KEY, NEW_LEX, NEW_LOCAL, place_behind
from constrained.automaton.strings import FREE_TAG, INDEX, VALUE_TAG
from constrained.automaton.tables import (
    ADDED,
    BLOCK_SHIFT,
    CELL_COLUMNS,
    CELLS,
    ENDING_KIND,
    GAP_KIND,
    K_BITS,
    K_BITS_STOP,
    K_EXITS,
    K_EXITS_STOP,
    K_KIND,
    K_NUMBER,
    KIND_COLUMNS,
    PARENT,
    R_BASE,
    R_BEFORE,
    R_COUNT,
    R_FIRST,
    R_KEYS,
    R_LEFT,
    R_ONE,
    R_THREAD,
    R_TWO,
    RETURN_LOCAL,
    ROW_COLUMNS,
    T_CELL,
    T_ESC,
    T_FLAGS,
    T_LEX,
    T_LOCAL,
    T_NEED,
    T_ROOM,
    T_ROW,
    THREAD_COLUMNS,
    UNKNOWN_KIND,
    VALUE_KIND,
)
from constrained.automaton.threads import hashed_thread
from constrained.automaton.trie_walk import walk
from constrained.automaton.walk_items import (
    FINISHED,
    I_CELL,
    I_ESC,
    I_KEYS,
    I_LEX,
    I_LOCAL,
    I_NEED,
    I_OPENED,
    I_ROOM,
    ITEM_COLUMNS,
    ITEMS_FULL,
    NODE,
    WHICH,
    WHY,
)
from constrained.tokens.jit import int32_array, int32_table, int64_array, int64_table, kernel, uint8_array

# What `find_row` returns where it finds none, or not only one: more room is needed for rows; a lexeme is not known yet, or a
# gap before a number, a place in a string, or some of the scratch's pending items; keys were noted; a walk ran out of room.
ROWS_FULL, NEW_KIND, NEW_NUMBER, NEW_STRING, PENDING, NOTED, OUT_OF_ROOM = range(-1, -8, -1)
ONE = ord("1")
SOME = 256  # changes


@kernel
def find_row(machine, scratch, shared, number, onto, suffixes):  # type: ignore[no-untyped-def]  # numba
    """The number of the mask row of the thread `number`, or what is in its way.

    `onto` and `suffixes` are given for a thread in a string, after `NEW_STRING` was returned: where the bits go, and the trie
    of what follows the quote. `NOTED`: the row is in the slot `WHICH_ONE`, and the scratch's keys say which tokens end keys in
    it; those from the slot `FIRST_NOTED` on were found in a second walk. After `PENDING` the slot `WHICH_ONE` holds how many
    items wait, after `NEW_KIND` the lexeme, after `NEW_NUMBER` that and the column of the table of gaps, after `OUT_OF_ROOM`
    what of (`walk_items`).
    """
    slots, here, common = int64_array(machine), int64_array(scratch), int64_array(shared)
    threads = int32_table(slots[tables.THREADS], THREAD_COLUMNS)
    if threads[number, T_ROW] >= 0:
        return np.int64(threads[number, T_ROW])
    lex, esc, need = threads[number, T_LEX], threads[number, T_ESC], threads[number, T_NEED]
    room, local, cell = threads[number, T_ROOM], threads[number, T_LOCAL], threads[number, T_CELL]
    found = _kept(slots, common, threads, lex, esc, need, room, local, cell)
    if found >= 0:
        threads[number, T_ROW] = found
        return found
    locals_ = int32_table(slots[tables.LOCALS], tables.LOCAL_COLUMNS)
    plain = int32_table(slots[tables.PLAIN], tables.NUM_CLASSES)
    tries = int32_table(slots[tables.TRIES], strings.TRIE_COLUMNS)
    tags = int32_table(slots[tables.TAG_ROWS], 1)
    kinds, num_kinds = int32_table(common[tables.V_KINDS], KIND_COLUMNS), common[tables.V_NUM_KINDS]
    trie, cuts, num_closed, starts, value = common[tables.V_TRIE], np.int64(0), np.int64(0), True, np.int64(-1)
    names = False
    w_lex, w_esc, w_need, w_room, w_local = np.int64(lex), np.int64(esc), np.int64(need), np.int64(room), np.int64(local)
    if lex < strings.FREE:
        if lex >= num_kinds or kinds[lex, K_KIND] == UNKNOWN_KIND:
            slots[tables.WHICH_ONE] = lex
            return np.int64(NEW_KIND)
        gap = np.int64(lex)
        if kinds[lex, K_KIND] == VALUE_KIND or kinds[lex, K_KIND] == ENDING_KIND:
            value, starts = np.int64(lex), kinds[lex, K_KIND] == ENDING_KIND
            gap = np.int64(locals_[local, tables.ENTRY])
            w_lex = gap
            if gap >= num_kinds or kinds[gap, K_KIND] == UNKNOWN_KIND:
                slots[tables.WHICH_ONE] = gap
                return np.int64(NEW_KIND)
        onto = common[tables.V_ALONE]
        if starts and kinds[gap, K_KIND] == GAP_KIND:
            row = locals_[local, tables.ROW]
            if row == tables.UNRESOLVED:
                return _missing(slots, here, NEW_LOCAL, local)
            is_text, common_number = _begins_text(slots, row, tries), _begins_number(slots, row, kinds, num_kinds)
            column = is_text + 2 * (common_number + 1)
            onto = int64_table(common[tables.V_GAPS], tables.GAP_COLUMNS)[gap, column]
            if onto == 0:
                slots[tables.WHICH_ONE] = gap * tables.GAP_COLUMNS + column
                return np.int64(NEW_NUMBER)
            trie = common[tables.V_STRIPPED]
            cuts = common[tables.V_CUTS + is_text + (2 if common_number >= 0 else 0)]
            w_lex = common[tables.V_NOTHING]
    elif lex >= strings.TRIE and (esc != 0 or (lex < strings.DFA and tries[lex & INDEX, strings.FALLBACK] == 0)):
        onto = common[tables.V_ALONE]
    else:
        names = strings.TRIE <= lex < strings.DFA
        if onto == 0:
            is_free = tries[lex & INDEX, strings.UTF8_STATE] == 0 if names else lex == strings.FREE
            if not is_free or esc != 0 or need > 0 or room < common[tables.V_LONGEST]:
                return np.int64(NEW_STRING)
            onto, suffixes = common[tables.V_FREE], common[tables.V_SUFFIXES]
        if suffixes != 0:
            behind = np.int64(local)
            if locals_[local, tables.TAGS] >= 0:
                num_closed = np.int64(1)
                tag = FREE_TAG if lex < strings.DFA else VALUE_TAG
                behind = np.int64(place_behind(local, tag, locals_, tags))
                if behind < tables.NOWHERE:
                    return _missing(slots, here, NEW_KEY, locals_[local, tables.TAGS] + tag)
            trie, starts = suffixes, bool(behind >= 0)
            if starts:
                w_lex, w_local = np.int64(locals_[behind, tables.ENTRY]), behind
                w_esc, w_need, w_room = np.int64(0), np.int64(0), np.int64(0)
    if lex >= strings.TRIE and lex < strings.DFA and esc == 0 and locals_[local, tables.TAGS] >= 0:
        # Behind a name that may end here comes a value: rather than find that it is not made yet in the middle of a walk.
        tag = tries[lex & INDEX, strings.TAG]
        behind = np.int64(place_behind(local, tag, locals_, tags)) if tag > FREE_TAG else np.int64(tables.NOWHERE)
        if behind >= 0:
            after = locals_[behind, tables.AFTER]
            if after >= 0 and locals_[after, tables.ROW] == tables.UNRESOLVED:
                return _missing(slots, here, NEW_LOCAL, after)
    is_done = threads[number, T_FLAGS] & tables.DONE_HERE != 0 and lex < strings.FREE
    if is_done and plain[lex, 0] == tables.UNRESOLVED:
        return _missing(slots, here, NEW_LEX, lex)
    # Before the walk, as most rows change few words: whoever has no room for them walks twice.
    if slots[tables.ROWS_TAKEN] >= slots[tables.MAX_ROWS] or slots[tables.CHANGES_TAKEN] + SOME > slots[tables.MAX_CHANGES]:
        slots[tables.WHICH_ONE] = SOME
        return np.int64(ROWS_FULL)
    num_keys, left, taken, num_items = 0, 0, slots[tables.CELLS_TAKEN], 0
    slots[tables.FIRST_NOTED] = 0
    for turn in range(2):
        if turn == 0 and not starts:
            continue
        if turn == 1:
            slots[tables.FIRST_NOTED] = num_keys
            if value >= 0:
                num_items = _behind_value(slots, here, common, kinds, value, local, cell, locals_[local, tables.ENTRY])
            elif names:
                record = int64_array(onto)
                num_items, missing = settle_names(
                    machine, scratch, common[tables.V_TRIE], common[tables.V_QUOTED], lex, local, cell, record[0], record[1]
                )
                slots[tables.WHICH_ONE] = missing if num_items >= 0 else ITEMS_FULL
                if missing > 0:
                    return np.int64(PENDING)
            else:
                break
            if num_items < 0:
                return np.int64(OUT_OF_ROOM)
            trie, cuts = common[tables.V_TRIE], np.int64(0)
        status, num_pending, num_keys, _, below = walk(
            machine, scratch, trie, cuts, 0, num_items, taken, taken, cell,
            -turn, w_lex, w_esc, w_need, w_room, w_local, cell, num_closed, num_keys,
        )  # fmt: skip
        if status != FINISHED:
            slots[tables.WHICH_ONE] = status
            return np.int64(OUT_OF_ROOM)
        if num_pending > 0:
            slots[tables.WHICH_ONE] = num_pending
            return np.int64(PENDING)
        left = max(left, below)
    if is_done and plain[lex, 0] > tables.NO:
        _add_eos(here, common)
    record = int64_array(onto)
    count, one, two = gather(scratch, record[0], record[1], record[2], record[3])
    return keep_row(machine, scratch, shared, number, record[0], count, left, num_keys, one, two)


@kernel
def _missing(slots, here, why, which):  # type: ignore[no-untyped-def]  # numba
    """Leave what Python has to make as the one pending item."""
    pending = int32_table(here[tables.PENDING], ITEM_COLUMNS)
    pending[0, WHY], pending[0, WHICH] = why, which
    slots[tables.WHICH_ONE] = 1
    return np.int64(PENDING)


@kernel
def _place(slots, common, lex, esc, need, room, local):  # type: ignore[no-untyped-def]  # numba
    """Where the index of rows has those of threads that differ in their stacks alone, or in lengths that no token can tell."""
    if strings.FREE <= lex < strings.TRIE:
        need, room = min(need, common[tables.V_LONGEST]), min(room, common[tables.V_LONGEST])
    # As many places as fit rows, a power of two.
    return hashed_thread(lex, esc, need, room, local) & (slots[tables.MAX_ROWS] - 1)


@kernel
def _kept(slots, common, threads, lex, esc, need, room, local, cell):  # type: ignore[no-untyped-def]  # numba
    """A row that was kept for such a thread, or -1."""
    rows, cells = int64_table(slots[tables.ROWS], ROW_COLUMNS), int32_table(slots[CELLS], CELL_COLUMNS)
    most = common[tables.V_LONGEST] if strings.FREE <= lex < strings.TRIE else np.int64(tables.ANY_TAG)
    row = np.int64(int32_array(slots[tables.ROW_INDEX])[_place(slots, common, lex, esc, need, room, local)])
    while row >= 0:
        other = rows[row, R_THREAD]
        if (
            threads[other, T_LEX] == lex
            and threads[other, T_LOCAL] == local
            and threads[other, T_ESC] == esc
            and min(threads[other, T_NEED], most) == min(need, most)
            and min(threads[other, T_ROOM], most) == min(room, most)
        ):
            one, two, left = np.int64(cell), np.int64(threads[other, T_CELL]), rows[row, R_LEFT]
            while left > 0 and one >= 0 and two >= 0 and cells[one, RETURN_LOCAL] == cells[two, RETURN_LOCAL]:
                one, two, left = np.int64(cells[one, PARENT]), np.int64(cells[two, PARENT]), left - 1
            if left == 0 or (one < 0 and two < 0):
                return row
        row = rows[row, R_BEFORE]
    return np.int64(-1)


@kernel
def _begins_text(slots, row, tries):  # type: ignore[no-untyped-def]  # numba
    """1 where a string that may be any text may begin at a row of edges, and only one; else 0."""
    edges = int32_table(slots[tables.EDGES], tables.EDGE_COLUMNS)
    edge = int32_table(slots[tables.LOCAL_ROWS], tables.NUM_CLASSES)[row, tables.BYTE_CLASS[strings.QUOTE]]
    if (
        edge < 0
        or edges[edge, tables.NEXT] >= 0
        or edges[edge, tables.NEED] != 0
        or edges[edge, tables.ROOM] < strings.UNBOUNDED
    ):
        return 0
    lex = edges[edge, tables.LEX]
    if lex == strings.FREE or (strings.TRIE <= lex < strings.DFA and tries[lex & INDEX, strings.FALLBACK] != 0):
        return 1
    return 0


@kernel
def _begins_number(slots, row, kinds, num_kinds):  # type: ignore[no-untyped-def]  # numba
    """Which of the common numbers may begin at a row of edges with each digit from 1 to 9; -1 if none."""
    rows = int32_table(slots[tables.LOCAL_ROWS], tables.NUM_CLASSES)
    one = tables.BYTE_CLASS[ONE]
    edge = rows[row, one]
    if edge < 0:
        return -1
    edges = int32_table(slots[tables.EDGES], tables.EDGE_COLUMNS)
    lex = edges[edge, tables.LEX]
    if lex >= num_kinds or kinds[lex, K_NUMBER] < 0 or edges[edge, tables.NEXT] >= 0:
        return -1
    for digit in range(1, 9):
        if rows[row, one + digit] != edge:
            return -1
    return kinds[lex, K_NUMBER]


@kernel
def _behind_value(slots, here, common, kinds, value, local, cell, entry):  # type: ignore[no-untyped-def]  # numba
    """Set the tokens that stay inside a value, and make an item of each place where it may end in a token; -1 without room."""
    num_items = kinds[value, K_EXITS_STOP] - kinds[value, K_EXITS]
    if num_items > here[tables.NUM_ITEMS]:
        slots[tables.WHICH_ONE] = num_items
        return np.int64(-1)
    exits, bits = int32_array(common[tables.V_EXITS]), int32_table(common[tables.V_BITS], 2)
    words, touched = int32_array(here[tables.WORDS]), uint8_array(here[tables.TOUCHED])
    for i in range(kinds[value, K_BITS], kinds[value, K_BITS_STOP]):
        words[bits[i, 0]] |= bits[i, 1]
        touched[bits[i, 0] >> BLOCK_SHIFT] |= ADDED
    items = int32_table(here[tables.ITEMS], ITEM_COLUMNS)
    for i in range(num_items):
        items[i, NODE], items[i, I_LEX] = exits[kinds[value, K_EXITS] + i], entry
        items[i, I_ESC], items[i, I_NEED], items[i, I_ROOM] = 0, 0, 0
        items[i, I_LOCAL], items[i, I_CELL], items[i, I_OPENED], items[i, I_KEYS] = local, cell, -1, 0
    return np.int64(num_items)


@kernel
def _add_eos(here, common):  # type: ignore[no-untyped-def]  # numba
    eos = int32_array(common[tables.V_EOS])
    words, touched = int32_array(here[tables.WORDS]), uint8_array(here[tables.TOUCHED])
    for i in range(common[tables.V_NUM_EOS]):
        words[eos[i] >> 5] |= np.int32(1) << np.int32(eos[i] & 31)
        touched[eos[i] >> (5 + BLOCK_SHIFT)] |= ADDED


@kernel
def keep_row(machine, scratch, shared, number, base, count, left, num_keys, one, two):  # type: ignore[no-untyped-def]  # numba
    """Keep the row of a thread that is the words at `base` but for the scratch's first `count` entries; its number.

    `ROWS_FULL` without room, `NOTED` as `find_row` says.
    """
    slots, here, common = int64_array(machine), int64_array(scratch), int64_array(shared)
    if slots[tables.CHANGES_TAKEN] + count > slots[tables.MAX_CHANGES] or slots[tables.ROWS_TAKEN] >= slots[tables.MAX_ROWS]:
        slots[tables.WHICH_ONE] = count
        return np.int64(ROWS_FULL)
    threads, rows = int32_table(slots[tables.THREADS], THREAD_COLUMNS), int64_table(slots[tables.ROWS], ROW_COLUMNS)
    index, changes = int32_array(slots[tables.ROW_INDEX]), int32_table(slots[tables.CHANGES], 2)
    entries = int32_table(here[tables.ENTRIES], 2)
    place = _place(
        slots, common, threads[number, T_LEX], threads[number, T_ESC],
        threads[number, T_NEED], threads[number, T_ROOM], threads[number, T_LOCAL],
    )  # fmt: skip
    first, made = slots[tables.CHANGES_TAKEN], slots[tables.ROWS_TAKEN]
    for i in range(count):
        changes[first + i, 0], changes[first + i, 1] = entries[i, 0], entries[i, 1]
    slots[tables.CHANGES_TAKEN], slots[tables.ROWS_TAKEN] = first + count, made + 1
    rows[made, R_BASE], rows[made, R_FIRST], rows[made, R_COUNT], rows[made, R_LEFT] = base, first, count, left
    rows[made, R_ONE], rows[made, R_TWO], rows[made, R_THREAD], rows[made, R_KEYS] = one, two, number, num_keys
    rows[made, R_BEFORE], index[place] = index[place], made
    threads[number, T_ROW] = made
    if num_keys > 0:
        slots[tables.WHICH_ONE] = made
        return np.int64(NOTED)
    return np.int64(made)


@kernel
def index_rows(machine, shared):  # type: ignore[no-untyped-def]  # numba
    """Fill an empty index of the rows."""
    slots, common = int64_array(machine), int64_array(shared)
    threads, rows = int32_table(slots[tables.THREADS], THREAD_COLUMNS), int64_table(slots[tables.ROWS], ROW_COLUMNS)
    index = int32_array(slots[tables.ROW_INDEX])
    for row in range(slots[tables.ROWS_TAKEN]):
        number = rows[row, R_THREAD]
        place = _place(
            slots, common, threads[number, T_LEX], threads[number, T_ESC],
            threads[number, T_NEED], threads[number, T_ROOM], threads[number, T_LOCAL],
        )  # fmt: skip
        rows[row, R_BEFORE], index[place] = index[place], row


@kernel
def write_row(words, machine, num_words, row):  # type: ignore[no-untyped-def]  # numba
    """Write a kept row into the `num_words` int32 at the address `words`."""
    slots, into = int64_array(machine), int32_array(words)
    rows, changes = int64_table(slots[tables.ROWS], ROW_COLUMNS), int32_table(slots[tables.CHANGES], 2)
    before = int32_array(rows[row, R_BASE])
    for i in range(num_words):
        into[i] = before[i]
    for i in range(rows[row, R_FIRST], rows[row, R_FIRST] + rows[row, R_COUNT]):
        into[changes[i, 0]] = changes[i, 1]
