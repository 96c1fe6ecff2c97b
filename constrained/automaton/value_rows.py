"""What the vocabulary looks like from inside a number or a literal: computed once for each place, shared by every grammar."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from constrained.automaton import scans
from constrained.automaton.lexemes import PlainLexemes
from constrained.automaton.tables import NO
from constrained.tokens.rows import Bits, RowStore, Words
from constrained.tokens.trie import Trie

MAX_ROWS = 2048


@dataclass(frozen=True, slots=True, eq=False)
class ValueRow:
    """Tokens that stay inside a number or literal; whether it may end before any; the nodes where it ends inside a token."""

    inside: Bits
    may_end: bool
    exits: list[int]


class ValueRows:
    """Rows of the places in numbers and literals over one vocabulary; bounded and safe between threads."""

    def __init__(self, trie: Trie, num_words: int, store: RowStore) -> None:
        self._trie, self._store = trie, store
        self._num_words = num_words
        self._rows: OrderedDict[tuple[PlainLexemes, int], ValueRow] = OrderedDict()
        self._lock = threading.RLock()

    def row(self, lexemes: PlainLexemes, lex: int) -> ValueRow:
        """The tokens from a place of a number or literal."""
        with self._lock:
            found = self._rows.get((lexemes, lex))
            if found is None:
                found = self._rows[lexemes, lex] = self._scan(lexemes, lex)
                if len(self._rows) > MAX_ROWS:
                    self._rows.popitem(last=False)
            return found

    def _scan(self, lexemes: PlainLexemes, lex: int) -> ValueRow:
        inside, exits = scan_numbers(self._trie, lexemes, lex, self._num_words)
        return ValueRow(self._store.bits(inside), bool(lexemes.table.array[lex, 0] != NO), exits)


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
