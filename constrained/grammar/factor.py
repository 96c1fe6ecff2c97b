"""Alternatives that differ only in their objects, as one alternative with clauses.

The product of twelve pairs of alternatives has 4,096 arms; twelve arms with a clause each, met together, are one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from constrained.grammar.language import from_values
from constrained.grammar.shapes import (
    ANY,
    ANYTHING,
    OBJECT,
    Arm,
    MemberLiteral,
    NodeKey,
    ObjectShape,
)
from constrained.grammar.string_sets import UNBOUNDED

MAX_CLAUSES = 64

Clause = tuple[MemberLiteral, ...]


def factored(arms: list[Arm], is_nothing: Callable[[NodeKey], bool]) -> list[Arm]:
    """The same union in fewer arms, where all differ in nothing but their objects; `is_nothing` knows nodes of no value.

    Which member of a union an arm came from is not kept.
    """
    objects = [arm for arm in arms if OBJECT in arm.kinds]
    if len(objects) < 2 or any(arm.evaluated != arms[0].evaluated for arm in arms):
        return arms
    others = _others(arms)
    clauses = _disjunction([_clauses(arm.object) for arm in objects], is_nothing)
    if others is None or clauses is None:
        return arms
    names = dict.fromkeys(name for arm in objects for name in arm.object.properties)
    shape = ObjectShape(MappingProxyType(dict.fromkeys(names, ANYTHING)), clauses=clauses)
    return [replace(arms[0], kinds=others | {OBJECT}, object=shape, origin=-1)]


def _others(arms: list[Arm]) -> frozenset[str] | None:
    """The kinds beside objects that are allowed, where all values of a kind are or none is."""
    kinds: frozenset[str] = frozenset()
    for arm in arms:
        left = arm.kinds - {OBJECT}
        if left and (arm.number, arm.string, arm.array) != (ANY.number, ANY.string, ANY.array):
            return None
        kinds |= left
    return kinds


def _clauses(shape: ObjectShape) -> tuple[Clause, ...] | None:
    """A shape as clauses alone; None where it says more."""
    if shape.min_members or shape.max_members < UNBOUNDED:
        return None
    found = list(shape.clauses)
    for name, node in shape.properties.items():
        if name in shape.required:
            found.append((MemberLiteral(from_values((name,)), node),))
        elif node != ANYTHING:
            found.append((MemberLiteral(from_values((name,)), node, some=False),))
    for layer in shape.layers:
        others = ~from_values(shape.properties)
        for language, node in layer.patterns:
            if node != ANYTHING:
                found.append((MemberLiteral(language & ~from_values(shape.properties), node, some=False),))
            others &= ~language
        if layer.additional != ANYTHING:
            found.append((MemberLiteral(others, layer.additional, some=False),))
    return tuple(found)


def _disjunction(parts: list[tuple[Clause, ...] | None], is_nothing: Callable[[NodeKey], bool]) -> tuple[Clause, ...] | None:
    """Clauses of "one of the parts holds", each part a conjunction of clauses; None where they are too many."""
    found: list[Clause] = [()]
    for part in parts:
        if part is None:
            return None
        unions = dict.fromkeys(_union(before, more) for before in found for more in part)
        found = minimal([clause for clause in unions if not _is_tautology(clause, is_nothing)])
        if len(found) > MAX_CLAUSES:
            return None
    return tuple(found)


def _union(a: Clause, b: Clause) -> Clause:
    return tuple(dict.fromkeys((*a, *b)))


def minimal(clauses: list[Clause]) -> list[Clause]:
    """Without the clauses that follow from another one."""
    kept: dict[frozenset[MemberLiteral], Clause] = {}
    for own, clause in sorted(((frozenset(clause), clause) for clause in clauses), key=lambda pair: len(pair[0])):
        if not any(other <= own for other in kept):
            kept[own] = clause
    left = set(kept.values())
    return [clause for clause in clauses if clause in left]


def _is_tautology(clause: Clause, is_nothing: Callable[[NodeKey], bool]) -> bool:
    """Whether a clause says that a key is there or is not."""
    there = {literal.keys for literal in clause if literal.some and literal.node == ANYTHING}
    return any(not literal.some and literal.keys in there and is_nothing(literal.node) for literal in clause)
