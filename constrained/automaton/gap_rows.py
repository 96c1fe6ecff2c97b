"""What the vocabulary looks like from inside a gap: tokens of whitespace alone, and tokens that begin with it.

Behind their whitespace the latter are as the tokens without any: one trie of what is left of each token serves every gap, and
a gap takes out those whose whitespace it does not hold.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from constrained.automaton import scans, strings
from constrained.automaton.lexemes import PlainKey, left
from constrained.automaton.walking import Onto
from constrained.tokens.rows import Bits, RowStore, Words, set_bits
from constrained.tokens.trie import Trie

WHITESPACE = b" \t\n\r"
MAX_ROWS = 1024


class GapRows:
    """Rows of the places in gaps over one vocabulary; bounded and safe between threads.

    `stripped` is the trie of all tokens without the whitespace that they begin with; `quote` its node behind an opening quote,
    -1 where there is none.
    """

    def __init__(self, token_bytes: list[bytes], num_words: int, store: RowStore) -> None:
        self._num_words, self._store = num_words, store
        self._rows: OrderedDict[PlainKey, Onto] = OrderedDict()
        self._lock = threading.RLock()
        rests = [text.lstrip(WHITESPACE) for text in token_bytes]
        self.stripped = Trie.build(rests)
        self.quote = self.stripped.child(strings.QUOTE)
        self._text = self._scan_text()
        gaps = [text[: len(text) - len(rest)] for text, rest in zip(token_bytes, rests, strict=True)]
        # Per token, of the whitespace that it begins with: how long it is, its newlines and blanks, and how it holds returns.
        self._len = np.fromiter(map(len, gaps), np.int32, len(gaps))
        self._blanks = np.fromiter((gap.count(b" ") + gap.count(b"\t") for gap in gaps), np.int32, len(gaps))
        pairs = [gap.replace(b"\r\n", b"\n") for gap in gaps]
        self._half = np.fromiter((gap.endswith(b"\r") for gap in pairs), np.bool_, len(gaps))
        self._newlines = np.fromiter((gap.count(b"\n") for gap in pairs), np.int32, len(gaps)) + self._half
        self._astray = np.fromiter((b"\r" in gap[:-1] for gap in pairs), np.bool_, len(gaps))
        self._alone = np.fromiter((bool(gap) and not rest for gap, rest in zip(gaps, rests, strict=True)), np.bool_, len(gaps))

    def row(self, gap: PlainKey, *, before_text: bool = False) -> Onto:
        """The tokens of whitespace that the gap ("space" or "any") holds, and those that go on behind such whitespace.

        `before_text`: also those that go on with a quote and text.
        """
        with self._lock:
            found = self._rows.get((*gap, before_text))
            if found is None:
                found = self._rows[*gap, before_text] = self._make(gap, before_text=before_text)
                if len(self._rows) > MAX_ROWS:
                    self._rows.popitem(last=False)
            return found

    def _make(self, gap: PlainKey, *, before_text: bool) -> Onto:
        if gap[0] == "any":
            held = ended = self._len <= left(gap, 1)
        else:
            held = (self._newlines <= left(gap, 1)) & (self._blanks <= left(gap, 2)) & ~self._astray
            ended = held & ~self._half
        alone, under = self._bits(held & self._alone), self._bits(ended & ~self._alone)
        if before_text:
            words = alone.words.view(np.uint32) | (self._text & under.words.view(np.uint32))
            return Onto(self._store.bits(words), under)
        return Onto(alone, under)

    def _scan_text(self) -> Words:
        """The tokens that are an opening quote and text behind their whitespace."""
        words, trie = np.zeros(self._num_words, np.uint32), self.stripped
        if self.quote >= 0:
            exits = np.empty((int(trie.end[self.quote]) - self.quote, 2), np.int32)
            place = (self.quote, trie.byte, trie.end, trie.depth, trie.max_depth, trie.first, trie.ids)
            scans.scan_text(*place, words, exits)
        return words

    def _bits(self, tokens: np.ndarray) -> Bits:
        words = self._store.zeros(self._num_words)
        set_bits(words, np.flatnonzero(tokens).astype(np.int32))
        return self._store.bits(words)
