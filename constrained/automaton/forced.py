"""Forced runs: the bytes that every completion of a state begins with."""

from __future__ import annotations

from constrained.automaton.automaton import Automaton, Run, State
from constrained.automaton.masks import Masks
from constrained.errors import InternalError

MAX_BYTES = 4096


def forced_run(automaton: Automaton, masks: Masks, state: State, history: bytes | bytearray) -> Run:
    """The longest run of bytes that every completion of `state` begins with (at most `MAX_BYTES`); `history` led to it."""
    found, so_far, is_settled = 0, bytearray(history), True
    while True:
        options = masks.next_bytes(state, so_far)
        is_settled &= not any(automaton.cells.seen[thread[5]] for thread in state.threads)
        if state.is_accepting or len(options) != 1 or found >= MAX_BYTES:
            return Run(bytes(so_far[len(history) :]), tuple(options), is_settled)
        after, depends = automaton.advance(state, bytes(options), so_far)
        if after is None:
            raise InternalError(f"the only byte that may follow, {options[0]:#04x}, may not follow")
        so_far += bytes(options)
        found, state, is_settled = found + 1, after, is_settled and not depends
