"""`BatchMatcher`: many matchers, of any grammars over one vocabulary, stepped by one call.

A warm step costs a lookup a sequence, in numba: each state has a number, and a table knows what every token that was seen
in it leads to. Whatever the table does not know is asked of the sequence's own `Matcher`, and the answer remembered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from constrained.automaton.automaton import State
from constrained.automaton.transitions import Transitions, gather, step_all
from constrained.automaton.vocabulary_rows import rows_of
from constrained.matcher import Matcher
from constrained.tokens.rows import MaskRow

if TYPE_CHECKING:
    from constrained.tokens.vocabulary import Vocabulary

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

TERMINATED = 0  # the state of every sequence that took its end
AWAY = -1  # the matcher itself was used last: its slot has to catch up
ROW, TO_END, ENDED = range(3)  # what is known of a state beside its transitions
TRAIL_LEN = 256
MAX_STATES = 65_536
MAX_TRANSITIONS = 1 << 20


class BatchMatcher:
    """Slots that hold matchers. Not safe between threads; a call must not name a slot twice.

    A matcher that was added may still be used by itself, at any time: it first takes over what the batch did, and the
    batch's next call goes on from where it then stands. Memory is bounded: past `MAX_STATES` states or `MAX_TRANSITIONS`
    transitions everything is forgotten and learned anew.
    """

    def __init__(self, vocabulary: Vocabulary, capacity: int = 64) -> None:
        self.vocabulary = vocabulary
        self._matchers: list[Matcher | None] = []
        self._free: list[int] = []
        self._current: Int32 = np.zeros(0, np.int32)
        self._lengths: Int32 = np.zeros(0, np.int32)
        self._trail_states: Int32 = np.zeros((0, TRAIL_LEN), np.int32)
        self._trail_tokens: Int32 = np.zeros((0, TRAIL_LEN), np.int32)
        self._has_plan: Bool = np.zeros(0, np.bool_)
        self._grow(capacity)
        self._transitions = Transitions()
        self._states: list[State] = []
        self._numbers: dict[tuple[State, bytes | None], int] = {}
        self._nothing = rows_of(vocabulary).no_tokens
        self._rows: list[MaskRow | None] = []
        self._facts: Int64 = np.empty((3, 0), np.int64)
        self._forget()

    # -- who takes part

    def add(self, matcher: Matcher) -> int:
        """Take in a matcher; its slot. Raises `ValueError` for a matcher over another vocabulary, or of another batch."""
        if matcher.vocabulary != self.vocabulary:
            raise ValueError("the matcher is over another vocabulary than the batch")
        if matcher.give_back is not None:
            raise ValueError("the matcher is in a batch already")
        if not self._free:
            self._grow(len(self._current))
        slot = self._free.pop()
        self._matchers[slot] = matcher
        matcher.give_back = partial(self._give_back, slot)
        self._take(slot)
        return slot

    def remove(self, slot: int) -> Matcher:
        """Give a matcher out again; its slot is free from then on."""
        matcher = self.matcher(slot)
        matcher.give_back = None
        self._matchers[slot] = None
        self._free.append(slot)
        return matcher

    def matcher(self, slot: int) -> Matcher:
        """The matcher in `slot`, up to date."""
        matcher = self._matchers[slot]
        if matcher is None:
            raise ValueError(f"slot {slot} is empty")
        self._give_back(slot)
        return matcher

    def __len__(self) -> int:
        return len(self._current) - len(self._free)

    # -- what a step needs

    def row_ids(self, slots: ArrayLike) -> Int64:
        """The ids of the mask rows of `slots`, int64 [n] (see `mask_row`)."""
        return self._facts_of(slots, ROW)

    def mask_row(self, slot: int) -> MaskRow:
        """The mask row of one slot, with its words."""
        row = self._rows[int(self._current[slot])] if self._current[slot] != AWAY else None
        if row is None:
            matcher = self.matcher(slot)
            row = matcher.mask_row()
            self._take(slot)
            if self._current[slot] > TERMINATED:
                self._rows[int(self._current[slot])] = row
        return row

    def accept_tokens(self, slots: ArrayLike, token_ids: ArrayLike) -> Bool:
        """Go on with one token in each of `slots`; bool [n], False where it is not allowed and nothing changed."""
        slots, tokens = np.asarray(slots, np.int32), np.asarray(token_ids, np.int32)
        if len(self._states) > MAX_STATES or len(self._transitions) > MAX_TRANSITIONS:
            self._forget()
        accepted: Bool = np.empty(len(slots), np.bool_)
        table = self._transitions
        if step_all(
            slots, tokens, table.keys, table.values, self._current, self._lengths,
            self._trail_states, self._trail_tokens, accepted,
        ):  # fmt: skip
            for i in np.flatnonzero(~accepted).tolist():
                accepted[i] = self._accept(int(slots[i]), int(tokens[i]))
        return accepted

    def rollback(self, slot: int, n: int) -> None:
        """Undo the last `n` accepts of one slot. Raises `ValueError` where there were fewer."""
        left = int(self._lengths[slot]) - n
        if n > 0 and left >= 0 and self._current[slot] != AWAY:
            self._current[slot] = self._trail_states[slot, left]
            self._lengths[slot] = left
        else:
            self.matcher(slot).rollback(n)

    def tokens_to_end(self, slots: ArrayLike) -> Int64:
        """`Matcher.min_tokens_to_end` of `slots`, int64 [n]."""
        slots = np.asarray(slots, np.int32)
        found = self._facts_of(slots, TO_END)
        for i in np.flatnonzero(self._has_plan[slots]).tolist():
            found[i] = self.matcher(int(slots[i])).min_tokens_to_end
        return found

    def has_ended(self, slots: ArrayLike) -> Bool:
        """Whether each of `slots` is terminated or complete: nothing but its end may follow; bool [n]."""
        return self._facts_of(slots, ENDED) > 0

    # -- between slots and matchers

    def _facts_of(self, slots: ArrayLike, which: int) -> Int64:
        slots = np.asarray(slots, np.int32)
        found: Int64 = np.empty(len(slots), np.int64)
        if gather(slots, self._current, self._facts, which, found):
            for i in np.flatnonzero(found < 0).tolist():
                found[i] = self._ask(int(slots[i]), which)
        return found

    def _ask(self, slot: int, which: int) -> int:
        """One fact of where a slot stands, from its matcher; noted where it holds whenever that place is reached."""
        matcher = self.matcher(slot)
        fact = self._fact(matcher, which)
        self._take(slot)
        number = int(self._current[slot])
        if number > TERMINATED and not (which == TO_END and matcher.has_plan):
            self._facts[which, number] = fact
        return fact

    def _fact(self, matcher: Matcher, which: int) -> int:
        if which == ROW:
            return matcher.mask_row().id
        if which == TO_END:
            return matcher.min_tokens_to_end
        return int(matcher.is_terminated or matcher.is_complete)

    def _accept(self, slot: int, token: int) -> bool:
        matcher = self.matcher(slot)
        before = AWAY if matcher.is_final or matcher.is_apart else self._number(matcher)
        is_accepted = matcher.accept_token(token)
        self._take(slot)
        if is_accepted and before != AWAY and self._current[slot] != AWAY:
            self._transitions.put(before, token, int(self._current[slot]))
        return is_accepted

    def _take(self, slot: int) -> None:
        """The slot stands where its matcher does; where that place has no number, the matcher goes on by itself."""
        matcher = self._matchers[slot]
        assert matcher is not None
        self._has_plan[slot] = matcher.has_plan
        if matcher.is_final:
            self._current[slot] = TERMINATED
        else:
            self._current[slot] = AWAY if matcher.is_apart else self._number(matcher)

    def _give_back(self, slot: int) -> None:
        """The matcher takes over what the batch did for it."""
        matcher, number, length = self._matchers[slot], int(self._current[slot]), int(self._lengths[slot])
        if number == AWAY or matcher is None:
            return
        self._current[slot], self._lengths[slot] = AWAY, 0
        if length:
            states = [self._states[i] for i in self._trail_states[slot, :length].tolist()]
            after = states[-1] if number == TERMINATED else self._states[number]
            matcher.catch_up([*states, after], self._trail_tokens[slot, :length].tolist(), is_final=number == TERMINATED)

    # -- what is known of states

    def _number(self, matcher: Matcher) -> int:
        """The number of where a matcher stands: its state, and the open key that what follows may depend on.

        It does not depend on more (`Matcher.is_apart` is False).
        """
        place = matcher.state, matcher.open_key
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self._states)
            self._states.append(matcher.state)
            self._rows.append(None)
            if number >= self._facts.shape[1]:
                self._facts = np.concatenate([self._facts, np.full_like(self._facts, -1)], axis=1)
        return number

    def _forget(self) -> None:
        """Begin with nothing known but the state of terminated sequences."""
        for slot in range(len(self._current)):
            self._give_back(slot)
        self._transitions = Transitions()
        self._states = [State((), is_accepting=False)]
        self._rows = [self._nothing]
        self._numbers.clear()
        self._facts = np.full((3, 1024), -1, np.int64)
        self._facts[:, TERMINATED] = self._nothing.id, 0, 1

    def _grow(self, extra: int) -> None:
        begin = len(self._current)
        self._free += range(begin + extra - 1, begin - 1, -1)
        self._matchers += [None] * extra
        self._current = np.concatenate([self._current, np.full(extra, AWAY, np.int32)])
        self._lengths = np.concatenate([self._lengths, np.zeros(extra, np.int32)])
        self._has_plan = np.concatenate([self._has_plan, np.zeros(extra, np.bool_)])
        trail = np.zeros((extra, TRAIL_LEN), np.int32)
        self._trail_states = np.concatenate([self._trail_states, trail])
        self._trail_tokens = np.concatenate([self._trail_tokens, trail])
