"""`ScannedTokens`: a vocabulary as scans from inside strings of languages see it; one for all spellings."""

from __future__ import annotations

import re

from constrained.automaton import language_scans
from constrained.automaton.characters import TextTokens
from constrained.automaton.string_rows import flattened
from constrained.tokens.trie import Trie


class ScannedTokens:
    """The trie of all tokens, and what occurs below each node; the tokens of text by what they hold.

    Tokens with a quote or a backslash are in the trie `ends`, up to the quote that ends a string.
    """

    def __init__(self, trie: Trie, token_bytes: list[bytes], num_words: int) -> None:
        self.trie = trie
        self.below = language_scans.bytes_below(trie.byte, trie.end, trie.depth, trie.max_depth)
        self.flat, self.starts = flattened(token_bytes)
        self.text = TextTokens(self.flat, self.starts, num_words)
        names = [name for name, text in enumerate(token_bytes) if b'"' in text or b"\\" in text]
        self.ends = Trie.build([_until_quote(token_bytes[name]) for name in names], names)


def _until_quote(text: bytes) -> bytes:
    found = _CONTENT.match(text)
    return text if found is None else found[0]


_CONTENT = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
