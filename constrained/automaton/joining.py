"""What a walk found, made into rows: the words that differ from a row that is known already, and the digest of the new one.

Of most rows nearly all words are those of the inside of a string, or none: a row is known by its digest before it is written
out, and most rows turn out to be there already. Kernels of a scratch (`walking.Scratch`); the differing words, *entries*, are
left in its arrays. A row is given by the address of its words.
"""

from __future__ import annotations

import numpy as np

from constrained.automaton import tables
from constrained.automaton.name_rows import replace_block
from constrained.automaton.tables import ADDED, BLOCK_SHIFT
from constrained.automaton.trie_walk import walk
from constrained.automaton.walk_items import FINISHED
from constrained.tokens.jit import int32_array, int32_table, int64_array, kernel, uint8_array
from constrained.tokens.rows import hashed


@kernel
def pour(scratch, row, mark):  # type: ignore[no-untyped-def]  # numba
    """Set the bits of a row in the words of a scratch, which are `ADDED` to those of another row, or stand in their place."""
    here, added = int64_array(scratch), int32_array(row)
    words, touched = int32_array(here[tables.WORDS]), uint8_array(here[tables.TOUCHED])
    num_words = here[tables.NUM_WORDS]
    for at in range(num_words):
        words[at] |= added[at]
    for block in range((num_words >> BLOCK_SHIFT) + 1):
        touched[block] |= mark


@kernel
def change(scratch, row, tokens, are_in):  # type: ignore[no-untyped-def]  # numba
    """Have the words of a scratch be those of a row with `tokens` int32 [n] in, or out."""
    here, before = int64_array(scratch), int32_array(row)
    words, touched = int32_array(here[tables.WORDS]), uint8_array(here[tables.TOUCHED])
    for token in tokens:
        replace_block(token >> (5 + BLOCK_SHIFT), words, touched, before, before, here[tables.NUM_WORDS])
        bit = np.int32(1) << np.int32(token & 31)
        if are_in:
            words[token >> 5] |= bit
        else:
            words[token >> 5] &= ~bit


@kernel
def _replaced(at, before, word, secret, first, second):  # type: ignore[no-untyped-def]  # numba
    one, two = hashed(at, before, secret)
    first -= one
    second -= two
    one, two = hashed(at, word, secret)
    return first + one, second + two


@kernel
def gather(scratch, base, under, one, two):  # type: ignore[no-untyped-def]  # numba
    """Take the words of a scratch: those added to the row `base`, as far as bits are set `under` another, or those in its place
    where a block is `REPLACED`.

    `one` and `two` are the digest of `base`. Returns the number of entries and the digest of what the words have become.
    """
    here, before, mask = int64_array(scratch), int32_array(base), int32_array(under)
    words, touched = int32_array(here[tables.WORDS]), uint8_array(here[tables.TOUCHED])
    entries = int32_table(here[tables.ENTRIES], 2)
    num_words, secret = here[tables.NUM_WORDS], here[tables.SECRET]
    first, second = np.uint64(one), np.uint64(two)
    count = 0
    for block in range((num_words >> BLOCK_SHIFT) + 1):
        if touched[block] == 0:
            continue
        is_added = touched[block] == ADDED
        touched[block] = 0
        begin = block << BLOCK_SHIFT
        for at in range(begin, min(begin + (1 << BLOCK_SHIFT), num_words)):
            word = (words[at] & mask[at]) | before[at] if is_added else words[at]
            words[at] = 0
            if word != before[at]:
                entries[count, 0], entries[count, 1] = at, word
                count += 1
                first, second = _replaced(at, before[at], word, secret, first, second)
    return count, np.int64(first), np.int64(second)


@kernel
def walk_row(  # type: ignore[no-untyped-def]  # numba
    machine, scratch, trie, cuts, waiting, num_items, num_cells, own_cells, own,
    node, lex, esc, need, room, local, cell, num_closed, base, under, one, two,
):  # fmt: skip
    """`trie_walk.walk`, and `gather` when it is at its end: what both return."""
    status, num_pending, num_keys, num_cells, left = walk(
        machine, scratch, trie, cuts, waiting, num_items, num_cells, own_cells, own,
        node, lex, esc, need, room, local, cell, num_closed, 0,
    )  # fmt: skip
    if status != FINISHED or num_pending > 0 or base == 0:
        return status, num_pending, num_keys, num_cells, left, 0, one, two
    count, one, two = gather(scratch, base, under, one, two)
    return status, num_pending, num_keys, num_cells, left, count, one, two
