"""The places of one object whose members only have to come in their order, laid out at once.

Of n properties: before each key that may come next, and behind each member, by how many properties are past (0 to n); behind
each key and before each value, by its tag (0 to n, 0 a free key). So a place is known by its number alone, and what may come
there by a few comparisons: `tables.LOW` and `tables.HIGH` say which names a key may have.
"""

from __future__ import annotations

from array import array
from functools import cached_property

from constrained.automaton import tables
from constrained.automaton.frames import Local, ObjectColon, ObjectKey, ObjectNext, Value
from constrained.automaton.strings import FREE_TAG
from constrained.automaton.tables import LOCAL_COLUMNS, Table
from constrained.grammar.members import ObjectPlan
from constrained.grammar.progress import Progress
from constrained.grammar.shapes import NodeKey
from constrained.tokens.jit import int32_array, int32_table, kernel

ALIVE, REQUIRED = 1, 2
KEY, NEXT, COLON, VALUE, NUM_KINDS = range(5)


class Listed:
    """The local states `first` to `first + len(self)`, which are the places of one object in the compact layout."""

    def __init__(self, plan: ObjectPlan, plan_index: int, first: int) -> None:
        self._plan, self.plan_index, self.first = plan, plan_index, first
        self._num_each = len(plan.names) + 1
        self.first_value = first + VALUE * self._num_each
        self.has_free = plan.alive[FREE_TAG]

    def __len__(self) -> int:
        return NUM_KINDS * self._num_each

    def key(self, position: int) -> int:
        """The local state before a key, when `position` properties are past."""
        return self.first + KEY * self._num_each + position

    def state(self, index: int) -> Local:
        """What a local state stands for."""
        kind, number = divmod(index - self.first, self._num_each)
        if kind == KEY:
            return ObjectKey(self.plan_index, Progress(number), 0)
        if kind == NEXT:
            return ObjectNext(self.plan_index, Progress(number), 0)
        past = number or self._num_each - 1  # behind the member
        if kind == COLON:
            return ObjectColon(self.plan_index, number, Progress(number - 1 if number else past), 0)
        return Value(self._plan.node(number), self.first + NEXT * self._num_each + past, 0)

    def node(self, index: int) -> NodeKey:
        """What the value must meet that comes at a local state, one from `first_value` on."""
        return self._plan.node(index - self.first_value)

    @cached_property
    def alive(self) -> tuple[int, ...]:
        """The tags of names that some value can fill, ascending."""
        alive = self._plan.alive
        return tuple(tag for tag in range(1, self._num_each) if alive[tag])

    def lay_out(self, info: Table, tags: Table, entry: int, rows: tuple[int, ...], open_row: int) -> None:
        """Write the places into the table of local states, and where keys lead into that of tags.

        `entry` is the lexeme before each place; `rows` are those before a colon, a comma or brace, a comma, a brace;
        `open_row` is that before a key that may be free. The rows before values, and before keys of which only some names may
        come, are left to be made.
        """
        plan, size = self._plan, self._num_each
        flags = [ALIVE * is_alive + REQUIRED * must for is_alive, must in zip(plan.alive, (False, *plan.required), strict=True)]
        # The kernel reads them behind all rows that it writes.
        info.reserve(len(self) + size // LOCAL_COLUMNS + 1)
        info.size += len(self)
        behind, slot = info.size * LOCAL_COLUMNS, tags.size
        info.cells[behind : behind + size] = array("i", flags)
        tags.reserve(2 * size)
        tags.size += 2 * size
        _lay_out(info.at, tags.at, behind, size, self.first, slot, entry, *rows, open_row)


@kernel
def _lay_out(info_at, tags_at, behind, size, first, slot, entry, colon, either, comma, brace, free):  # type: ignore[no-untyped-def]  # numba
    """See `Listed.lay_out`. The first tags of `slot` are for places at which no free key may come, the others for the rest."""
    info, tags = int32_table(info_at, LOCAL_COLUMNS), int32_table(tags_at, 1)
    flags = int32_array(info_at + 4 * behind)
    last = 0  # the tag of the last required property
    for tag in range(size):
        if flags[tag] & REQUIRED:
            last = tag
    high, goes_on = size - 1, False
    for number in range(size - 1, -1, -1):
        if number + 1 < size:
            is_alive = flags[number + 1] & ALIVE != 0
            if flags[number + 1] & REQUIRED:
                high, goes_on = number + 1, is_alive
            else:
                goes_on |= is_alive
        is_past = number >= last
        is_free = is_past and flags[FREE_TAG] & ALIVE != 0
        key, following = first + KEY * size + number, first + NEXT * size + number
        _put(info, key, entry, free if is_free else tables.UNRESOLVED, key)
        info[key, tables.TAGS] = slot + size if is_free else slot
        info[key, tables.LOW], info[key, tables.HIGH] = number + 1, high
        row = (either if goes_on or is_free else brace) if is_past else comma
        _put(info, following, entry, row, key)
        past = number if number != FREE_TAG else size - 1
        _put(info, first + COLON * size + number, entry, colon, first + VALUE * size + number)
        _put(info, first + VALUE * size + number, entry, tables.UNRESOLVED, first + NEXT * size + past)
        place = first + COLON * size + number if flags[number] & ALIVE else tables.NOWHERE
        tags[slot + size + number, 0] = place
        tags[slot + number, 0] = place if number != FREE_TAG else tables.NOWHERE


@kernel
def _put(info, local, entry, row, after):  # type: ignore[no-untyped-def]  # numba
    info[local, tables.ENTRY], info[local, tables.TAGS], info[local, tables.DONE] = entry, -1, 0
    info[local, tables.ROW], info[local, tables.AFTER] = row, after
    info[local, tables.LOW], info[local, tables.HIGH] = 0, tables.ANY_TAG
