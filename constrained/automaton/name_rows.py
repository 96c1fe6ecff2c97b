"""Keys that may be one of some names or any other: the tokens that end a name, put right in the row of a free key."""

from __future__ import annotations

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.branches import branches
from constrained.automaton.stepping import NEW_KEY, place_behind, tables_of
from constrained.automaton.strings import ALIVE, FREE_TAG, step_string
from constrained.automaton.tables import BLOCK_SHIFT
from constrained.automaton.walk_items import (
    I_ESC,
    I_LEX,
    ITEM_COLUMNS,
    LIST,
    NEXT,
    NODE,
    NOT_LISTED,
    STOP,
    WHICH,
    WHY,
    store,
    trie_of,
)
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel, uint8_array


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
    end, _, first, ids, edge_first, edge_byte, edge_node = trie_of(trie)
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
            kind, stack[level, NEXT], stack[level, STOP] = branches(
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
                store(items, count, locals_[behind, tables.ENTRY], 0, 0, 0, behind, cell, -1, 0)
                items[count, NODE] = child
                count += 1
        elif result == ALIVE and after >= strings.TRIE:
            level += 1
            stack[level, NODE], stack[level, I_LEX], stack[level, I_ESC], stack[level, NEXT] = child, after, esc2, -1
    return count, num_missing
