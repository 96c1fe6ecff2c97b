"""Sets of stacks as integers: equal sets are one integer.

A set is a minimal acyclic automaton that reads its stacks from the top: sorted entries (place, set of the stacks below
it), one per place. So texts with many readings hold one set, not a thread for each stack, and their number of threads is
bounded by the grammar (compare the graph-structured stack of Tomita, 1986).
"""

from __future__ import annotations

EMPTY_STACK = -1  # the entry of the empty stack
BOTTOM = 0  # the set of the empty stack alone

Entries = tuple[tuple[int, int], ...]


class Stacks:
    """All sets of stacks of one machine."""

    def __init__(self) -> None:
        self.entries: list[Entries] = []
        self._index: dict[Entries, int] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._intern(((EMPTY_STACK, BOTTOM),))

    def __len__(self) -> int:
        return len(self.entries)

    def push(self, place: int, below: int) -> int:
        """The stacks of `below`, each with `place` on top."""
        return self._intern(((place, below),))

    def holds_empty(self, stacks: int) -> bool:
        """Whether the empty stack is in the set."""
        return self.entries[stacks][0][0] == EMPTY_STACK

    def frames(self, stacks: int) -> Entries:
        """The places on top, each with the stacks below it."""
        entries = self.entries[stacks]
        return entries[1:] if entries[0][0] == EMPTY_STACK else entries

    def union(self, left: int, right: int) -> int:
        """The stacks of both sets. Stacks may be deep, so this does not recurse."""
        pending = [(left, right)]
        while pending:
            pair = _ordered(*pending[-1])
            if pair[0] == pair[1] or pair in self._unions:
                pending.pop()
                continue
            missing = [both for both in self._common(*pair) if both[0] != both[1] and both not in self._unions]
            if missing:
                pending += missing
                continue
            merged = dict(self.entries[pair[0]])
            for place, below in self.entries[pair[1]]:
                merged[place] = self._known_union(merged[place], below) if place in merged else below
            self._unions[pair] = self._intern(tuple(sorted(merged.items())))
        return self._known_union(left, right)

    def _common(self, left: int, right: int) -> list[tuple[int, int]]:
        """What lies below the places that are on top in both sets."""
        here = dict(self.entries[left])
        return [_ordered(here[place], below) for place, below in self.entries[right] if place in here]

    def _known_union(self, left: int, right: int) -> int:
        return left if left == right else self._unions[_ordered(left, right)]

    def _intern(self, entries: Entries) -> int:
        found = self._index.get(entries)
        if found is None:
            found = self._index[entries] = len(self.entries)
            self.entries.append(entries)
        return found


def _ordered(left: int, right: int) -> tuple[int, int]:
    return (left, right) if left < right else (right, left)
