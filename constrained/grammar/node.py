"""A node: what one value may be, by JSON type, and how short it can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from constrained.grammar.number_sets import NumberSet, union
from constrained.grammar.shapes import (
    ARRAY,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Arm,
    ArrayShape,
    NodeKey,
    ObjectShape,
)
from constrained.grammar.string_sets import ALL_STRINGS, StringSet

INFINITE = 1 << 60

_LITERALS = frozenset((NULL, TRUE, FALSE))


@dataclass(slots=True)
class Node:
    """What one value may be: literals, sets of numbers and strings, and the shapes of arrays and objects.

    `min_len` is the length in bytes of the shortest compact text; INFINITE where no value exists.
    """

    key: NodeKey
    literals: frozenset[str]
    numbers: tuple[NumberSet, ...]
    strings: tuple[StringSet, ...]
    arrays: tuple[ArrayShape, ...]
    objects: tuple[ObjectShape, ...]
    arms: tuple[Arm, ...]
    min_len: int = INFINITE

    def at(self, key: NodeKey) -> Node:
        """The same under another key."""
        return Node(key, self.literals, self.numbers, self.strings, self.arrays, self.objects, self.arms, self.min_len)

    @property
    def is_empty(self) -> bool:
        """Whether no value meets the node."""
        return self.min_len >= INFINITE

    @property
    def num_alternatives(self) -> int:
        """How many literals, sets and shapes there are."""
        return len(self.literals) + len(self.numbers) + len(self.strings) + len(self.arrays) + len(self.objects)


def node_of(key: NodeKey, arms: Sequence[Arm]) -> Node:
    """The node that is the union of the arms, not measured yet."""
    if len(arms) == 1:
        return _node_of_one(key, arms[0])
    if not arms:
        return Node(key, frozenset(), (), (), (), (), ())
    kinds = frozenset[str]().union(*(arm.kinds for arm in arms))
    return Node(
        key,
        kinds & _LITERALS,
        union(arm.number for arm in arms if NUMBER in arm.kinds),
        _merge_strings(arm.string for arm in arms if STRING in arm.kinds),
        tuple(dict.fromkeys(arm.array for arm in arms if ARRAY in arm.kinds)),
        tuple({arm.object.identity: arm.object for arm in arms if OBJECT in arm.kinds}.values()),
        tuple(arms),
    )


def _node_of_one(key: NodeKey, arm: Arm) -> Node:
    kinds = arm.kinds
    return Node(
        key,
        kinds & _LITERALS,
        (arm.number,) if NUMBER in kinds else (),
        (arm.string,) if STRING in kinds else (),
        (arm.array,) if ARRAY in kinds else (),
        (arm.object,) if OBJECT in kinds else (),
        (arm,),
    )


def _merge_strings(sets: Iterable[StringSet]) -> tuple[StringSet, ...]:
    """The union: finite sets in one, and nothing beside a set that holds it."""
    distinct = list(dict.fromkeys(sets))
    if ALL_STRINGS in distinct:
        return (ALL_STRINGS,)
    infinite = [s for s in distinct if s.values is None]
    finite = frozenset(v for s in distinct if s.values is not None for v in s.values if not any(v in i for i in infinite))
    return (*infinite, *((StringSet(values=finite),) if finite else ()))
