"""`ScannedTokens`: a vocabulary as scans from inside strings of languages see it; one for all spellings."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import language_scans
from constrained.automaton.characters import TextTokens
from constrained.automaton.string_rows import flattened
from constrained.tokens.trie import Trie


class ScannedTokens:
    """The trie of all tokens, and its nodes with what occurs below each, side by side with their siblings; the tokens of text
    by what they hold.

    Tokens with a quote or a backslash are in the trie `ends`, up to the quote that ends a string.
    """

    def __init__(self, trie: Trie, token_bytes: list[bytes], num_words: int) -> None:
        self.trie, self.nodes = trie, _nodes(trie)
        self.flat, self.starts = flattened(token_bytes)
        self.text = TextTokens(self.flat, self.starts, num_words)
        names = [name for name, text in enumerate(token_bytes) if b'"' in text or b"\\" in text]
        self.ends = Trie.build([_until_quote(token_bytes[name]) for name in names], names)


def _nodes(trie: Trie) -> NDArray[np.int32]:
    """What scans ask of a node in one place, int32 [num_edges, NODE_COLUMNS]."""
    node, found = trie.edge_node, np.empty((len(trie.edge_node), language_scans.NODE_COLUMNS), np.int32)
    below = language_scans.bytes_below(trie.byte, trie.end, trie.depth, trie.max_depth)[node]
    found[:, language_scans.N_BYTE] = trie.edge_byte
    found[:, language_scans.N_EDGES], found[:, language_scans.N_EDGES_STOP] = trie.edge_first[node], trie.edge_first[node + 1]
    found[:, language_scans.N_FIRST], found[:, language_scans.N_OWN] = trie.first[node], trie.first[node + 1]
    found[:, language_scans.N_STOP], found[:, language_scans.N_DEPTH] = trie.first[trie.end[node]], trie.depth[node]
    found[:, language_scans.N_HEIGHT] = below[:, language_scans.HEIGHT]
    found[:, language_scans.N_BELOW :] = below[:, : language_scans.HEIGHT]
    return found


def _until_quote(text: bytes) -> bytes:
    found = _CONTENT.match(text)
    return text if found is None else found[0]


_CONTENT = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)
