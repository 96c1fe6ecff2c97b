"""Mask rows of a grammar over raw text, put together from parts.

A token is a stretch inside a terminal, then perhaps whole terminals, then perhaps the beginning of one. Where it leaves
the terminal that it began in is a set of trie nodes; what a place does with the rest of the tokens below such nodes is
a part; where a goal ends, the tokens come out of it and go on at the place that the stack returns to.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from constrained.automaton.automaton import State
from constrained.automaton.scannerless.documents import Document
from constrained.automaton.scannerless.machine import BETWEEN, Machine, TextState
from constrained.automaton.scannerless.parts import Nodes, Part, Parts
from constrained.automaton.vocabulary_rows import VocabularyRows, rows_of
from constrained.grammar.context_free.corners import NOWHERE
from constrained.tokens.rows import MaskRow, Words, set_bits
from constrained.tokens.vocabulary import Vocabulary

MAX_PARTS = 8192

_parts: weakref.WeakKeyDictionary[Vocabulary, Parts] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def parts_of(vocabulary: Vocabulary) -> Parts:
    """The shared parts of a vocabulary, made when first asked for."""
    with _lock:
        found = _parts.get(vocabulary)
        if found is None:
            found = _parts[vocabulary] = Parts(vocabulary.trie, vocabulary.num_words)
        return found


@dataclass(frozen=True, slots=True)
class Entrance:
    """The terminals that may begin at a place: their positions, the groups that they lead to, and their first bytes.

    A group is (place that the terminals lead to, place below it).
    """

    positions: list[int]
    groups: list[int]
    leads: list[tuple[int, int]]
    first: list[int]


class TextMasks:
    """Mask rows of one machine over one vocabulary."""

    def __init__(self, machine: Machine, vocabulary: Vocabulary) -> None:
        self._machine = machine
        self._shared: VocabularyRows = rows_of(vocabulary)
        self._parts = parts_of(vocabulary)
        self._entrances: dict[int, Entrance] = {}
        self._documents: OrderedDict[int, Part] = OrderedDict()
        self._made: OrderedDict[tuple[int, int], Part] = OrderedDict()
        self._entered: OrderedDict[tuple[int, int], tuple[Part, list[tuple[int, Nodes]]]] = OrderedDict()

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
                part = self._inside(position)
                part.put(words)
                self._put(words, part.exits, place, stacks, done)
        if state.is_accepting:
            set_bits(words, self._shared.eos)
        return self._shared.store.intern(words)

    def _put(self, words: Words, start: Nodes, place: int, stacks: int, done: set[tuple[int, int, int]]) -> None:
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

    # -- inside one terminal

    def _inside(self, position: int) -> Part:
        """All tokens that stay inside a terminal, and where it may end in them."""
        found = self._machine.lexemes.positions[position]
        if not isinstance(found, Document):
            return self._parts.kept(found.key, lambda: self._walk_inside(position))
        part = self._documents.get(position)
        if part is None:
            words, nodes = found.inside()
            part = self._documents[position] = self._parts.part(words, self._parts.nodes(nodes))
            if len(self._documents) > MAX_PARTS:
                self._documents.popitem(last=False)
        return part

    def _walk_inside(self, position: int) -> Part:
        words, lexemes = np.zeros(self._shared.num_words, np.uint32), self._machine.lexemes
        exits = self._parts.enter(self._parts.root, [position], [0], lexemes.next_bytes(position), lexemes, words)
        return self._parts.part(words, exits[0][1] if exits else self._parts.nowhere)

    # -- from a place between terminals

    def _after(self, start: Nodes, place: int) -> Part:
        """The tokens below `start` from a place, and the nodes at which its goal is found in them."""
        known = self._made.get((start.uid, place))
        if known is None:
            known = self._made[start.uid, place] = self._find_goal(start, place)
            if len(self._made) > MAX_PARTS:
                self._made.popitem(last=False)
        return known

    def _find_goal(self, start: Nodes, place: int) -> Part:
        words, exits = np.zeros(self._shared.num_words, np.uint32), []
        arrived: dict[int, Nodes] = {}
        pending = [(place, start)]
        while pending:
            here, nodes = pending.pop()
            before = arrived.get(here, self._parts.nowhere)
            nodes = self._parts.difference(nodes, before)
            if not nodes:
                continue
            arrived[here] = self._parts.union([before, nodes])
            if self._machine.corners.is_found(here):
                exits.append(nodes)
            part, ends = self._enter(nodes, here)
            part.put(words)
            for group, ended in ends:
                target, returns = self._entrance(here).leads[group]
                if returns == NOWHERE:
                    pending.append((target, ended))
                else:
                    goal = self._after(ended, target)
                    goal.put(words)
                    pending.append((returns, goal.exits))
        return self._parts.part(words, self._parts.union(exits))

    def _enter(self, start: Nodes, place: int) -> tuple[Part, list[tuple[int, Nodes]]]:
        """The tokens below `start` that begin a terminal at a place; and by group, where these end in them."""
        known = self._entered.get((start.uid, place))
        if known is None:
            known = self._entered[start.uid, place] = self._find_terminals(start, place)
            if len(self._entered) > MAX_PARTS:
                self._entered.popitem(last=False)
        return known

    def _find_terminals(self, start: Nodes, place: int) -> tuple[Part, list[tuple[int, Nodes]]]:
        words, entrance, parts = np.zeros(self._shared.num_words, np.uint32), self._entrance(place), self._parts
        if start is not parts.root:
            args = (entrance.positions, entrance.groups, entrance.first, self._machine.lexemes, words)
            ends = parts.enter(start, *args)
            return parts.part(words, parts.nowhere), ends
        by_group: dict[int, list[Nodes]] = {}
        for position, group in zip(entrance.positions, entrance.groups, strict=True):
            inside = self._inside(position)
            inside.put(words)
            by_group.setdefault(group, []).append(inside.exits)
        return parts.part(words, parts.nowhere), [(group, parts.union(sets)) for group, sets in by_group.items()]

    def _entrance(self, place: int) -> Entrance:
        known = self._entrances.get(place)
        if known is None:
            openings = [(start, place, NOWHERE) for start in self._machine.ignored] + self._machine.openings(place)
            leads = list(dict.fromkeys((target, returns) for _, target, returns in openings))
            groups = [leads.index((target, returns)) for _, target, returns in openings]
            positions = [position for position, _, _ in openings]
            first = sorted({byte for position in positions for byte in self._machine.lexemes.next_bytes(position)})
            known = self._entrances[place] = Entrance(positions, groups, leads, first)
        return known
