"""What the vocabulary looks like from inside a number or a literal: computed once for each place, shared by every grammar."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from constrained.automaton import scans
from constrained.automaton.lexemes import PlainLexemes
from constrained.automaton.tables import NO
from constrained.tokens.rows import Bits, RowStore
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
        self._items = np.empty((len(trie.byte), 2), np.int32)
        self._pending = np.empty((len(trie.byte), 2), np.int32)
        self._exits = np.empty(len(trie.byte), np.int32)
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
        trie = self._trie
        inside = np.zeros(self._num_words, np.uint32)
        self._items[0] = 0, lex
        num_items, num_exits = 1, 0
        while num_items:
            num_items, num_exits = scans.scan_value(
                self._items, num_items, self._pending, self._exits, num_exits, lexemes.table.array,
                trie.edge_first, trie.edge_byte, trie.edge_node, trie.first, trie.ids, inside,
            )  # fmt: skip
            self._items[:num_items] = self._pending[:num_items]
            for index in set(self._pending[:num_items, 1].tolist()):
                lexemes.resolve(index)
        may_end = bool(lexemes.table.array[lex, 0] != NO)
        return ValueRow(self._store.bits(inside), may_end, self._exits[:num_exits].tolist())
