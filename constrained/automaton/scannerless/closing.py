"""The shortest end of a text from a state, in bytes.

It is the first of the shortest ends in one order (`context_free.words`), so the closing of the state after its beginning is
its rest.
"""

from __future__ import annotations

from constrained.automaton.automaton import State
from constrained.automaton.scannerless.machine import BETWEEN, Machine
from constrained.automaton.scannerless.stacks import BOTTOM
from constrained.grammar.context_free import Words
from constrained.grammar.context_free.words import ranked


class TextClosings:
    """Closings of the states of one machine, memoised on the states."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        lexemes = machine.lexemes
        starts = {name: lexemes.closing(machine.start(name)) for name in machine.grammar.terminals}
        self._words = Words(machine.corners, starts)
        self._below: dict[int, bytes] = {BOTTOM: b""}

    def of(self, state: State, _history: bytes | bytearray = b"") -> bytes:
        """The shortest bytes after which the text may end."""
        if state.closing is None:
            with self._machine.lock:
                state.closing = min(ranked(self._thread(*thread)) for thread in state.threads)[2]  # type: ignore[call-arg]
        return state.closing

    def _thread(self, position: int, place: int, stacks: int) -> bytes:
        begun = b"" if position == BETWEEN else self._machine.lexemes.closing(position)
        return begun + self._words.rest(place) + self._stacks(stacks)

    def _stacks(self, stacks: int) -> bytes:
        """The shortest end of a set of stacks. They may be deep, so this does not recurse."""
        frames, pending = self._machine.stacks.frames, [stacks]
        while pending:
            here = pending[-1]
            missing = [below for _, below in frames(here) if below not in self._below]
            if here in self._below or missing:
                pending = pending[:-1] if here in self._below else pending + missing
                continue
            options = [self._words.rest(place) + self._below[below] for place, below in frames(here)]
            if self._machine.stacks.holds_empty(here):
                options.append(b"")
            self._below[here] = min(map(ranked, options))[2]
        return self._below[stacks]
