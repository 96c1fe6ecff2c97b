"""What may come next in a grammar, by left corners: so left recursion, direct, indirect or hidden, is no matter.

A *goal* is a rule that is to be found from here on. A *place* is how far a goal has been read: the dotted productions
that are open inside it, and whether the goal is found already. Reading a terminal leads from place to place; what begins
with a rule of its own becomes a goal above, with the place to return to. A production of the goal's left corner opens only
once its first symbol has been found (Rosenkrantz and Lewis, "Deterministic left corner parsing", 1970): so each edge
reads a terminal, and no chain of goals grows without one. A goal that ends its production takes that production's return
with it, so right recursion needs no stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained.grammar.context_free.grammar import Symbols
from constrained.grammar.context_free.normal_form import NormalForm

Item = tuple[int, int]  # a production and how many of its symbols have been read
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Place:
    """Inside `goal`: the dotted productions that are open, and whether the goal is found."""

    goal: str
    items: frozenset[Item]
    is_found: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """Read `terminal`, go on at `target`; with `returns` (or `NOWHERE`) as the place below it."""

    terminal: str
    target: int
    returns: int


class Corners:
    """Places by index, made when first met. `FOUND` is the place where only the end of its goal is left."""

    FOUND = 0

    def __init__(self, grammar: NormalForm) -> None:
        self.grammar = grammar
        self.productions: list[tuple[str, Symbols]] = list(grammar.productions)
        self._begun_by: dict[str, list[int]] = {}
        self._firsts: dict[str, list[str]] = {}
        for index, (rule, symbols) in enumerate(self.productions):
            self._begun_by.setdefault(symbols[0], []).append(index)
            self._firsts.setdefault(rule, []).append(symbols[0])
        self._corners: dict[str, frozenset[str]] = {}
        self.places: list[Place] = []
        self._index: dict[Place, int] = {}
        self._edges: list[tuple[Edge, ...] | None] = []
        self._place(Place("", frozenset(), True))
        # The text as a whole is the goal of one more production, which nothing begins.
        self.productions.append(("", (grammar.start,)))
        self.start = self._place(Place("", frozenset({(len(self.productions) - 1, 0)}), False))

    def is_found(self, place: int) -> bool:
        """Whether the goal may end here."""
        return self.places[place].is_found

    def edges(self, place: int) -> tuple[Edge, ...]:
        """The terminals that may come next, and where each leads."""
        known = self._edges[place]
        if known is None:
            known = self._edges[place] = tuple(self._make_edges(self.places[place]))
        return known

    def corners(self, goal: str) -> frozenset[str]:
        """All symbols that a text of `goal` may begin with, itself too."""
        known = self._corners.get(goal)
        if known is None:
            found, pending = {goal}, [goal]
            while pending:
                new = set(self._firsts.get(pending.pop(), ())) - found
                found |= new
                pending += new
            known = self._corners[goal] = frozenset(found)
        return known

    def begun_by(self, symbol: str) -> list[int]:
        """The productions that begin with `symbol`."""
        return self._begun_by.get(symbol, [])

    def _place(self, place: Place) -> int:
        if not place.items and self.places:
            return self.FOUND
        found = self._index.get(place)
        if found is None:
            found = self._index[place] = len(self.places)
            self.places.append(place)
            self._edges.append(None)
        return found

    def _make_edges(self, place: Place) -> Iterable[Edge]:
        terminals = self.grammar.terminals
        by_symbol: dict[str, list[Item]] = {}
        for item in sorted(place.items):
            by_symbol.setdefault(self.productions[item[0]][1][item[1]], []).append(item)
        for symbol, items in by_symbol.items():
            after = self._after(place.goal, items)
            if symbol in terminals:
                yield Edge(symbol, after, NOWHERE)
                continue
            for terminal in sorted(self.corners(symbol)):
                if terminal in terminals:
                    yield Edge(terminal, self._found(symbol, [terminal]), NOWHERE if after == self.FOUND else after)

    def _after(self, goal: str, items: list[Item]) -> int:
        """The place inside `goal` after the next symbol of `items`."""
        ended, open_items = [], set()
        for production, dot in items:
            rule, symbols = self.productions[production]
            if dot + 1 == len(symbols):
                ended.append(rule)
            else:
                open_items.add((production, dot + 1))
        return self._found(goal, ended, open_items)

    def _found(self, goal: str, symbols: list[str], items: Iterable[Item] = ()) -> int:
        """The place inside `goal` once `symbols` have been found at its left corner; `items` are open there besides."""
        inside, found, pending, opened = self.corners(goal), set(symbols), list(symbols), set(items)
        while pending:
            for production in self.begun_by(pending.pop()):
                rule, body = self.productions[production]
                if rule not in inside:
                    continue
                if len(body) > 1:
                    opened.add((production, 1))
                elif rule not in found:
                    found.add(rule)
                    pending.append(rule)
        return self._place(Place(goal, frozenset(opened), goal in found))
