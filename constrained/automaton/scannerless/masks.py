"""Mask rows of a grammar over raw text, put together from parts.

A token is a stretch inside a terminal, then perhaps whole terminals, then perhaps the beginning of one. Where it leaves
the terminal that it began in is a set of edges of the trie; what a place does with the rest of the tokens below such edges
is a part; where a goal ends, the tokens come out of it and go on at the place that the stack returns to. What many
tokens lie below is taken terminal by terminal, as many places share their terminals; what few lie below is walked by
states, in which all terminals go along at once.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

import numpy as np

from constrained.automaton.automaton import State
from constrained.automaton.scannerless.documents import Document
from constrained.automaton.scannerless.machine import BETWEEN, Machine, TextState
from constrained.automaton.scannerless.parts import Edges, Part, Parts
from constrained.automaton.scannerless.stacks import BOTTOM
from constrained.automaton.vocabulary_rows import VocabularyRows, rows_of
from constrained.grammar.context_free.corners import NOWHERE
from constrained.tokens.rows import MaskRow, Words, set_bits
from constrained.tokens.vocabulary import Vocabulary

MAX_PARTS = 4096
FEW = 300  # tokens below edges

_parts: weakref.WeakKeyDictionary[Vocabulary, Parts] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def parts_of(vocabulary: Vocabulary) -> Parts:
    """The shared parts of a vocabulary, made when first asked for."""
    with _lock:
        found = _parts.get(vocabulary)
        if found is None:
            found = _parts[vocabulary] = Parts(vocabulary.trie, vocabulary.num_words)
        return found


class TextMasks:
    """Mask rows of one machine over one vocabulary."""

    def __init__(self, machine: Machine, vocabulary: Vocabulary) -> None:
        self._machine = machine
        self._shared: VocabularyRows = rows_of(vocabulary)
        self._parts = parts_of(vocabulary)
        machine.borrowed.append(self._parts)
        self._documents: OrderedDict[tuple[int, int], Part] = OrderedDict()
        self._blank: OrderedDict[int, Part] = OrderedDict()
        self._made: OrderedDict[tuple[int, int], Part] = OrderedDict()

    tables_at = 0

    def fill(self, _state: State, _bitmask: np.ndarray, _at: int) -> bool:
        """Nothing is written faster than `row` says."""
        return False

    def row(self, state: State, _history: bytes | bytearray = b"") -> MaskRow:
        """The mask row of `state`; EOS bits are set where the text may end."""
        if state.row is None:
            with self._machine.lock:
                state.row = self._build(state)
        return state.row

    def next_bytes(self, state: State, _history: bytes | bytearray = b"") -> list[int]:
        """The bytes that may come next, ascending."""
        return self._machine.next_bytes(state)

    def _build(self, state: State) -> MaskRow:
        assert isinstance(state, TextState)
        words = np.zeros(self._shared.num_words, np.uint32)
        done: set[tuple[int, int, int]] = set()
        for position, place, stacks in state.threads:  # type: ignore[misc]
            if position == BETWEEN:
                self._put(words, self._parts.root, place, stacks, done)
            else:
                part = self._inside(self._parts.root, position)
                part.put(words)
                self._put(words, part.exits, place, stacks, done)
        if state.is_accepting:
            set_bits(words, self._shared.eos)
        return self._shared.store.intern(words)

    def _put(self, words: Words, start: Edges, place: int, stacks: int, done: set[tuple[int, int, int]]) -> None:
        """Set the bits of the tokens below `start` that go on from a place over some stacks."""
        pending = [(start, place, stacks)]
        while pending:
            start, place, stacks = pending.pop()
            if not start or (start.uid, place, stacks) in done:
                continue
            done.add((start.uid, place, stacks))
            part = self._after(start, place)
            part.put(words)
            pending += [(part.exits, returns, below) for returns, below in self._machine.stacks.frames(stacks)]

    # -- parts

    def _inside(self, start: Edges, position: int) -> Part:
        """The tokens below `start` that stay inside a terminal, and where it may end in them."""
        found = self._machine.lexemes.positions[position]
        if not isinstance(found, Document):
            return self._parts.kept((start.uid, found.key), lambda: self._walk_inside(start, position))
        part = self._documents.get((start.uid, position))
        if part is None:
            part = self._documents[start.uid, position] = self._of_document(start, position, found)
            if len(self._documents) > MAX_PARTS:
                self._documents.popitem(last=False)
        return part

    def _of_document(self, start: Edges, position: int, document: Document) -> Part:
        if start is not self._parts.root:
            return self._walk_inside(start, position)
        words, nodes = document.inside()
        return self._parts.part(words, self._parts.below(nodes))

    def _walk_inside(self, start: Edges, position: int) -> Part:
        lexemes = self._machine.lexemes
        lexemes.resolve(position)
        return self._parts.walk(start, position, lexemes.table, lexemes.fill)

    def _after(self, start: Edges, place: int) -> Part:
        """The tokens below `start` from a place between terminals, and where its goal is found in them."""
        known = self._made.get((start.uid, place))
        if known is None:
            make = self._by_state if start.num_tokens <= FEW else self._by_terminals
            known = self._made[start.uid, place] = make(start, place)
            if len(self._made) > MAX_PARTS:
                self._made.popitem(last=False)
        return known

    def _by_state(self, start: Edges, place: int) -> Part:
        machine = self._machine
        state = machine.state([(BETWEEN, place, BOTTOM)])
        part = self._parts.walk(start, machine.row(state), machine.table, machine.fill)
        if not machine.corners.is_found(place):
            return part
        return Part(part.words, part.tokens, self._parts.union([start, part.exits]))

    def _by_terminals(self, start: Edges, place: int) -> Part:
        blank = self._behind_ignored(start)
        words = np.zeros(self._shared.num_words, np.uint32)
        blank.put(words)
        exits = [start, blank.exits] if self._machine.corners.is_found(place) else []
        for here in (start, blank.exits):
            for position, target, returns in self._machine.openings(place) if here else ():
                inside = self._inside(here, position)
                inside.put(words)
                for after in (target, returns):
                    if after != NOWHERE and inside.exits:
                        inside = self._after(inside.exits, after)
                        inside.put(words)
                exits.append(inside.exits)
        return self._parts.part(words, self._parts.union(exits))

    def _behind_ignored(self, start: Edges) -> Part:
        """The tokens below `start` inside one ignored terminal or several, and where they come out."""
        known = self._blank.get(start.uid)
        if known is None:
            words = np.zeros(self._shared.num_words, np.uint32)
            reached, new = self._parts.nowhere, start
            while new:
                parts = [self._inside(new, position) for position in self._machine.ignored]
                for part in parts:
                    part.put(words)
                both = self._parts.union([reached, *(part.exits for part in parts)])
                new = self._parts.edges(np.setdiff1d(both.edges, reached.edges, assume_unique=True))
                reached = both
            known = self._blank[start.uid] = self._parts.part(words, reached)
            if len(self._blank) > MAX_PARTS:
                self._blank.popitem(last=False)
        return known
