"""How far an object is, and the members that end it."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.grammar.clauses import Clause
from constrained.grammar.shapes import NodeKey

FREE = 0  # the tag of a key that no property and no class names


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an object is.

    In the order of the schema `position` is the next property; in any order `there` has a bit for each property that is
    past. `seen` are the keys of classes, `count` the members (as far as their number matters), `owed` the open clauses.
    """

    position: int = 0
    there: int = 0
    seen: frozenset[str] = frozenset()
    count: int = 0
    owed: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cheapest ending: its tag, its key (None where any free key will do) and its node."""

    tag: int
    key: str | None
    node: NodeKey
