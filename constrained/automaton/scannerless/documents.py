"""A JSON Schema as a terminal: its positions are the states of its own automaton.

A position also keeps the key that is open, as far as it must differ from other keys of its object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings, tables
from constrained.automaton.automaton import Automaton, State, open_string
from constrained.automaton.closing import Closings
from constrained.automaton.masks import Masks
from constrained.automaton.vocabulary_rows import VocabularyRows
from constrained.tokens.rows import Words, clear_bits

# The last bytes of JSON texts, by the type of the value.
_LAST = {
    "object": b"}",
    "array": b"]",
    "string": b'"',
    "integer": b"0123456789",
    "number": b"0123456789",
    "boolean": b"e",
    "null": b"l",
}


class Documents:
    """The documents of one schema over one vocabulary, as a terminal."""

    def __init__(
        self, automaton: Automaton, masks: Masks, closings: Closings, shared: VocabularyRows, types: Iterable[str]
    ) -> None:
        self.automaton = automaton
        self.masks = masks
        self.closings = closings
        self._shared = shared
        self._last = frozenset(byte for name in types for byte in _LAST[name])
        self._ends: list[tuple[bytes, int]] | None = None

    @property
    def start(self) -> Document:
        """Before the first byte."""
        return Document(self, self.automaton.initial, b"")

    def after(self, state: State, history: bytes, data: bytes) -> Document | None:
        """The position after more bytes; `history` is the open key that led to `state`, with its quote."""
        after, _ = self.automaton.advance(state, data, history)
        if after is None:
            return None
        return Document(self, after, b'"' + open_string(history + data) if self._is_in_key(after) else b"")

    def _is_in_key(self, state: State) -> bool:
        info = self.automaton.locals.info.array
        return any(thread[0] >= strings.FREE and info[thread[4], tables.TAGS] >= 0 for thread in state.threads)

    def inside(self, state: State, history: bytes) -> tuple[Words, NDArray[np.int32]]:
        """The tokens that stay inside the document, or end with it; and the inner nodes of the trie at which it may end."""
        words: Words = self.masks.row(state, history).words.view(np.uint32).copy()
        clear_bits(words, self._shared.eos)
        return words, np.array(sorted(self._exits(state, history)), np.int32)

    def _exits(self, state: State, history: bytes) -> Iterable[int]:
        shortest = len(self.closings.of(state, history))
        first = frozenset(self.masks.next_bytes(state, history))
        for path, node in self._paths():
            if len(path) >= shortest and path[0] in first:
                after, _ = self.automaton.advance(state, path, history)
                if after is not None and after.is_accepting:
                    yield node

    def _paths(self) -> list[tuple[bytes, int]]:
        """The inner nodes of the trie that a last byte leads to, with all bytes on the way."""
        if self._ends is None:
            trie = self._shared.trie
            names = ((node, self._shared.token_bytes[trie.ids[trie.first[node]]]) for node in self._candidates())
            self._ends = [(name[: trie.depth[node]], node) for node, name in names]
        return self._ends

    def _candidates(self) -> list[int]:
        trie = self._shared.trie
        is_inner = trie.edge_first[1:] > trie.edge_first[:-1]
        found: list[int] = np.flatnonzero(is_inner & np.isin(trie.byte, list(self._last)) & (trie.depth > 0)).tolist()
        return found


class Document:
    """One position in a document. Compared by its state and the open key."""

    __slots__ = ("_documents", "_history", "_state")

    def __init__(self, documents: Documents, state: State, history: bytes) -> None:
        self._documents = documents
        self._state = state
        self._history = history

    @property
    def key(self) -> Hashable:
        return (self._state, self._history)

    @property
    def ends(self) -> bool:
        return self._state.is_accepting

    @property
    def shared(self) -> tuple[Any, ...]:
        """What other grammars hold too."""
        return self._documents.automaton.shared

    def step(self, byte: int) -> Document | None:
        """The position after one byte; None where it leads nowhere."""
        return self._documents.after(self._state, self._history, bytes([byte]))

    def next_bytes(self) -> list[int]:
        """The bytes that lead on, ascending."""
        return self._documents.masks.next_bytes(self._state, self._history)

    def inside(self) -> tuple[Words, NDArray[np.int32]]:
        """See `Documents.inside`."""
        return self._documents.inside(self._state, self._history)

    def closing(self) -> bytes:
        return self._documents.closings.of(self._state, self._history)
