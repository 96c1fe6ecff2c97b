"""The work of walks through tries of tokens: items that wait to be walked, and what kernels take of a trie."""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.tokens.jit import int32_array, int64_array, kernel, uint8_array

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


# How many nodes below a node are worth a shortcut, and how many that are missing a walk notes.
LARGE, MAX_WANTED = 24, 64

# What `walk` returns beside counts: what ran out.
FINISHED, ITEMS_FULL, PENDING_FULL, CELLS_FULL, KEYS_FULL = range(5)


@kernel
def trie_of(trie):  # type: ignore[no-untyped-def]  # numba
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
def store(target, i, lex, esc, need, room, local, cell, opened, num_closed):  # type: ignore[no-untyped-def]  # numba
    target[i, I_LEX], target[i, I_ESC], target[i, I_NEED], target[i, I_ROOM] = lex, esc, need, room
    target[i, I_LOCAL], target[i, I_CELL], target[i, I_OPENED], target[i, I_KEYS] = local, cell, opened, num_closed
    target[i, NEXT] = -1
