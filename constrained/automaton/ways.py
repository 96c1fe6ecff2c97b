"""Ways to read a document that differ in nothing but what comes behind an open value, made one.

Each value that can be read in several ways multiplies the threads of those inside it: with each level there would be more. The
thread that stands for them returns to `Either` of their local states, and becomes several again where that value ends.
"""

from __future__ import annotations

from constrained.automaton.cells import BOTTOM, Cells
from constrained.automaton.locals import Locals
from constrained.automaton.threads import Thread

# From how many threads on that is looked at; how many frames down from the uppermost: one token opens few, and those below
# were looked at before.
MANY, FRAMES = 48, 6


def merged(threads: list[Thread], cells: Cells, locals_: Locals) -> list[Thread]:
    """The same threads, where such as differ in nothing but where one of their frames returns to are one."""
    by_top: dict[tuple[int, ...], set[int]] = {}
    for thread in threads:
        by_top.setdefault(thread[:5], set()).add(thread[5])
    found: list[Thread] = []
    for (lex, esc, need, room, local), stacks in by_top.items():
        for level in range(FRAMES - 1, -1, -1):
            if len(stacks) > 1:
                stacks = _merged_at(level, stacks, cells, locals_)
        found += [(lex, esc, need, room, local, cell) for cell in stacks]
    return found


def _merged_at(level: int, stacks: set[int], cells: Cells, locals_: Locals) -> set[int]:
    """Stacks that differ in nothing but where the frame with so many above it returns to, made one."""
    found: set[int] = set()
    alike: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for stack in stacks:
        above, cell = cells.split(stack, level)
        if cell > BOTTOM and locals_.may_be_either(place := cells.local(cell)):
            alike.setdefault((tuple(above), cells.parent(cell), cells.keys(cell)), []).append((stack, place))
        else:
            found.add(stack)
    for those in alike.values():
        stack = those[0][0]
        found.add(cells.returning(stack, level, locals_.either(place for _, place in those)) if len(those) > 1 else stack)
    return found
