"""What the vocabulary looks like from inside a number or a literal."""

from __future__ import annotations

import numpy as np

from constrained.automaton import scans
from constrained.automaton.lexemes import PlainLexemes
from constrained.tokens.rows import Words
from constrained.tokens.trie import Trie


def scan_numbers(trie: Trie, lexemes: PlainLexemes, lex: int, num_words: int, node: int = 0) -> tuple[Words, list[int]]:
    """The tokens below a node that stay inside a number or literal, and the nodes where it may end inside a token."""
    inside, exits = np.zeros(num_words, np.uint32), np.empty(len(trie.byte), np.int32)
    items, pending = (np.empty((len(trie.byte), 2), np.int32) for _ in range(2))
    items[0] = node, lex
    num_items, num_exits = 1, 0
    while num_items:
        num_items, num_exits = scans.scan_value(
            items, num_items, pending, exits, num_exits, lexemes.table.array,
            trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids, inside,
        )  # fmt: skip
        items[:num_items] = pending[:num_items]
        for index in set(pending[:num_items, 1].tolist()):
            lexemes.resolve(index)
    return inside, exits[:num_exits].tolist()
