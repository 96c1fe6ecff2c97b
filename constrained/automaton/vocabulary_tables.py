"""`VocabularyTables`: what kernels know of a vocabulary and of what lies outside strings, shared by all its grammars.

What a gap, a number or a literal is to a mask row is found when a grammar first comes to such a place.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from constrained.automaton import strings
from constrained.automaton.cuts import Cuts
from constrained.automaton.gap_rows import GapRows
from constrained.automaton.lexemes import NOTHING, PlainLexemes
from constrained.automaton.scans import before_quotes
from constrained.automaton.string_rows import StringRows
from constrained.automaton.tables import (
    ENDING_KIND,
    GAP_COLUMNS,
    GAP_KIND,
    K_KIND,
    K_NUMBER,
    KIND_COLUMNS,
    MAX_NUMBERS,
    NO,
    NUM_V_SLOTS,
    UNKNOWN_KIND,
    V_ALONE,
    V_BITS,
    V_CUTS,
    V_EOS,
    V_EXITS,
    V_FREE,
    V_GAPS,
    V_KINDS,
    V_LONGEST,
    V_NOTHING,
    V_NUM_EOS,
    V_NUM_KINDS,
    V_QUOTED,
    V_STARTS,
    V_STRIPPED,
    V_SUFFIXES,
    V_TOKENS,
    V_TRIE,
    VALUE_KIND,
    WALKED_KIND,
    Arena,
    Table,
)
from constrained.automaton.value_rows import scan_numbers
from constrained.automaton.walking import Onto
from constrained.tokens.rows import Bits, RowStore
from constrained.tokens.trie import Trie

# So many rows of gaps and bits of values are kept; then new grammars begin with new tables.
MAX_GAPS, MAX_BITS = 1024, 1 << 20


class TokenBytes:
    """The bytes of all tokens, one after the other, where kernels read them."""

    def __init__(self, token_bytes: list[bytes]) -> None:
        self.flat = np.frombuffer(b"".join(token_bytes) or b"\0", np.uint8)
        self.starts = np.array([0, *accumulate(map(len, token_bytes))], np.int32)


class VocabularyTables:
    """The tables of one vocabulary and one spelling, over the lexemes of a number of grammars; safe between threads.

    `at` is where kernels find them; `alone` takes the bits of a walk of all tokens.
    """

    def __init__(
        self,
        trie: Trie,
        tokens: TokenBytes,
        eos: np.ndarray,
        gaps: GapRows,
        cuts: Cuts,
        free: StringRows,
        alone: Onto,
        lexemes: PlainLexemes,
        store: RowStore,
    ) -> None:
        self.lexemes, self.alone, self._trie, self._gaps = lexemes, alone, trie, gaps
        self._num_words = len(alone.base.words)
        place, onto = free.place(strings.FREE, 0), free.row(strings.FREE, 0, 0, free.max_len)
        # What the slots of the arena name has to stay.
        quoted = before_quotes(trie)
        self._kept = (trie, tokens, eos, gaps, cuts, place, onto, quoted)
        self._ontos: list[Onto] = []
        self.bits: dict[int, Bits] = {alone.base.at: alone.base, onto.base.at: onto.base}
        self._lock = threading.Lock()
        self._arena = Arena(NUM_V_SLOTS)
        self.at = self._arena.address
        self._kinds, self._places = Table(KIND_COLUMNS, 1024), Table(2 * GAP_COLUMNS, 1024)
        self._exits, self._bits = Table(1, 1024), Table(2, 4096)
        self._kinds.enter(self._arena, V_KINDS, V_NUM_KINDS)
        for table, slot in ((self._places, V_GAPS), (self._exits, V_EXITS), (self._bits, V_BITS)):
            table.enter(self._arena, slot)
        for array, slot in ((tokens.flat, V_TOKENS), (tokens.starts, V_STARTS), (eos, V_EOS), (quoted, V_QUOTED)):
            self._arena.put(slot, array)
        for number, slot in (
            *((trie.at, V_TRIE), (alone.at, V_ALONE), (gaps.stripped.at, V_STRIPPED)),
            *((cuts.at, V_CUTS), (cuts.without_text, V_CUTS + 1)),
            *((cuts.without_numbers, V_CUTS + 2), (cuts.without_both, V_CUTS + 3)),
            *((lexemes.index(NOTHING), V_NOTHING), (len(eos), V_NUM_EOS)),
            *((onto.at, V_FREE), (place.suffixes.at, V_SUFFIXES), (free.max_len, V_LONGEST)),
        ):
            self._arena.set(slot, number)
        self._cuts, self._store, self._numbers = cuts, store, 0
        self.take_numbers()

    @property
    def is_full(self) -> bool:
        """Whether new grammars should begin with other tables."""
        return len(self._ontos) > MAX_GAPS or self._bits.size > MAX_BITS

    def learn(self, lex: int) -> None:
        """Find out what a lexeme position outside strings is to mask rows."""
        with self._lock:
            self._have(lex)
            if self._kinds.array[lex, K_KIND] != UNKNOWN_KIND:
                return
            key = self.lexemes.key(lex)
            if key[0] in ("space", "any"):
                ontos = [self._gaps.row(key, before_text=before_text) for before_text in (False, True)]
                self._places.array[lex] = 0
                for column, onto in enumerate(ontos):
                    self._put(lex, column, onto)
                self._set(lex, GAP_KIND, (0, 0, 0, 0))
            elif key[0] in ("number", "literal"):
                self._learn_value(lex)
            else:
                self._set(lex, WALKED_KIND, (0, 0, 0, 0))

    def learn_number(self, lex: int, column: int) -> None:
        """Find out what a gap is to mask rows where one of the common numbers may follow it: its bits go into the base."""
        with self._lock:
            gap = self._gaps.row(self.lexemes.key(lex), before_text=bool(column & 1))
            number, under = self._cuts.number_words(self._cuts.numbers[column // 2 - 1]), gap.under.words.view(np.uint32)
            self._put(lex, column, Onto(self._store.bits(gap.base.words.view(np.uint32) | (number & under)), gap.under))

    def take_numbers(self) -> None:
        """Count those numbers as common for which there are shortcuts by now."""
        with self._lock:
            for number, lex in enumerate(self._cuts.numbers[self._numbers : MAX_NUMBERS], self._numbers):
                self._have(lex)
                self._kinds.array[lex, K_NUMBER] = number
                self._numbers = number + 1

    def _have(self, lex: int) -> None:
        for table in (self._kinds, self._places):
            table.reserve(max(lex + 1 - table.size, 0))
            table.size = max(table.size, lex + 1)

    def _put(self, lex: int, column: int, onto: Onto) -> None:
        self._ontos.append(onto)
        self.bits[onto.base.at] = onto.base
        self._places.array[lex].view(np.int64)[column] = onto.at

    def _learn_value(self, lex: int) -> None:
        words, exits = scan_numbers(self._trie, self.lexemes, lex, self._num_words)
        first_exit, first_bits = self._exits.size, self._bits.size
        self._exits.extend(exits)
        places = np.flatnonzero(words)
        self._bits.extend(np.stack([places.astype(np.int32), words[places].view(np.int32)], axis=1).ravel().tolist())
        may_end = self.lexemes.table.array[lex, 0] != NO
        self._set(lex, ENDING_KIND if may_end else VALUE_KIND, (first_exit, self._exits.size, first_bits, self._bits.size))

    def _set(self, lex: int, kind: int, spans: Iterable[int]) -> None:
        row = self._kinds.array[lex]
        row[K_KIND + 1 : K_NUMBER] = tuple(spans)
        row[K_KIND] = kind  # the last: kernels of other threads look at it first
