"""Clauses over one open object or array: which of them a member may settle, and what is then still owed.

A clause asks that one of its literals holds; literals say that some member, or every member of a kind, meets a node. Twelve
clauses of two literals are twelve clauses, not 4,096 alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from constrained.errors import FuelError
from constrained.grammar.shapes import ItemLiteral, MemberLiteral, NodeKey, join

L = TypeVar("L", MemberLiteral, ItemLiteral)
# Literals by number: i + 1 is the i-th one where it asks for some member, -(i + 1) where it asks of every member.
Clause = tuple[int, ...]


class Emptiness(Protocol):
    """What claims ask of the nodes."""

    max_alternatives: int

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets the node."""

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node, where that is one constant."""

    def left_out(self, key: NodeKey) -> str | None:
        """The canonical text of that constant."""

    def none_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of all values but those with these canonical texts."""


class Clauses(Generic[L]):
    """The clauses of one shape, with their literals by number."""

    def __init__(self, clauses: Sequence[tuple[L, ...]]) -> None:
        self.literals: list[L] = list(dict.fromkeys(literal for clause in clauses for literal in clause))
        self._number: dict[L, int] = {one: i + 1 if one.some else -(i + 1) for i, one in enumerate(self.literals)}
        self.all: tuple[Clause, ...] = tuple(tuple(self._number[one] for one in clause) for clause in clauses)

    def number(self, literal: L) -> int:
        """The number of a literal."""
        return self._number[literal]

    def claims(
        self,
        nodes: Emptiness,
        literals: tuple[int, ...],
        node: NodeKey,
        owed: tuple[Clause, ...],
        is_lost: Callable[[int], bool],
    ) -> list[tuple[NodeKey, tuple[Clause, ...]]]:
        """What a member that must meet `node` may be, by which of `literals` it is claimed to meet; with what is then owed.

        A claim that is not made asks nothing of the member, except where the complement is one constant: then that is asked,
        so that many constants make as many alternatives, not two to their number. `is_lost` says that a literal cannot hold
        any more when its claim is not made.
        """
        literals = tuple(number for number in literals if any(number in clause for clause in owed))
        if not literals:
            return [] if nodes.is_empty(node) else [(node, owed)]
        found: dict[tuple[NodeKey, tuple[Clause, ...]], None] = {}
        literals, begun = self._by_constant(nodes, literals, node, owed, is_lost)
        pending = [(0, here, left) for here, left in begun]
        while pending:
            if len(pending) + len(found) > nodes.max_alternatives:
                raise FuelError(f"more than {nodes.max_alternatives} alternatives of one member or item (max_alternatives)")
            index, here, open_ = pending.pop()
            if nodes.is_empty(here):
                continue
            while index < len(literals) and not any(literals[index] in clause for clause in open_):
                index += 1
            if index == len(literals):
                found[here, open_] = None
                continue
            number = literals[index]
            asked = self.literals[abs(number) - 1].node
            claimed = join(here, asked)
            if claimed != here:
                left = open_
                if is_lost(number):
                    left = _without(open_, number)
                if all(left):
                    other = nodes.opposite(asked)
                    pending.append((index + 1, here if other is None else join(here, other), left))
            settled = tuple([clause for clause in open_ if number not in clause]) if number > 0 else open_
            pending.append((index + 1, claimed, settled))
        return list(found)

    def _by_constant(
        self,
        nodes: Emptiness,
        literals: tuple[int, ...],
        node: NodeKey,
        owed: tuple[Clause, ...],
        is_lost: Callable[[int], bool],
    ) -> tuple[tuple[int, ...], list[tuple[NodeKey, tuple[Clause, ...]]]]:
        """The literals that each leave one constant out, settled together: the member is one of the constants, or none of them.

        Returns the other literals, and what the member may be with what is then owed.
        """
        constants: dict[str, list[int]] = {}
        for number in literals:
            if number > 0:
                text = nodes.left_out(self.literals[number - 1].node)
                if text is not None:
                    constants.setdefault(text, []).append(number)
        if len(constants) < 2:
            return literals, [(node, owed)]
        grouped = frozenset(number for numbers in constants.values() for number in numbers)
        by_held: dict[frozenset[int], list[int]] = {}
        for index, clause in enumerate(owed):
            by_held.setdefault(grouped.intersection(clause), []).append(index)
        settled = tuple(owed[index] for index in by_held.get(frozenset(), ()))
        found = [(join(node, nodes.none_of(tuple(sorted(constants)))), settled)]
        for numbers in constants.values():
            mine, lost = set(numbers), [number for number in numbers if is_lost(number)]
            left = tuple(owed[index] for index in sorted(at for held, those in by_held.items() if held <= mine for at in those))
            if lost:
                left = tuple(tuple(one for one in clause if one not in lost) for clause in left)
            other = nodes.opposite(self.literals[numbers[0] - 1].node)
            if all(left) and other is not None:
                found.append((join(node, other), left))
        return tuple(number for number in literals if number not in grouped), found


def _without(clauses: tuple[Clause, ...], number: int) -> tuple[Clause, ...]:
    """The clauses without one of the literals."""
    return tuple([tuple([one for one in clause if one != number]) if number in clause else clause for clause in clauses])


def holds_at_end(clause: Clause) -> bool:
    """Whether a clause holds if no member follows."""
    return any(number < 0 for number in clause)
