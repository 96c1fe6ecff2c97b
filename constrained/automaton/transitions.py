"""(state, token) -> state for many sequences at once: an open-addressing table that one kernel call steps a batch through.

States are numbers that the table's owner gives out; nothing here knows what they stand for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.jit import kernel, unowned

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
EMPTY = -1
_MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 / golden ratio, odd (Knuth, TAOCP 3, 6.4), as a signed number


class Transitions:
    """The table, at most half full: `keys` int64 [capacity] are state << 32 | token, or `EMPTY`; `values` int32 [capacity]."""

    def __init__(self, capacity: int = 4096) -> None:
        self.keys: Int64 = np.full(capacity, EMPTY, np.int64)
        self.values: Int32 = np.zeros(capacity, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, state: int, token: int, after: int) -> None:
        """Remember one transition."""
        if 2 * (self._count + 1) > len(self.keys):
            old_keys, old_values = self.keys, self.values
            self.keys = np.full(2 * len(old_keys), EMPTY, np.int64)
            self.values = np.zeros(2 * len(old_keys), np.int32)
            _move(old_keys, old_values, self.keys, self.values)
        self._count += int(_put(self.keys, self.values, state << 32 | token, after))


@kernel
def _place(keys, key):  # type: ignore[no-untyped-def]  # numba
    """Where `key` is, or the free place where it belongs."""
    mask = len(keys) - 1  # the capacity is a power of two
    hashed = key * _MULTIPLIER
    at = (hashed ^ (hashed >> 32)) & mask
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + 1) & mask
    return at


@kernel
def _put(keys, values, key, value):  # type: ignore[no-untyped-def]  # numba
    at = _place(keys, key)
    is_new = keys[at] == EMPTY
    keys[at] = key
    values[at] = value
    return is_new


@kernel
def _move(old_keys, old_values, keys, values):  # type: ignore[no-untyped-def]  # numba
    for i in range(len(old_keys)):
        if old_keys[i] != EMPTY:
            _put(keys, values, old_keys[i], old_values[i])


@kernel
def step_all(slots, tokens, keys, values, current, lengths, trail_states, trail_tokens, accepted):  # type: ignore[no-untyped-def]  # numba
    """Step the sequences in `slots` int32 [n] by `tokens` int32 [n], each slot once, as far as the table knows.

    `current` int32 [capacity] is each slot's state; what it leaves is noted in `trail_states` and `trail_tokens`
    int32 [capacity, trail length] at `lengths`. `accepted` bool [n] says who moved; returns how many did not.
    """
    slots, tokens, keys, values, current = unowned(slots), unowned(tokens), unowned(keys), unowned(values), unowned(current)
    lengths, trail_states, trail_tokens = unowned(lengths), unowned(trail_states), unowned(trail_tokens)
    accepted = unowned(accepted)
    num_missed = 0
    for i in range(len(slots)):
        slot, token = slots[i], np.int64(tokens[i])
        state, length = np.int64(current[slot]), lengths[slot]
        accepted[i] = False
        if state >= 0 and token >= 0 and length < trail_states.shape[1]:
            key = state << 32 | token
            at = _place(keys, key)
            if keys[at] == key:
                trail_states[slot, length] = state
                trail_tokens[slot, length] = token
                lengths[slot] = length + 1
                current[slot] = values[at]
                accepted[i] = True
        num_missed += not accepted[i]
    return num_missed


@kernel
def gather(slots, current, facts, which, out):  # type: ignore[no-untyped-def]  # numba
    """`facts[which]` of each slot's state in `out` int64 [n], -1 where it is not known; returns how many are not."""
    slots, current, facts, out = unowned(slots), unowned(current), unowned(facts), unowned(out)
    num_missed = 0
    for i in range(len(slots)):
        state = current[slots[i]]
        out[i] = facts[which, state] if state >= 0 else -1
        num_missed += out[i] < 0
    return num_missed
