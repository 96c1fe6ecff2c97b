"""States of a grammar over raw text: interned sets of threads, stepped byte by byte, made when first met.

A thread is (position, place, stacks): inside a terminal that leads to the place, or between terminals at it (`BETWEEN`),
above a set of stacks. Threads of one position and place are one thread over the union of their stacks. A terminal that may
end and may go on does both. Between terminals an ignored one may stand, any number of times, before the first and behind
the last too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from constrained.automaton.automaton import State
from constrained.automaton.scannerless.documents import Document
from constrained.automaton.scannerless.lexemes import Between, Lexemes
from constrained.automaton.scannerless.scan import BYTE_0, COLUMNS, DEAD, ENDS
from constrained.automaton.scannerless.stacks import BOTTOM, Stacks
from constrained.automaton.tables import Table
from constrained.grammar.context_free import Corners, NormalForm, SchemaTerminal, Terminal
from constrained.grammar.context_free.corners import NOWHERE

BETWEEN = -1
Thread = tuple[int, int, int]


class TextState(State):
    """A state; `index` is its row in the walks' table, -1 where it has none. `steps` memoises bytes."""

    __slots__ = ("index", "steps")

    def __init__(self, threads: tuple[Thread, ...], *, is_accepting: bool) -> None:
        super().__init__(threads, is_accepting=is_accepting)  # type: ignore[arg-type]
        self.steps: dict[int, TextState | None] = {}
        self.index = -1


class Machine:
    """States and tables of one grammar. `lock` guards whatever makes something new."""

    def __init__(self, grammar: NormalForm, documents: dict[str, Document]) -> None:
        self.lock = threading.RLock()
        self.grammar = grammar
        self.corners = Corners(grammar)
        self.lexemes = Lexemes(grammar.kind)
        self.stacks = Stacks()
        self.table = Table(COLUMNS)
        self.walked: list[TextState] = []
        self.borrowed: list[Any] = []  # what its masks hold that other grammars hold too
        self._documents = documents
        self._starts = {name: self._start(name, terminal) for name, terminal in grammar.terminals.items()}
        self.ignored = tuple(dict.fromkeys(self._starts[name] for name in grammar.ignored))
        self._states: dict[tuple[Thread, ...], TextState] = {}
        self._closures: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._openings: dict[int, list[tuple[int, int, int]]] = {}
        self._begun: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        start = [(BETWEEN, self.corners.start, BOTTOM)] if grammar.productions else []
        if grammar.is_nullable:
            start.append((BETWEEN, Corners.FOUND, BOTTOM))
        self.initial = self.state(start)

    def _start(self, name: str, terminal: Terminal) -> int:
        position = self._documents[name] if isinstance(terminal, SchemaTerminal) else Between(terminal)
        return self.lexemes.index(position, name)

    @property
    def shared(self) -> tuple[Any, ...]:
        """What other grammars hold too."""
        return (*self.borrowed, *(part for document in self._documents.values() for part in document.shared))

    @property
    def num_states(self) -> int:
        """How many states, places, positions and sets of stacks there are: what a bound on memory counts."""
        return len(self._states) + len(self.corners.places) + len(self.lexemes.positions) + len(self.stacks)

    def start(self, name: str) -> int:
        """The position at the beginning of a terminal."""
        return self._starts[name]

    # -- states

    def state(self, threads: Iterable[Thread]) -> TextState:
        """The state of some threads, of which no two share position and place."""
        key = tuple(sorted(threads))
        found = self._states.get(key)
        if found is None:
            accepting = any(self.may_end(place, stacks) for position, place, stacks in key if position == BETWEEN)
            found = self._states[key] = TextState(key, is_accepting=accepting)
        return found

    def step_token(self, _state: State, _token_id: int, _shared: int) -> State | None:
        """None: `advance` says what follows."""
        return None

    def advance(self, state: State, data: bytes, _history: bytes | bytearray = b"") -> tuple[State | None, bool]:
        """The state after `data`, or None where it is not allowed; never dependent on what led to `state`."""
        assert isinstance(state, TextState)
        here: TextState | None = state
        for byte in data:
            assert here is not None
            here = here.steps[byte] if byte in here.steps else self.step(here, byte)
            if here is None:
                break
        return here, False

    def open_key(self, _state: State, _history: bytes | bytearray) -> bytes | None:
        """None: a state knows all that led to it."""
        return None

    def awaits_item(self, _state: State) -> bool:
        """False: a state knows all that led to it."""
        return False

    def step(self, state: TextState, byte: int) -> TextState | None:
        """The state after one byte; None where it leads nowhere."""
        with self.lock:
            if byte not in state.steps:
                threads = self._step(state.threads, byte)  # type: ignore[arg-type]
                state.steps[byte] = self.state(threads) if threads else None
            return state.steps[byte]

    def _step(self, threads: tuple[Thread, ...], byte: int) -> list[Thread]:
        after: dict[tuple[int, int], int] = {}
        for position, place, stacks in threads:
            entered = [position] if position != BETWEEN else self.ignored
            for before in entered:
                if (inside := self.lexemes.step(before, byte)) >= 0:
                    self._add(after, inside, place, stacks)
            for inner, below in self.closure(place, stacks) if position == BETWEEN else ():
                for begun, target, returns in self._begin(inner, byte):
                    self._add(after, begun, target, below if returns == NOWHERE else self.stacks.push(returns, below))
        for (position, place), stacks in list(after.items()):
            if self.lexemes.ends(position):
                self._add(after, BETWEEN, place, stacks)
        return [(position, place, stacks) for (position, place), stacks in after.items()]

    def _add(self, threads: dict[tuple[int, int], int], position: int, place: int, stacks: int) -> None:
        known = threads.get((position, place))
        threads[position, place] = stacks if known is None else self.stacks.union(known, stacks)

    # -- between terminals

    def closure(self, place: int, stacks: int) -> list[tuple[int, int]]:
        """The places that a place over some stacks comes to without reading, itself first: ended goals return."""
        known = self._closures.get((place, stacks))
        if known is not None:
            return known
        found = {place: stacks}
        pending = [place]
        while pending:
            here = pending.pop()
            if not self.corners.is_found(here):
                continue
            for returns, below in self.stacks.frames(found[here]):
                before = found.get(returns)
                after = below if before is None else self.stacks.union(before, below)
                if after != before:
                    found[returns] = after
                    pending.append(returns)
        closure = self._closures[place, stacks] = list(found.items())
        return closure

    def may_end(self, place: int, stacks: int) -> bool:
        """Whether the text may end at a place between terminals."""
        return any(
            self.corners.is_found(here) and self.stacks.holds_empty(below) for here, below in self.closure(place, stacks)
        )

    def openings(self, place: int) -> list[tuple[int, int, int]]:
        """The terminals that may begin at a place: (first position, place that each leads to, place below it)."""
        known = self._openings.get(place)
        if known is None:
            edges = self.corners.edges(place)
            known = self._openings[place] = [(self._starts[edge.terminal], edge.target, edge.returns) for edge in edges]
        return known

    def _begin(self, place: int, byte: int) -> list[tuple[int, int, int]]:
        """The same after their first byte."""
        known = self._begun.get((place, byte))
        if known is None:
            steps = ((self.lexemes.step(start, byte), target, returns) for start, target, returns in self.openings(place))
            known = self._begun[place, byte] = [opening for opening in steps if opening[0] >= 0]
        return known

    def next_bytes(self, state: State) -> list[int]:
        """The bytes that may come next, ascending."""
        with self.lock:
            begun: set[int] = set()
            for position, place, stacks in state.threads:  # type: ignore[misc]
                begun.update([position] if position != BETWEEN else self.ignored)
                for inner, _ in self.closure(place, stacks) if position == BETWEEN else ():
                    begun.update(start for start, _, _ in self.openings(inner))
            return sorted({byte for position in begun for byte in self.lexemes.next_bytes(position)})

    # -- the table of walks

    def row(self, state: TextState) -> int:
        """The row of a state in the table of walks; its steps may still be unknown."""
        if state.index < 0:
            state.index = self.table.add()
            self.walked.append(state)
            self.table.array[state.index, ENDS] = int(state.is_accepting)
        return state.index

    def fill(self, index: int, byte: int) -> None:
        """Fill in one step of a row."""
        after = self.step(self.walked[index], byte)
        target = DEAD if after is None else self.row(after)
        self.table.array[index, BYTE_0 + byte] = target
