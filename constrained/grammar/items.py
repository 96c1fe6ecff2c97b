"""Array plans: what each element may be, what is still owed, and the cheapest way to the end.

Elements that must differ from those before, or equal one of them, meet nodes that are made when those are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from constrained.errors import FuelError
from constrained.grammar.clauses import Clause, Clauses, holds_at_end
from constrained.grammar.shapes import ArrayShape, ItemLiteral, NodeKey, join
from constrained.grammar.string_sets import UNBOUNDED

ROOM = 64  # how many values are looked for at least, to know that an array does not run out of them


class Values(Protocol):
    """What a plan asks of the nodes."""

    max_alternatives: int

    def min_len(self, key: NodeKey) -> int:
        """Bytes of the shortest text."""

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets the node."""

    def negated(self, key: NodeKey) -> NodeKey:
        """The complement of a node that is one obligation."""

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node, where that is one constant."""

    def left_out(self, key: NodeKey) -> str | None:
        """The canonical text of that constant."""

    def one_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of the values with these canonical texts."""

    def none_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of all other values."""

    def values(self, key: NodeKey, limit: int) -> frozenset[str] | None:
        """The canonical texts of all values that meet a node; None where they are more than `limit`."""


class Repeat(Enum):
    """Where an array stands that must hold some value twice."""

    OPEN = "nothing is chosen"
    CHOSEN = "the element in `values`, or the one that is being read, comes again"
    DONE = "some value came twice, or none has to"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an array is.

    `index` is the next element's (as far as it matters), `counts` how many elements each `contains` has found, `owed` the open
    clauses. `values` are canonical texts, sorted: of all elements where they must differ, of the chosen one where it must come
    again.
    """

    index: int = 0
    counts: tuple[int, ...] = ()
    owed: tuple[Clause, ...] = ()
    values: tuple[str, ...] = ()
    repeat: Repeat = Repeat.DONE

    def with_value(self, value: str) -> Standing:
        """The same when the value of the last element is known."""
        return replace(self, values=tuple(sorted({*self.values, value})))


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the search for an ending: `small` are the chosen nodes of few values, `pair` the node of what comes again."""

    index: int
    counts: tuple[int, ...]
    owed: tuple[Clause, ...]
    small: tuple[NodeKey, ...] = ()
    repeat: Repeat = Repeat.DONE
    pair: NodeKey = ()


_START = Standing()
NO_CLAUSES: Clauses[ItemLiteral] = Clauses(())

Claim = tuple[NodeKey, tuple[int, ...], tuple[Clause, ...]]
Link = tuple["Link", NodeKey] | None
Ending = tuple[int, tuple[NodeKey, ...]]


class ArrayPlan:
    """An array shape laid out for generation."""

    def __init__(self, shape: ArrayShape, nodes: Values) -> None:
        self.shape = shape
        self.is_plain = shape.is_plain
        self._nodes = nodes
        self._clauses: Clauses[ItemLiteral] = Clauses(shape.clauses) if shape.clauses else NO_CLAUSES
        self._literals: dict[int, list[int]] = {}
        for literal in self._clauses.literals:
            self._literals.setdefault(literal.index, []).append(self._clauses.number(literal))
        if self.is_plain:
            self.start = _START
            self._last = self._needed = max(len(shape.prefix), shape.min_items)
        else:
            repeat = Repeat.OPEN if shape.repeats else Repeat.DONE
            self.start = Standing(counts=(0,) * len(shape.contains), owed=self._clauses.all, repeat=repeat)
            starts = (contained.start for contained in shape.contains)
            self._last = max(len(shape.prefix), shape.min_items, *starts, *(index + 1 for index in self._literals), 0)
            self._needed = self._last + sum(contained.least for contained in shape.contains)
        self._settled = False
        # Elements that differ and are alike else: of how many values it is known that there are more, and how many there are.
        self.is_uniform = shape.distinct and not (shape.prefix or shape.contains or shape.clauses or shape.repeats)
        self._more_than, self._num_values = -1, UNBOUNDED
        self._endings: dict[tuple[Standing, NodeKey], Ending | None] = {}
        self._some_endings: dict[tuple[Standing, NodeKey], Ending | None] = {}
        self._choices_memo: dict[Standing, list[tuple[NodeKey, Standing]]] = {}

    def settle(self) -> None:
        """From now on no node's emptiness changes."""
        self._settled = True

    def awaits_value(self, standing: Standing) -> bool:
        """Whether what may follow depends on the value of the element just read."""
        return self.shape.distinct or (standing.repeat is Repeat.CHOSEN and not standing.values)

    def member_nodes(self) -> list[NodeKey]:
        """Every node that an element may have to meet, but for those that depend on values or on two elements."""
        found: dict[NodeKey, None] = {}
        for base in dict.fromkeys(self.shape.item(index) for index in range(len(self.shape.prefix) + 1)):
            options = {base: None}
            for contained in self.shape.contains:
                further = [join(node, contained.node) for node in options]
                if contained.most < UNBOUNDED:
                    further += [join(node, self._nodes.negated(contained.node)) for node in options]
                options |= dict.fromkeys(further)
                if len(options) > self._nodes.max_alternatives:
                    raise FuelError(f"more than {self._nodes.max_alternatives} alternatives of one item (max_alternatives)")
            found |= options
        return list(found)

    # -- what may come

    def may_close(self, standing: Standing) -> bool:
        """Whether the array may end."""
        if self.is_plain:
            return standing.index >= self.shape.min_items
        return self._is_enough(standing) and standing.repeat is Repeat.DONE

    def may_go_on(self, standing: Standing) -> bool:
        """Whether another element may come."""
        return self.is_roomy(standing) or bool(self.choices(standing))

    def is_roomy(self, standing: Standing, more: int = 1) -> bool:
        """Whether it is known that so many more elements may come as far as values go: there are more than the array needs."""
        if not (self.is_uniform and self._settled and standing.index < self.shape.max_items >= self.shape.min_items):
            return False
        number = len(standing.values) + self._needed + more
        if number > self._more_than and self._num_values >= UNBOUNDED:
            limit = max(2 * number, ROOM)
            values = self._nodes.values(self.shape.rest, limit)
            if values is None:
                self._more_than = limit
            else:
                self._num_values = len(values)
        return number <= self._more_than or number <= self._num_values < UNBOUNDED

    def choices(self, standing: Standing) -> list[tuple[NodeKey, Standing]]:
        """What the next element may be, each with how the array stands after it (but for its value)."""
        known = self._choices_memo.get(standing)
        if known is None:
            if self.is_plain:
                known = self._choices_memo[standing] = self._plain_choices(standing.index)
                return known
            found = dict.fromkeys(self._find_choices(standing))
            known = self._choices_memo[standing] = [(node, after) for node, after in found if not self._nodes.is_empty(node)]
        return known

    def _plain_choices(self, index: int) -> list[tuple[NodeKey, Standing]]:
        node = self.shape.item(index)
        if index >= self.shape.max_items or self._nodes.is_empty(node):
            return []
        return [(node, Standing(self._next(index)))]

    def _find_choices(self, standing: Standing) -> Iterator[tuple[NodeKey, Standing]]:
        for node, counts, owed in self._claims(standing):
            after = replace(standing, index=self._next(standing.index), counts=counts, owed=owed)
            if standing.repeat is Repeat.CHOSEN:
                yield join(node, self._nodes.one_of(standing.values)), replace(after, values=(), repeat=Repeat.DONE)
                if self.can_end(after):
                    yield node, after
            elif standing.repeat is Repeat.OPEN:
                if self.can_end(after):
                    yield node, after
                for partner in self._partners(node, after):
                    yield partner, replace(after, repeat=Repeat.CHOSEN)
            elif self.can_end(after):
                bad = (*standing.values, *self._harmful(after)) if self.shape.distinct else ()
                yield join(node, self._nodes.none_of(tuple(sorted(bad)))), after

    def _partners(self, node: NodeKey, after: Standing) -> Iterator[NodeKey]:
        """The nodes of an element that may come again after it."""
        for other in self.member_nodes():
            pair = join(node, other)
            chosen = replace(after, repeat=Repeat.CHOSEN)
            if not self._nodes.is_empty(pair) and self.can_end(chosen, pair):
                yield pair

    def _harmful(self, after: Standing) -> set[str]:
        """The values of few that later elements need: with one of them here there would be no way to the end."""
        ending = self._ending(after, (), measures=False)
        assert ending is not None
        small = [self._small_values(node, after.values) for node in set(ending[1])]
        candidates = {value for values in small if values is not None for value in values}
        return {value for value in candidates if not self.can_end(after.with_value(value))}

    def _claims(self, at: Standing | _Place) -> list[Claim]:
        """What the next element may be, by which of `contains` and literals it is claimed to meet; with what is then owed."""
        if at.index >= self.shape.max_items:
            return []
        found: list[tuple[NodeKey, tuple[int, ...]]] = [(self.shape.item(at.index), ())]
        for contained, number in zip(self.shape.contains, at.counts, strict=True):
            following = []
            for node, before in found:
                if at.index < contained.start or (contained.most >= UNBOUNDED and number >= contained.least):
                    following.append((node, (*before, number)))
                    continue
                claimed = join(node, contained.node)
                if number < contained.most:
                    following.append((claimed, (*before, number + 1)))
                if contained.most < UNBOUNDED:
                    following.append((join(node, self._nodes.negated(contained.node)), (*before, number)))
                elif claimed != node:
                    following.append((node, (*before, number)))
            found = following
        if not at.owed:
            return [(node, after, ()) for node, after in found if not self._nodes.is_empty(node)]
        literals = tuple(self._literals.get(at.index, ()))
        return [
            (claimed, after, owed)
            for node, after in found
            for claimed, owed in self._clauses.claims(self._nodes, literals, node, at.owed, lambda _: True)
        ]

    def _next(self, index: int) -> int:
        """The index after `index`, or the first one from which on nothing changes any more."""
        return index + 1 if self.shape.max_items < UNBOUNDED else min(index + 1, self._last)

    def _is_enough(self, at: Standing | _Place) -> bool:
        wanted = zip(self.shape.contains, at.counts, strict=True)
        found = at.index >= self.shape.min_items and all(number >= contained.least for contained, number in wanted)
        return found and all(holds_at_end(clause) for clause in at.owed)

    # -- the end

    def min_len(self) -> int | None:
        """Bytes of the shortest compact text of such an array; None where there is none.

        Where elements must differ this is a lower bound.
        """
        if self.is_plain:
            return self._plain_len()
        ending = None if self.shape.distinct and self.shape.repeats else self.ending(self.start)
        return None if ending is None else 2 + ending[0] - bool(ending[1])

    def is_empty(self) -> bool:
        """Whether there is no such array (where elements must differ: for all that is known); no length is asked for."""
        return (self.shape.distinct and self.shape.repeats) or not self.can_end(self.start)

    def _plain_len(self) -> int | None:
        least, prefix = self.shape.min_items, self.shape.prefix
        nodes = [*prefix[:least], *([self.shape.rest] if least > len(prefix) else [])]
        if least > self.shape.max_items or any(self._nodes.is_empty(node) for node in nodes):
            return None
        items = sum(self._nodes.min_len(node) for node in prefix[:least])
        further = max(0, least - len(prefix))
        return 2 + max(0, least - 1) + items + (further * self._nodes.min_len(self.shape.rest) if further else 0)

    def ending(self, standing: Standing, last: NodeKey = ()) -> Ending | None:
        """The nodes of the elements of a shortest rest, and its length in bytes with a comma for each.

        None where there is no way to the end. Which values they get is not settled here, but elements that must differ can.
        `last` is the node of the element just read, where its value is not known yet and must come again.
        """
        if self.is_plain:
            return self._required_rest(standing.index)
        return self._ending(standing, last, measures=True)

    def can_end(self, standing: Standing, last: NodeKey = ()) -> bool:
        """Whether there is a way to the end (`ending`); no length is asked for."""
        if self.is_plain:
            return self._required_nodes(standing.index) is not None
        return self._ending(standing, last, measures=False) is not None

    def _ending(self, standing: Standing, last: NodeKey, *, measures: bool) -> Ending | None:
        """`ending`, or any where lengths are not asked for."""
        pair: NodeKey = ()
        if standing.repeat is Repeat.CHOSEN:
            pair = self._nodes.one_of(standing.values) if standing.values else last
        memo = (standing, pair)
        if memo in self._endings:
            return self._endings[memo]
        if not measures and memo in self._some_endings:
            return self._some_endings[memo]
        place = _Place(standing.index, standing.counts, standing.owed, (), standing.repeat, pair)
        found = self._search(place, standing.values, measures=measures)
        if self._settled:
            (self._endings if measures else self._some_endings)[memo] = found
        return found

    def _search(self, start: _Place, values: tuple[str, ...], *, measures: bool) -> Ending | None:
        ticket = count()
        heap: list[tuple[int, int, _Place, Link]] = [(0, next(ticket), start, None)]
        done: set[_Place] = set()
        while heap:
            cost, _, place, link = heappop(heap)
            if place in done:
                continue
            done.add(place)
            if self._is_enough(place) and place.repeat is Repeat.DONE:
                return cost, _nodes(link)
            if len(done) > 100 * self._nodes.max_alternatives:
                raise FuelError("too many ways to end an array (100 times max_alternatives)")
            for node, counts, owed in self._claims(place):
                following = replace(place, index=self._next(place.index), counts=counts, owed=owed)
                for chosen, after in self._moves(node, following, values):
                    item = 1 + self._nodes.min_len(chosen) if measures else 1
                    heappush(heap, (cost + item, next(ticket), after, (link, chosen)))
        return None

    def _moves(self, node: NodeKey, after: _Place, values: tuple[str, ...]) -> Iterator[tuple[NodeKey, _Place]]:
        """What an element that meets `node` may be on the way to the end."""
        if after.repeat is Repeat.OPEN:
            for other in self.member_nodes():
                if not self._nodes.is_empty(pair := join(node, other)):
                    yield pair, replace(after, repeat=Repeat.CHOSEN, pair=pair)
        elif after.repeat is Repeat.CHOSEN:
            same = join(after.pair, node)
            if (same == after.pair or len(values) == 1) and not self._nodes.is_empty(same):
                yield same, replace(after, repeat=Repeat.DONE, pair=())
        elif self.shape.distinct and self._settled and self._small_values(node, values) is not None:
            small = tuple(sorted((*after.small, node)))
            if _can_differ(self._small_values(one, values) or frozenset() for one in small):
                yield node, replace(after, small=small)
            return
        yield node, after

    def _small_values(self, node: NodeKey, values: tuple[str, ...]) -> frozenset[str] | None:
        """The values that meet `node` and are not among `values`, where they are so few that others may use them up."""
        found = self._nodes.values(node, self._needed + len(values))
        return None if found is None else found - frozenset(values)

    def _required_rest(self, index: int) -> Ending | None:
        nodes = self._required_nodes(index)
        return None if nodes is None else (sum(1 + self._nodes.min_len(node) for node in nodes), nodes)

    def _required_nodes(self, index: int) -> tuple[NodeKey, ...] | None:
        """What the items that must still come have to meet; None where one cannot."""
        if self.shape.min_items > self.shape.max_items:
            return None
        nodes = tuple(self.shape.item(i) for i in range(index, self.shape.min_items))
        return None if any(map(self._nodes.is_empty, nodes)) else nodes


def _nodes(link: Link) -> tuple[NodeKey, ...]:
    found = []
    while link is not None:
        link, node = link
        found.append(node)
    return tuple(reversed(found))


def _can_differ(sets: Iterable[frozenset[str]]) -> bool:
    """Whether each set can give a value that no other gives (augmenting paths)."""
    holders: dict[str, int] = {}
    listed = list(sets)

    def place(index: int, tried: set[str]) -> bool:
        for value in listed[index] - tried:
            tried.add(value)
            if value not in holders or place(holders[value], tried):
                holders[value] = index
                return True
        return False

    return all(place(index, set()) for index in range(len(listed)))
