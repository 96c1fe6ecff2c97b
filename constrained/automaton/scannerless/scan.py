"""The kernels: a walk of a token trie through terminals, byte by byte.

The table of terminals has a row for each position: column 0 says whether the terminal may end there, column 1 + b where byte
b leads. What is `UNKNOWN` is handed back to Python, which fills it in and goes on from there.
"""

from __future__ import annotations

import numpy as np

from constrained.tokens.jit import kernel, unowned

# Columns of a table, and what stands in it beside rows and the flag.
ENDS, BYTE_0 = 0, 1
COLUMNS = BYTE_0 + 256
UNKNOWN, DEAD = -1, -2

# Columns of an item: the group that it counts for, the row that stands before an edge of the trie, and the edge.
GROUP, ROW, EDGE = range(3)


@kernel
def begin(edges, edge_byte, rows, groups, table, items):  # type: ignore[no-untyped-def]  # numba
    """Write an item for each edge that one of `rows` leads on by; returns how many there are, also where they do not fit."""
    edges, edge_byte, rows, groups = unowned(edges), unowned(edge_byte), unowned(rows), unowned(groups)
    table, items = unowned(table), unowned(items)
    count = 0
    for i in range(len(rows)):
        for edge in edges:
            if table[rows[i], BYTE_0 + edge_byte[edge]] == DEAD:
                continue
            if count < len(items):
                items[count, GROUP], items[count, ROW], items[count, EDGE] = groups[i], rows[i], edge
            count += 1
    return count


@kernel
def walk(items, table, words, pending, exits, num_exits, max_depth, edge_first, edge_byte, edge_node, first, ids):  # type: ignore[no-untyped-def]  # numba
    """Set in `words` the strings of the trie that the items lead through.

    `pending` int32 [edges, 3] takes the items whose step is unknown; `exits` int32 [nodes, 2] the (group, inner node) at
    which a terminal may end, after `num_exits` that are there. Returns (number pending, number of exits); a number
    that is more than fits means that the rest was left out.
    """
    items, table, words, pending, exits = unowned(items), unowned(table), unowned(words), unowned(pending), unowned(exits)
    edge_first, edge_byte, edge_node = unowned(edge_first), unowned(edge_byte), unowned(edge_node)
    first, ids = unowned(first), unowned(ids)
    ahead = np.empty((max_depth + 2, 3), np.int32)  # at each level: the row, the next edge, the last
    num_pending = 0
    for item in range(len(items)):
        group, level = items[item, GROUP], 0
        ahead[0, 0], ahead[0, 1], ahead[0, 2] = items[item, ROW], items[item, EDGE], items[item, EDGE] + 1
        while level >= 0:
            here, edge = ahead[level, 0], ahead[level, 1]
            if edge == ahead[level, 2]:
                level -= 1
                continue
            ahead[level, 1] = edge + 1
            after = table[here, BYTE_0 + edge_byte[edge]]
            if after == DEAD:
                continue
            if after == UNKNOWN or table[after, ENDS] == UNKNOWN:
                if num_pending < len(pending):
                    pending[num_pending, GROUP], pending[num_pending, ROW], pending[num_pending, EDGE] = group, here, edge
                num_pending += 1
                continue
            child = edge_node[edge]
            for i in range(first[child], first[child + 1]):
                words[ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)
            if edge_first[child] == edge_first[child + 1]:
                continue
            if table[after, ENDS] == 1:
                if num_exits < len(exits):
                    exits[num_exits, 0], exits[num_exits, 1] = group, child
                num_exits += 1
            level += 1
            ahead[level, 0], ahead[level, 1], ahead[level, 2] = after, edge_first[child], edge_first[child + 1]
    return num_pending, num_exits
