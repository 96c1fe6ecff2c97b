"""The cheapest way to the end of an object that owes clauses, or any way: a search over its members."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from constrained.errors import FuelError
from constrained.grammar.clauses import Clause, holds_at_end
from constrained.grammar.progress import FREE, Member, Progress
from constrained.grammar.shapes import NodeKey
from constrained.grammar.string_sets import UNBOUNDED

if TYPE_CHECKING:
    from constrained.grammar.members import ObjectPlan

Link = tuple["Link", Member] | None
Owing = tuple[int, tuple[Clause, ...]]


class EndingSearch:
    """One search for a cheapest ending; for any, the furthest place first, where it does not measure members.

    A place in it is how many properties were looked at, what is owed, and how many keys of each class were taken.
    """

    def __init__(self, plan: ObjectPlan, start: Progress, *, measures: bool) -> None:
        self._plan, self._start, self._measures = plan, start, measures
        useful = self._useful = self._find_useful()
        self._order = [index for index in plan.left(start) if plan.required[index] or index + 1 in useful]
        owed = self._owed = self._find_owed()
        if owed:
            first = {literal: index for index, clause in reversed(list(enumerate(owed))) for literal in clause}
            literals = {index: plan.key_of(index + 1).literals for index in self._order}
            self._order.sort(key=lambda index: min((first[o] for o in literals[index] if o in first), default=-1))
        self._last = {o: place for place, index in enumerate(self._order) for o in plan.key_of(index + 1).literals}
        self._tags = [tag for tag in (*range(len(plan.names) + 1, len(plan.keys_by_tag)), FREE) if plan.keys_by_tag[tag]]
        self._fresh = {tag: plan.fresh_keys(tag, start.seen) for tag in self._tags}
        self._names: dict[int, list[str]] = {tag: [] for tag in self._tags}
        self._heap: list[tuple[int, int, int, Owing, tuple[int, ...], Link]] = []
        self._ticket = count()

    def _find_useful(self) -> set[int]:
        """The tags of keys that can help to settle a clause: one that is open, or one that a key so taken may open."""
        plan, owed = self._plan, self._start.owed
        useful = {index + 1 for index in plan.left(self._start) if plan.required[index]}
        tags = [tag for tag, key in enumerate(plan.keys_by_tag) if key is not None]
        if plan.counts and self._start.count < plan.shape.min_members:
            return set(tags)
        open_ = {clause for clause in owed if not holds_at_end(clause)}
        while True:
            settles = {literal for clause in open_ for literal in clause if literal > 0}
            useful |= {tag for tag in tags if not settles.isdisjoint(plan.key_of(tag).literals)}
            breaks = {one for tag in useful for one in plan.key_of(tag).literals if one < 0}
            more = {clause for clause in owed if clause not in open_ and not breaks.isdisjoint(clause)}
            if not more:
                return useful
            open_ |= more

    def _find_owed(self) -> tuple[Clause, ...]:
        """The clauses that don't hold as they are if no other keys are taken than those that may be."""
        plan = self._plan
        others = {tag for tag in self._useful if not 0 < tag <= len(plan.names)}
        taken = [plan.key_of(tag) for tag in others | {index + 1 for index in self._order}]
        broken = {one for key in taken for one in key.literals if one < 0}
        return tuple(clause for clause in self._start.owed if not any(one < 0 and one not in broken for one in clause))

    def cheapest(self) -> tuple[int, tuple[Member, ...]] | None:
        """The members of a rest, with a comma each how many bytes (0 where none are measured); None where there is no rest."""
        plan, start = self._plan, self._start
        done: set[tuple[int, Owing, tuple[int, ...]]] = set()
        self._push(0, 0, (start.count, self._owed), (0,) * len(self._tags), None)
        while self._heap:
            cost, ahead, _, owing, used, link = heappop(self._heap)
            place = -ahead
            if (place, owing, used) in done:
                continue
            done.add((place, owing, used))
            if len(done) > 50 * plan.max_alternatives:
                raise FuelError("too many ways to end an object (50 times max_alternatives)")
            if place < len(self._order):
                self._with_property(place, cost, owing, used, link)
            elif plan.is_done(*owing):
                return cost, _members(link)
            else:
                self._with_others(place, cost, owing, used, link)
        return None

    def _push(self, cost: int, place: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        if place and any(self._is_hopeless(clause, place) for clause in owing[1]):
            return
        heappush(self._heap, (cost, -place, next(self._ticket), owing, used, link))

    def _is_hopeless(self, clause: Clause, place: int) -> bool:
        others = self._plan.of_others
        return all(one > 0 and one not in others and self._last.get(one, -1) < place for one in clause)

    def _with_property(self, place: int, cost: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        """The next property, left out or taken."""
        plan, index, (number, owed) = self._plan, self._order[place], owing
        key = plan.key_of(index + 1)
        if not plan.required[index]:
            self._push(cost, place + 1, owing, used, link)
            if index + 1 not in self._useful or not plan.is_wanted(number, owed, key):
                return
        after = plan.after(Progress(count=number), index + 1).count
        if after > plan.shape.max_members:
            return
        for node, left in plan.claims(owed, index + 1):
            member = Member(index + 1, plan.names[index], node)
            self._push(cost + self._cost(plan.names[index], node), place + 1, (after, left), used, (link, member))

    def _with_others(self, place: int, cost: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        """A key of each class, or a free one, where that settles anything."""
        plan, (number, owed) = self._plan, owing
        after = plan.after(Progress(count=number), FREE).count
        if after > plan.shape.max_members:
            return
        for position, tag in enumerate(self._tags):
            if tag not in self._useful or not plan.is_wanted(number, owed, plan.key_of(tag)):
                continue
            name = self._name(tag, used[position])
            if name is None:
                continue
            more = (*used[:position], used[position] + 1, *used[position + 1 :])
            for node, left in plan.claims(owed, tag):
                if (after, left) != owing:
                    member = Member(tag, name if tag else None, node)
                    self._push(cost + self._cost(name, node), place, (after, left), more, (link, member))

    def _cost(self, name: str, node: NodeKey) -> int:
        return self._plan.member_len(name, node) if self._measures else 0

    def _name(self, tag: int, index: int) -> str | None:
        """The key of a class that is taken after `index` others."""
        names = self._names[tag]
        while len(names) <= index:
            name = next(self._fresh[tag], None)
            if name is None:
                return None
            names.append(name)
        return names[index]


def _members(link: Link) -> tuple[Member, ...]:
    found = []
    while link is not None:
        link, member = link
        found.append(member)
    found.reverse()
    # Free keys and those of classes come last; the others in the order of the plan.
    return tuple(sorted(found, key=lambda member: member.tag or UNBOUNDED))
