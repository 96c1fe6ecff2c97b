"""Nodes of few values: all of them, listed. Elements that must differ can run out of these."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from constrained.grammar import numerals, texts
from constrained.grammar.items import ArrayPlan, Standing
from constrained.grammar.members import ObjectPlan
from constrained.grammar.number_sets import NumberSet
from constrained.grammar.progress import Progress
from constrained.grammar.shapes import NodeKey
from constrained.grammar.string_sets import UNBOUNDED, StringSet

if TYPE_CHECKING:
    from constrained.grammar.nodes import Nodes


class _TooManyError(Exception):
    """There are more values than asked for."""


def few_values(nodes: Nodes, key: NodeKey, limit: int) -> frozenset[str] | None:
    """The canonical texts of all values that meet a node; None where they are more than `limit`."""
    try:
        return frozenset(_Listing(nodes, limit).node(key))
    except _TooManyError:
        return None


class _Listing:
    """One listing; gives up as soon as it has more than `limit` values of any one node, or a node within itself."""

    def __init__(self, nodes: Nodes, limit: int) -> None:
        self._nodes = nodes
        self._limit = limit
        self._inside: set[NodeKey] = set()
        self._memo: dict[NodeKey, set[str]] = {}

    def node(self, key: NodeKey) -> set[str]:
        if key in self._memo:
            return self._memo[key]
        if self._nodes.is_empty(key):
            return set()
        node = self._nodes[key]
        if key in self._inside:
            raise _TooManyError  # a value inside a value of the same node: there is no end of them
        self._inside.add(key)
        found: set[str] = set(node.literals)
        for numbers in node.numbers:
            self._collect(found, self._numbers(numbers))
        for strings in node.strings:
            self._collect(found, self._strings(strings))
        for array in node.arrays:
            plan = self._nodes.array_plan(array)
            self._collect(found, (f"[{','.join(items)}]" for items in self._arrays(plan, plan.start)))
        for shape in node.objects:
            plan_ = self._nodes.plan(shape)
            self._collect(found, (_object(members) for members in self._objects(plan_, plan_.start, 0)))
        self._inside.remove(key)
        self._memo[key] = found
        return found

    def _collect(self, found: set[str], values: Iterator[str]) -> None:
        for value in values:
            found.add(value)
            if len(found) > self._limit:
                raise _TooManyError

    def _numbers(self, numbers: NumberSet) -> Iterator[str]:
        for value in self._number_values(numbers):
            whole = value.denominator == 1
            yield texts.canonical(int(value) if whole else texts.parsed(numerals.decimal_text(value) or "0"))

    def _number_values(self, numbers: NumberSet) -> Iterator[Fraction]:
        if numbers.values is not None:
            yield from (value for value in numbers.values if self._can_be_written(value))
            return
        low, high, step = numbers.lower, numbers.upper, numbers.step
        if low is not None and high is not None and low.value == high.value:
            step = abs(low.value) or Fraction(1)
        if step is None or low is None or high is None:
            raise _TooManyError
        multiples = (step * n for n in range(ceil(low.value / step), floor(high.value / step) + 1))
        yield from (value for value in multiples if value in numbers)

    def _can_be_written(self, value: Fraction) -> bool:
        return numerals.min_number_len(NumberSet(values=frozenset((value,))), self._nodes.notation) is not None

    def _strings(self, strings: StringSet) -> Iterator[str]:
        values = strings.values if strings.values is not None else strings.as_language().values(self._limit)
        if values is None:
            raise _TooManyError
        return (texts.canonical(value) for value in values)

    def _arrays(self, plan: ArrayPlan, standing: Standing) -> Iterator[tuple[str, ...]]:
        if plan.may_close(standing):
            yield ()
        choices = plan.choices(standing)
        if choices and plan.shape.max_items >= UNBOUNDED and not plan.shape.distinct:
            raise _TooManyError
        for node, after in choices:
            for value in sorted(self.node(node)):
                stand = after.with_value(value) if plan.awaits_value(after) else after
                for rest in self._arrays(plan, stand):
                    yield (value, *rest)

    def _objects(self, plan: ObjectPlan, progress: Progress, last: int) -> Iterator[tuple[tuple[str, str], ...]]:
        """The members of each object, keys in the order of the plan's tags."""
        if plan.may_close(progress):
            yield ()
        if plan.may_add(progress) or plan.open_classes(progress):
            raise _TooManyError
        for tag in (tag for tag in plan.candidates(progress) if tag > last):
            for node, after in plan.choices(progress, tag):
                for value in sorted(self.node(node)):
                    for rest in self._objects(plan, after, tag):
                        yield ((plan.names[tag - 1], value), *rest)


def _object(members: tuple[tuple[str, str], ...]) -> str:
    listed = sorted((texts.canonical(name), value) for name, value in members)
    return "{" + ",".join(f"{name}:{value}" for name, value in listed) + "}"
