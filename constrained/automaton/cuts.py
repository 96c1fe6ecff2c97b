"""Shortcuts of a walk: what a trie holds below a node that is read inside a string or a number, scanned once for all grammars.

Most of a vocabulary is text and digits. A walk that comes to the opening quote of a free string, or into a number, takes the
bits of whatever stays inside from here, and goes on only where tokens lead out again. Free strings are known from the start;
numbers are scanned once walks have asked for them a few times.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import scans, strings
from constrained.automaton.lexemes import PlainLexemes
from constrained.automaton.tables import (
    CUT_BITS,
    CUT_COLUMNS,
    CUT_EXITS,
    CUT_INDEX,
    CUT_PATHS,
    CUT_SPANS,
    EXIT_COLUMNS,
    INSIDE,
    NUM_CUT_SLOTS,
    Arena,
    Table,
)
from constrained.automaton.trie_walk import LARGE
from constrained.automaton.value_rows import scan_numbers
from constrained.tokens.rows import Words
from constrained.tokens.trie import Trie

ASKED_BEFORE = 4
MAX_ASKED = 4096
MAX_CUTS = 1024


class Cuts:
    """The shortcuts below the nodes of one trie, by lexeme position; safe between threads.

    `at` is where kernels find them; at `without_text` that of the text below the node `quote` sets no bits.
    """

    def __init__(self, trie: Trie, quote: int, num_words: int, lexemes: PlainLexemes) -> None:
        self._trie, self._num_words, self.lexemes = trie, num_words, lexemes
        self._quote = quote
        self._arenas = (Arena(NUM_CUT_SLOTS), Arena(NUM_CUT_SLOTS))
        self._index, self._spans, self._bare_spans = Table(1, len(trie.byte)), Table(CUT_COLUMNS), Table(CUT_COLUMNS)
        self._bits, self._exits, self._paths = Table(2, 1024), Table(EXIT_COLUMNS, 256), Table(1, 1024)
        self._asked: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        for arena, spans in zip(self._arenas, (self._spans, self._bare_spans), strict=True):
            spans.enter(arena, CUT_SPANS)
            self._index.enter(arena, CUT_INDEX)
            self._bits.enter(arena, CUT_BITS)
            self._exits.enter(arena, CUT_EXITS)
            self._paths.enter(arena, CUT_PATHS)
        self.at, self.without_text = (arena.address for arena in self._arenas)
        for node in np.flatnonzero((trie.byte == strings.QUOTE) & (trie.end - np.arange(len(trie.end)) > LARGE)).tolist():
            self._add_text(node)

    def ask(self, wanted: NDArray[np.int32]) -> None:
        """Walks came to these (node, lexeme position) and found no shortcut."""
        with self._lock:
            for node, lex in wanted.tolist():
                asked = self._asked[node, lex] = self._asked.get((node, lex), 0) + 1
                if asked == ASKED_BEFORE and self.lexemes.key(lex)[0] == "number" and self._spans.size < MAX_CUTS:
                    words, exits = scan_numbers(self._trie, self.lexemes, lex, self._num_words, node)
                    self._add(node, lex, words, [(exit_, INSIDE) for exit_ in exits])
            if len(self._asked) > MAX_ASKED:
                self._asked.clear()

    def _add_text(self, node: int) -> None:
        trie = self._trie
        words = np.zeros(self._num_words, np.uint32)
        exits = np.empty((int(trie.end[node]) - node, 2), np.int32)
        count, longest = scans.scan_text(
            node, trie.byte, trie.end, trie.depth, trie.max_depth, trie.first, trie.ids, words, exits
        )
        self._add(node, strings.FREE, words, exits[:count].tolist(), longest)

    def _add(self, node: int, lex: int, words: Words, exits: list[list[int]] | list[tuple[int, int]], longest: int = 0) -> None:
        places = np.flatnonzero(words)
        first_bits, first_exit = self._bits.size, self._exits.size
        self._bits.extend(
            [number for row in zip(places.tolist(), words[places].view(np.int32).tolist(), strict=True) for number in row]
        )
        for exit_, kind in exits:
            path = self._trie.path(exit_, node)[:-1] if kind != INSIDE else b""
            self._exits.add((exit_, kind, self._paths.size, self._paths.size + len(path)))
            self._paths.extend(list(path))
        before, bits = self._index.cells[node], (first_bits, self._bits.size)
        rest = (first_exit, self._exits.size, longest)
        self._bare_spans.add((lex, before, *((0, 0) if node == self._quote and lex == strings.FREE else bits), *rest))
        self._index.cells[node] = self._spans.add((lex, before, *bits, *rest))
