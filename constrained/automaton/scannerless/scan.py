"""The kernel: a walk of a token trie through a table of byte steps.

Two tables are walked, of one shape: column 0 says whether the text (the terminal) may end, column 1 + b where byte b
leads. What is `UNKNOWN` is handed back to Python, which fills it in and goes on from there.
"""

from __future__ import annotations

import numpy as np

from constrained.tokens.jit import kernel, unowned

# Columns of a table, and what stands in it beside rows and the flag.
ENDS, BYTE_0 = 0, 1
COLUMNS = BYTE_0 + 256
UNKNOWN, DEAD = -1, -2

# Columns of an item: the row that stands before the edges of the trie from one to the other.
ROW, EDGE, STOP = range(3)


@kernel
def walk(items, num_items, table, words, pending, exits, num_exits, edge_first, edge_byte, edge_node, first, ids):  # type: ignore[no-untyped-def]  # numba
    """Set in `words` the strings of the trie that an item leads through.

    `items` int32 [num_items + depth of the trie, 3] is used as a stack. `pending` int32 [edges, 2] takes the (row, edge)
    of steps that are unknown; `exits` int32 [nodes] the inner nodes at which the table may end, after `num_exits` that are
    there.
    Returns (number pending, number of exits).
    """
    items, table, words, pending, exits = unowned(items), unowned(table), unowned(words), unowned(pending), unowned(exits)
    edge_first, edge_byte, edge_node = unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    first, ids = unowned(first), unowned(ids)
    num_pending = 0
    while num_items > 0:
        num_items -= 1
        here, edge, stop = items[num_items, ROW], items[num_items, EDGE], items[num_items, STOP]
        while edge < stop:
            after = table[here, BYTE_0 + edge_byte[edge]]
            if after == UNKNOWN or (after >= 0 and table[after, ENDS] == UNKNOWN):
                pending[num_pending, ROW] = here
                pending[num_pending, EDGE] = edge
                num_pending += 1
            child = edge_node[edge]
            edge += 1
            if after < 0 or table[after, ENDS] == UNKNOWN:
                continue
            for i in range(first[child], first[child + 1]):
                words[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
            if edge_first[child] == edge_first[child + 1]:
                continue
            if table[after, ENDS] == 1:
                exits[num_exits] = child
                num_exits += 1
            items[num_items, ROW], items[num_items, EDGE], items[num_items, STOP] = here, edge, stop
            num_items += 1
            here, edge, stop = after, edge_first[child], edge_first[child + 1]
    return num_pending, num_exits
