"""Forced runs: the bytes that every completion of a state begins with."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from constrained.automaton import strings, tables
from constrained.automaton.automaton import Automaton, Run, State
from constrained.automaton.masks import Masks
from constrained.automaton.stepping import (
    DEAD,
    EDGE,
    KEY_EXIT,
    NEW_CONTENT,
    NEW_KEY,
    NEW_LEX,
    NEW_LOCAL,
    follow,
    step,
    tables_of,
)
from constrained.automaton.tables import BYTE_CLASS
from constrained.errors import InternalError
from constrained.tokens.jit import int64_array, kernel, unowned

MAX_BYTES = 1024
BRANCHES, STUCK = 100, 101  # what `_go` returns beside the results of `stepping.step`


class States(Protocol):
    """What a step-by-step run asks of an automaton; see `Automaton`."""

    def advance(self, state: State, data: bytes, history: bytes | bytearray = b"", /) -> tuple[State | None, bool]: ...


class Rows(Protocol):
    """What it asks of the masks; see `Masks`."""

    def next_bytes(self, state: State, history: bytes | bytearray, /) -> list[int]: ...


def forced_steps(automaton: States, masks: Rows, state: State, history: bytes | bytearray) -> Run:
    """`forced_run` for any automaton whose states know all that led to them: byte by byte."""
    so_far = bytearray(history)
    options = masks.next_bytes(state, so_far)
    while not state.is_accepting and len(options) == 1 and len(so_far) - len(history) < MAX_BYTES:
        after, _ = automaton.advance(state, bytes(options), so_far)
        if after is None:
            raise InternalError(f"the only byte that may follow, {options[0]:#04x}, may not follow")
        so_far += bytes(options)
        state = after
        options = masks.next_bytes(state, so_far)
    data = bytes(so_far[len(history) :])
    return Run(data, tuple(options) if data else (), True)


def forced_run(automaton: Automaton, masks: Masks, state: State, history: bytes | bytearray) -> Run:
    """The longest run of bytes that every completion of `state` begins with (at most `MAX_BYTES`); `history` led to it."""
    so_far, is_settled = bytearray(history), True
    with automaton.lock:
        while not state.is_accepting and len(so_far) - len(history) < MAX_BYTES:
            is_settled &= not automaton.needs_history(state)
            state, data, branches = _by_itself(automaton, state)
            so_far += data
            is_settled &= not automaton.needs_history(state)
            if state.is_accepting or branches:
                break
            options = masks.next_bytes(state, so_far)
            if len(options) != 1:
                break
            after, depends = automaton.advance(state, bytes(options), so_far)
            if after is None:
                raise InternalError(f"the only byte that may follow, {options[0]:#04x}, may not follow")
            so_far += bytes(options)
            state, is_settled = after, is_settled and not depends
        data = bytes(so_far[len(history) :])
        is_settled &= not automaton.needs_history(state)
        return Run(data, tuple(masks.next_bytes(state, so_far)) if data else (), is_settled)


def _by_itself(automaton: Automaton, state: State) -> tuple[State, bytes, bool]:
    """As far as the kernel goes: the state there, the bytes on the way, and whether several may follow."""
    if len(state.threads) > 1:
        return state, b"", False
    thread, begun = np.array(state.threads[0], np.int64), b""
    out, scratch = np.empty(256, np.uint8), len(automaton.cells)
    while True:
        automaton.cells.table.reserve(len(out) + 16)
        result, which, count, num_cells = _go(out, thread, scratch, automaton.arena.address)
        begun += out[:count].tobytes()
        if num_cells > scratch:
            thread[5] = automaton.cells.adopt(int(thread[5]), scratch)
            scratch = len(automaton.cells)
        if result == NEW_LEX:
            automaton.plain.resolve(which)
        elif result == NEW_CONTENT:
            automaton.contents.resolve(which)
        elif result == NEW_LOCAL:
            automaton.locals.resolve(which)
        elif result == NEW_KEY:
            automaton.locals.resolve_key(which)
        else:
            break
    if not begun:
        return state, b"", result == BRANCHES
    lex, esc, need, room, local, cell = thread.tolist()
    return automaton.state_of([(lex, esc, need, room, local, cell)]), begun, result == BRANCHES


@kernel
def _go(out, thread, num_cells, machine):  # type: ignore[no-untyped-def]  # numba
    """Step `thread` (int64 [6], in place) while one byte alone may follow; the bytes go to `out`.

    Returns (result, which, count, num_cells): BRANCHES where several bytes may follow, STUCK where the thread may be done or
    does not go on by itself, else what is not in the tables yet. `machine` is that of `stepping.run`.
    """
    slots = int64_array(machine)
    plain, local_rows, locals_, edges, tags, tries, dfa, ranges, cells = tables_of(slots)
    max_cells = slots[tables.NUM_CELLS]
    out = unowned(out)
    lex, esc, need, room, local, cell = thread[0], thread[1], thread[2], thread[3], thread[4], thread[5]
    only, count, stop, missing = 0, 0, STUCK, -1
    while count < len(out) and only >= 0 and not (lex < strings.FREE and locals_[local, tables.DONE]):
        only, kind, edge = -1, DEAD, -1
        next_lex, next_esc, next_need, next_room, next_local = lex, esc, need, room, local
        for byte in range(256):
            if lex < strings.FREE and BYTE_CLASS[byte] == 0:
                continue
            result, lex2, esc2, need2, room2, local2, which = step(
                byte, lex, esc, need, room, local, plain, local_rows, locals_, tags, tries, dfa, ranges
            )
            if result == DEAD:
                continue
            is_new = result in (NEW_LEX, NEW_LOCAL, NEW_CONTENT, NEW_KEY)
            if only >= 0 or is_new:
                stop, missing, only = (result if is_new else BRANCHES), which, -1
                break
            only, kind, edge = byte, result, which
            next_lex, next_esc, next_need, next_room, next_local = lex2, esc2, need2, room2, local2
        if only < 0 or kind == KEY_EXIT:
            break
        if kind == EDGE and (edges[edge, tables.NEXT] >= 0 or edges[edge, tables.KIND] == tables.ASK or num_cells >= max_cells):
            break
        lex, esc, need, room, local = next_lex, next_esc, next_need, next_room, next_local
        if kind == EDGE:
            lex, need, room, local, cell, num_cells = follow(edge, local, cell, edges, cells, num_cells, locals_)
        out[count] = only
        count += 1
    thread[0], thread[1], thread[2], thread[3], thread[4], thread[5] = lex, esc, need, room, local, cell
    return stop, missing, count, num_cells
