"""Clauses of an object shape in the light of its properties: what holds anyway goes, so does what cannot, what must is said.

Unit propagation, with glimpses as its only knowledge of nodes. The shape's values stay the same.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from constrained.grammar.factor import Clause, minimal
from constrained.grammar.language import Language
from constrained.grammar.shapes import ANYTHING, MemberLiteral, NodeKey, ObjectShape, join


class Judge(Protocol):
    """What simplification asks of the nodes."""

    nothing: NodeKey

    def show_nothing(self, key: NodeKey) -> bool:
        """Whether it is plain that no value meets a node."""

    def compare(self, key: NodeKey, other: NodeKey) -> tuple[bool, bool]:
        """Whether it is plain that what meets a node meets another one, and whether, that it does not."""


def simplified(shape: ObjectShape, judge: Judge) -> ObjectShape | None:
    """The same shape with fewer and shorter clauses; None where some clause cannot hold."""
    while shape.clauses:
        found: list[Clause] = []
        units: list[MemberLiteral] = []
        for clause in shape.clauses:
            left = _left(clause, shape, judge)
            if left is None:
                continue
            if not left:
                return None
            if len(left) == 1 and _name(left[0].keys) is not None:
                units.append(left[0])
            else:
                found.append(left)
        clauses = tuple(minimal(list(dict.fromkeys(found))))
        if not units and clauses == shape.clauses:
            return shape
        shape = _with_units(shape, units, clauses)
        if any(judge.show_nothing(shape.properties[name]) for name in shape.required):
            return None
    return shape


def _left(clause: Clause, shape: ObjectShape, judge: Judge) -> Clause | None:
    """The literals that are still open, as short as they can be said; None where one holds for certain."""
    left: dict[MemberLiteral, None] = {}
    for literal in clause:
        name = _name(literal.keys)
        if name is None:
            left[literal] = None
            continue
        here, is_there = shape.member(name), name in shape.required
        holds, fails = judge.compare(here, literal.node)
        if holds and (is_there or not literal.some):
            return None
        if fails and (is_there or literal.some):
            continue
        if holds or fails:
            literal = MemberLiteral(literal.keys, ANYTHING if holds else judge.nothing, literal.some)
        left[literal] = None
    return tuple(left)


def _with_units(shape: ObjectShape, units: list[MemberLiteral], clauses: tuple[Clause, ...]) -> ObjectShape:
    properties, required = dict(shape.properties), set(shape.required)
    for literal in units:
        name = _name(literal.keys)
        assert name is not None
        properties[name] = join(properties[name] if name in properties else shape.member(name), literal.node)
        if literal.some:
            required.add(name)
    return ObjectShape(
        MappingProxyType(properties), shape.layers, frozenset(required), shape.min_members, shape.max_members, clauses
    )


@lru_cache(maxsize=4096)
def _name(keys: Language) -> str | None:
    """The only string of a language; None where there is another."""
    found = keys.values(1)
    return found[0] if found else None
