"""The hot loops: one byte of one thread, and a run of bytes.

A thread is (lex, esc, need, room, local, cell): the position in the current lexeme, what to do after it inside the
current frame, and the stack below. Whatever is not in the tables yet is handed back to Python, which fills it in and
calls again; nothing here creates anything but scratch stack cells. Kernels take the addresses of their tables
(`tables.Arena`): that of an automaton is the *machine*, that of a thread and a vocabulary the *scratch*; a *trie* is
one of tokens.
"""

from __future__ import annotations

from constrained.automaton import strings, tables
from constrained.automaton.strings import ALIVE, EXIT, FREE_TAG, INDEX, PLAIN, step_string
from constrained.automaton.tables import BYTE_CLASS, NUM_CLASSES
from constrained.tokens.jit import int32_table, int64_array, kernel, uint8_array, unowned

# Results of `step` beside DEAD and ALIVE.
DEAD = strings.DEAD
EDGE, KEY_EXIT, NEW_LEX, NEW_LOCAL, NEW_CONTENT, NEW_KEY = 3, 4, 5, 6, strings.NEW_CONTENT, 8


@kernel
def place_behind(local, tag, locals_, tags):  # type: ignore[no-untyped-def]  # numba
    """The local state behind a key with `tag` that is read at `local`; NOWHERE, or less where it is not made yet."""
    if tag != FREE_TAG and (tag < locals_[local, tables.LOW] or tag > locals_[local, tables.HIGH]):
        return tables.NOWHERE
    return tags[locals_[local, tables.TAGS] + tag, 0]


@kernel
def step(byte, lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges):  # type: ignore[no-untyped-def]  # numba
    """One byte: (result, lex, esc, need, room, local, which); `which` is an edge, or the place that is not filled in."""
    if lex >= strings.FREE:
        result, lex, esc, need, room, tag = step_string(byte, lex, esc, need, room, tries, dfa, ranges)
        if result != EXIT:
            return result, lex, esc, need, room, local, lex & INDEX
        if locals_[local, tables.TAGS] < 0:
            return ALIVE, locals_[local, tables.ENTRY], 0, 0, 0, local, -1
        behind = place_behind(local, tag, locals_, tags)
        if behind < 0:
            if behind == tables.NOWHERE:
                return DEAD, lex, 0, 0, 0, local, -1
            return NEW_KEY, lex, 0, 0, 0, local, locals_[local, tables.TAGS] + tag
        local = behind
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
        if plain[after, 0] == tables.WHOLE:
            return ALIVE, locals_[local, tables.ENTRY], 0, 0, 0, local, -1
        return ALIVE, PLAIN | after, 0, 0, 0, local, -1
    if may_end == tables.VALUE:
        gap = plain[locals_[local, tables.ENTRY], klass]
        if gap >= 0:
            return ALIVE, PLAIN | gap, 0, 0, 0, local, -1
    if may_end == tables.NO:
        return DEAD, lex, 0, 0, 0, local, -1
    row = locals_[local, tables.ROW]
    if row == tables.UNRESOLVED:
        return NEW_LOCAL, lex, 0, 0, 0, local, local
    edge = local_rows[row, klass]
    return (EDGE if edge >= 0 else DEAD), lex, 0, 0, 0, local, edge


@kernel
def follow(edge, here, cell, edges, cells, num_cells, locals_):  # type: ignore[no-untyped-def]  # numba
    """One edge of the local state `here`: (lex, need, room, local, cell, num_cells)."""
    kind = edges[edge, tables.KIND]
    if kind == tables.POP:
        local = cells[cell, tables.RETURN_LOCAL]
        return locals_[local, tables.ENTRY], 0, 0, local, cells[cell, tables.PARENT], num_cells
    if kind == tables.PUSH:
        cells[num_cells, tables.PARENT] = cell
        back = edges[edge, tables.RETURN]
        cells[num_cells, tables.RETURN_LOCAL] = back if back != tables.BEHIND else locals_[here, tables.AFTER]
        cell = num_cells
        num_cells += 1
    local = edges[edge, tables.LOCAL]
    if local == tables.BEHIND:
        local = locals_[here, tables.AFTER]
    lex = edges[edge, tables.LEX]
    if lex == tables.ENDED:  # a literal of a single byte
        lex = locals_[local, tables.ENTRY]
    return lex, edges[edge, tables.NEED], edges[edge, tables.ROOM], local, cell, num_cells


@kernel
def tables_of(slots):  # type: ignore[no-untyped-def]  # numba
    """The tables of a machine, in the order of `step`'s parameters, edges and cells among them."""
    return (
        int32_table(slots[tables.PLAIN], NUM_CLASSES),
        int32_table(slots[tables.LOCAL_ROWS], NUM_CLASSES),
        int32_table(slots[tables.LOCALS], tables.LOCAL_COLUMNS),
        int32_table(slots[tables.EDGES], tables.EDGE_COLUMNS),
        int32_table(slots[tables.TAG_ROWS], 1),
        int32_table(slots[tables.TRIES], strings.TRIE_COLUMNS),
        int32_table(slots[tables.LANGUAGES], strings.LANGUAGE_COLUMNS),
        int32_table(slots[tables.RANGES], strings.RANGE_COLUMNS),
        int32_table(slots[tables.CELLS], tables.CELL_COLUMNS),
    )


@kernel
def run(machine, text, position, stop, num_cells, lex, esc, need, room, local, cell):  # type: ignore[no-untyped-def]  # numba
    """Step a thread through the bytes at the address `text` from `position` to `stop` as far as it goes by itself.

    Returns (result, position, which, num_cells) and the thread: ALIVE at the end of the data; else the byte at `position` was
    not taken (KEY_EXIT: it was), and the thread stands before it.
    """
    slots = int64_array(machine)
    plain, local_rows, locals_, edges, tags, tries, dfa, ranges, cells = tables_of(slots)
    data = uint8_array(text)
    limit = slots[tables.NUM_CELLS] - 1
    result, which = ALIVE, -1
    while position < stop:
        result, lex2, esc2, need2, room2, local2, which = step(
            data[position], lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges
        )
        if result == EDGE:
            if edges[which, tables.NEXT] >= 0 or edges[which, tables.KIND] == tables.ASK or num_cells >= limit:
                break
            esc = 0
            lex, need, room, local, cell, num_cells = follow(which, local, cell, edges, cells, num_cells, locals_)
            result = ALIVE
        elif result == ALIVE or result == KEY_EXIT:
            lex, esc, need, room, local = lex2, esc2, need2, room2, local2
        if result != ALIVE:
            break
        position += 1
    return result, position, which, num_cells, lex, esc, need, room, local, cell


@kernel
def run_all(machine, text, stop, num_cells, threads, results):  # type: ignore[no-untyped-def]  # numba
    """`run` from the beginning of the bytes for each of `threads` int64 [n, 6], in place; returns `num_cells`.

    Where `results` int64 [n] is not ALIVE, the thread is as before.
    """
    threads, results = unowned(threads), unowned(results)
    for i in range(len(threads)):
        results[i], _, _, num_cells, lex, esc, need, room, local, cell = run(
            machine, text, 0, stop, num_cells,
            threads[i, 0], threads[i, 1], threads[i, 2], threads[i, 3], threads[i, 4], threads[i, 5],
        )  # fmt: skip
        if results[i] == ALIVE:
            threads[i, 0], threads[i, 1], threads[i, 2] = lex, esc, need
            threads[i, 3], threads[i, 4], threads[i, 5] = room, local, cell
    return num_cells
