"""The kernels: a walk of a token trie through a table of byte steps, and which edges of the trie lead to something new.

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
def walk(items, num_items, table, words, pending, exits, num_exits, is_exit, edge_first, edge_byte, edge_node, first, ids):  # type: ignore[no-untyped-def]  # numba
    """Set in `words` the strings of the trie that an item leads through.

    `items` int32 [num_items + depth of the trie, 3] is used as a stack. `pending` int32 [room, 2] takes the (row, edge)
    of steps that are unknown; where it is full, items are left. `exits` int32 [edges] takes, after the `num_exits` that are
    there, the edges below nodes at which the table may end; `is_exit` uint8 [edges] tells which are in it.
    Returns (items left, number pending, number of exits).
    """
    items, table, words, pending, exits = unowned(items), unowned(table), unowned(words), unowned(pending), unowned(exits)
    is_exit, edge_first, edge_byte, edge_node = unowned(is_exit), unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    first, ids = unowned(first), unowned(ids)
    num_pending = 0
    while num_items > 0 and num_pending < len(pending):
        num_items -= 1
        here, edge, stop = items[num_items, ROW], items[num_items, EDGE], items[num_items, STOP]
        while edge < stop and num_pending < len(pending):
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
                for below in range(edge_first[child], edge_first[child + 1]):
                    if not is_exit[below]:
                        is_exit[below] = 1
                        exits[num_exits] = below
                        num_exits += 1
            items[num_items, ROW], items[num_items, EDGE], items[num_items, STOP] = here, edge, stop
            num_items += 1
            here, edge, stop = after, edge_first[child], edge_first[child + 1]
        if edge < stop:
            items[num_items, ROW], items[num_items, EDGE], items[num_items, STOP] = here, edge, stop
            num_items += 1
    return num_items, num_pending, num_exits


@kernel
def open_edges(edges, words, first, end, edge_node, ids):  # type: ignore[no-untyped-def]  # numba
    """Those of `edges` int32 [n] below which some string is not set in `words`."""
    edges, words, first, end = unowned(edges), unowned(words), unowned(first), unowned(end)
    edge_node, ids = unowned(edge_node), unowned(ids)
    found = np.empty(len(edges), np.int32)
    count = 0
    for edge in edges:
        child = edge_node[edge]
        for i in range(first[child], first[end[child]]):
            if not words[ids[i] >> 5] >> np.uint32(ids[i] & 31) & np.uint32(1):
                found[count] = edge
                count += 1
                break
    return found[:count]
