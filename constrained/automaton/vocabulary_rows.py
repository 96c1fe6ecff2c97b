"""`VocabularyRows`: what all grammars over one vocabulary share of their mask rows."""

from __future__ import annotations

import weakref
from functools import cached_property

import numpy as np

from constrained.automaton.cuts import Cuts
from constrained.automaton.gap_rows import GapRows
from constrained.automaton.language_rows import LanguageRows
from constrained.automaton.lexemes import PlainLexemes
from constrained.automaton.next_items import NextItems
from constrained.automaton.scanned_tokens import ScannedTokens
from constrained.automaton.string_rows import StringRows, count_characters
from constrained.automaton.vocabulary_tables import TokenBytes, VocabularyTables
from constrained.automaton.walking import Onto, Scratches
from constrained.errors import VocabularyError
from constrained.options import Spelling
from constrained.tokens.rows import RowStore
from constrained.tokens.trie import Trie
from constrained.tokens.vocabulary import Vocabulary


class VocabularyRows:
    """The trie of a vocabulary, the rows of its strings, numbers and gaps, and its store of rows.

    Raises `VocabularyError` where no token is one of the bytes that documents need singly.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.num_words = vocabulary.num_words
        self.token_bytes = vocabulary.token_bytes
        self.num_characters = count_characters(vocabulary.token_bytes)
        self.trie = vocabulary.trie
        _require_bytes(self.trie)
        self._strings: dict[Spelling, tuple[StringRows, LanguageRows]] = {}
        self.store = RowStore()
        self.nothing = self.store.bits(np.zeros(vocabulary.num_words, np.uint32))
        self.no_tokens = self.store.intern(np.zeros(vocabulary.num_words, np.uint32))
        self.everything = self.store.everything(vocabulary.num_words)
        self.gaps = GapRows(vocabulary.token_bytes, vocabulary.num_words, self.store)
        self._cuts: Cuts | None = None
        self._tables: dict[Spelling, VocabularyTables] = {}
        self._tokens, self._alone = TokenBytes(vocabulary.token_bytes), Onto(self.nothing, self.everything)
        self.scratches = Scratches(vocabulary.num_words, self.trie.max_depth, self.store.secret)
        self.eos = np.array(sorted(vocabulary.eos_token_ids), np.int32)

    @cached_property
    def next_items(self) -> NextItems:
        """The tokens that end an item and at most begin a string."""
        return NextItems(self.token_bytes)

    @cached_property
    def _scanned(self) -> ScannedTokens:
        return ScannedTokens(self.trie, self.token_bytes, self.num_words)

    def cuts(self, lexemes: PlainLexemes) -> Cuts:
        """The shortcuts of walks behind a gap, among the numbers of `lexemes`."""
        if self._cuts is None or self._cuts.lexemes is not lexemes:
            self._cuts = Cuts(self.gaps.stripped, self.gaps.quote, self.num_words, lexemes)
        return self._cuts

    def tables(self, lexemes: PlainLexemes, spelling: Spelling) -> VocabularyTables:
        """What kernels know of the vocabulary, for new grammars over `lexemes`."""
        found = self._tables.get(spelling)
        if found is None or found.lexemes is not lexemes or found.is_full:
            parts = (self.trie, self._tokens, self.eos, self.gaps, self.cuts(lexemes), self.strings(spelling)[0])
            found = self._tables[spelling] = VocabularyTables(*parts, self._alone, lexemes, self.store)
        return found

    def strings(self, spelling: Spelling) -> tuple[StringRows, LanguageRows]:
        """The vocabulary seen from inside free strings, and from inside strings of languages."""
        found = self._strings.get(spelling)
        if found is None:
            free = StringRows(self.trie, self.token_bytes, self.num_words, self.store, permissive=spelling == "permissive")
            found = self._strings.setdefault(spelling, (free, LanguageRows(self._scanned, self.num_words, free, self.store)))
        return found


def _require_bytes(trie: Trie) -> None:
    """All printable ASCII must be there byte by byte, and all continuation bytes where a token ends inside a character."""
    single = set(trie.byte[(trie.depth == 1) & (trie.first[1:] > trie.first[:-1])].tolist())
    needed = [*range(0x20, 0x7F), *(range(0x80, 0xC0) if any(byte >= 0x80 for byte in single) else ())]
    missing = [byte for byte in needed if byte not in single]
    if missing:
        raise VocabularyError(f"no token is the single byte 0x{missing[0]:02x}, which documents may need")


_shared: weakref.WeakKeyDictionary[Vocabulary, VocabularyRows] = weakref.WeakKeyDictionary()
# The vocabulary that was asked for last, with its rows: to find them in the dictionary touches more.
_last: list[tuple[weakref.ref[Vocabulary], weakref.ref[VocabularyRows]]] = []


def rows_of(vocabulary: Vocabulary) -> VocabularyRows:
    """The shared rows of a vocabulary, made when first asked for."""
    for asked, rows in _last:
        if asked() is vocabulary and (known := rows()) is not None:
            return known
    found = _shared.get(vocabulary)
    if found is None:
        found = _shared.setdefault(vocabulary, VocabularyRows(vocabulary))
    _last[:] = [(weakref.ref(vocabulary), weakref.ref(found))]
    return found
