"""Clauses over one open object or array: which of them a member may settle, and what is then still owed.

A clause asks that one of its literals holds; literals say that some member, or every member of a kind, meets a node. Twelve
clauses of two literals are twelve clauses, not 4,096 alternatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from constrained.grammar.shapes import ItemLiteral, MemberLiteral, NodeKey, join

L = TypeVar("L", MemberLiteral, ItemLiteral)


class Emptiness(Protocol):
    """What claims ask of the nodes."""

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets the node."""

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node, where that is one constant."""


def claims(
    nodes: Emptiness,
    literals: tuple[L, ...],
    node: NodeKey,
    owed: tuple[tuple[L, ...], ...],
    is_lost: Callable[[L], bool],
) -> list[tuple[NodeKey, tuple[tuple[L, ...], ...]]]:
    """What a member that must meet `node` may be, by which of its `literals` it is claimed to meet; with what is then owed.

    A claim that is not made asks nothing of the member, except where the complement is one constant: then that is asked, so
    that many constants make as many alternatives, not two to their number. `is_lost` says that a literal cannot hold any
    more when its claim is not made.
    """
    found: dict[tuple[NodeKey, tuple[tuple[L, ...], ...]], None] = {}
    pending = [(0, node, owed)]
    while pending:
        index, here, open_ = pending.pop()
        if nodes.is_empty(here):
            continue
        while index < len(literals) and not any(literals[index] in clause for clause in open_):
            index += 1
        if index == len(literals):
            found[here, open_] = None
            continue
        literal = literals[index]
        claimed = join(here, literal.node)
        if claimed != here:
            left = open_
            if is_lost(literal):
                left = tuple(tuple(one for one in clause if one != literal) for clause in open_)
            if all(left):
                other = nodes.opposite(literal.node)
                pending.append((index + 1, here if other is None else join(here, other), left))
        settled = tuple(clause for clause in open_ if literal not in clause) if literal.some else open_
        pending.append((index + 1, claimed, settled))
    return list(found)


def holds_at_end(clause: tuple[L, ...]) -> bool:
    """Whether a clause holds if no member follows."""
    return any(not literal.some for literal in clause)
