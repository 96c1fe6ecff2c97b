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
from constrained.automaton.value_rows import scan_numbers
from constrained.automaton.walk_items import LARGE
from constrained.tokens.rows import Words
from constrained.tokens.trie import Trie

ASKED_BEFORE = 4
MAX_ASKED = 4096
MAX_CUTS = 1024


class Cuts:
    """The shortcuts below the nodes of one trie, by lexeme position; safe between threads.

    `at` is where kernels find them; at `without_text` that of the text below the node `quote` sets no bits, at
    `without_numbers` those below the nodes of the digits 1 to 9 set none, at `without_both` none of these. `numbers` are the
    lexeme positions behind a first digit for which there are shortcuts below each of the latter nodes.
    """

    def __init__(self, trie: Trie, quote: int, num_words: int, lexemes: PlainLexemes) -> None:
        self._trie, self._num_words, self.lexemes = trie, num_words, lexemes
        self._quote = quote
        self.numbers: list[int] = []
        self._digits = [node for byte in b"123456789" if (node := trie.child(byte)) >= 0 and trie.end[node] - node > LARGE]
        self._scanned: dict[tuple[int, int], Words] = {}
        self._arenas = [Arena(NUM_CUT_SLOTS) for _ in range(4)]
        self._index, self._spans = Table(1, len(trie.byte)), [Table(CUT_COLUMNS) for _ in self._arenas]
        self._bits, self._exits, self._paths = Table(2, 1024), Table(EXIT_COLUMNS, 256), Table(1, 1024)
        self._asked: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        for arena, spans in zip(self._arenas, self._spans, strict=True):
            spans.enter(arena, CUT_SPANS)
            self._index.enter(arena, CUT_INDEX)
            self._bits.enter(arena, CUT_BITS)
            self._exits.enter(arena, CUT_EXITS)
            self._paths.enter(arena, CUT_PATHS)
        self.at, self.without_text, self.without_numbers, self.without_both = (arena.address for arena in self._arenas)
        for node in np.flatnonzero((trie.byte == strings.QUOTE) & (trie.end - np.arange(len(trie.end)) > LARGE)).tolist():
            self._add_text(node)

    def ask(self, wanted: NDArray[np.int32]) -> None:
        """Walks came to these (node, lexeme position) and found no shortcut."""
        with self._lock:
            for node, lex in wanted.tolist():
                asked = self._asked[node, lex] = self._asked.get((node, lex), 0) + 1
                if asked == ASKED_BEFORE and self.lexemes.key(lex)[0] == "number" and self._spans[0].size < MAX_CUTS:
                    words, exits = scan_numbers(self._trie, self.lexemes, lex, self._num_words, node)
                    self._add(node, lex, words, [(exit_, INSIDE) for exit_ in exits])
                    if node in self._digits:
                        self._scanned[node, lex] = words
                        if all((digit, lex) in self._scanned for digit in self._digits):
                            self.numbers.append(lex)
            if len(self._asked) > MAX_ASKED:
                self._asked.clear()

    def number_words(self, lex: int) -> Words:
        """The tokens that stay inside a number behind its first digit (1 to 9), by one of the lexeme positions `numbers`."""
        words = np.zeros(self._num_words, np.uint32)
        for digit in self._digits:
            words |= self._scanned[digit, lex]
        return words

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
        is_text, is_number = node == self._quote and lex == strings.FREE, node in self._digits
        for spans, is_bare in zip(self._spans, (False, is_text, is_number, is_text or is_number), strict=True):
            place = spans.add((lex, before, *((0, 0) if is_bare else bits), *rest))
        self._index.cells[node] = place
