"""Object plans: in which order the members of an object shape come, what each key asks for, and the cheapest way to the end.

Known to the measure of nodes, to closings and to the automaton alike; no bytes here but the lengths of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from constrained.errors import FuelError
from constrained.grammar import texts
from constrained.grammar.clauses import Clause, Clauses, holds_at_end
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values
from constrained.grammar.shapes import ANYTHING, MemberLiteral, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED

MAX_LISTED_KEYS = 100  # a class of no more keys is generated as so many properties
FREE = 0  # the tag of a key that no property and no class names


class Lengths(Protocol):
    """What a plan asks of the nodes: INFINITE where no value meets one."""

    max_key_classes: int
    max_alternatives: int

    def min_len(self, key: NodeKey) -> int:
        """Bytes of the shortest text."""

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets the node."""

    def are_plain(self, keys: list[NodeKey]) -> bool:
        """Whether it is known without a look at each that no node is empty."""

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node, where that is one constant."""

    def left_out(self, key: NodeKey) -> str | None:
        """The canonical text of that constant."""

    def none_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of all values but those with these canonical texts."""


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
class Key:
    """One property, or one class of keys that ask the same: `name`, or `language` (None: every key that is not a property)."""

    name: str | None
    language: Language | None
    node: NodeKey
    literals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cheapest ending: its tag, its key (None where any free key will do) and its node."""

    tag: int
    key: str | None
    node: NodeKey


_START = Progress()
_NO_LANGUAGES: frozenset[Language] = frozenset()
NO_CLAUSES: Clauses[MemberLiteral] = Clauses(())

Claim = tuple[NodeKey, tuple[Clause, ...]]
Link = tuple["Link", Member] | None
Owing = tuple[int, tuple[Clause, ...]]


class ObjectPlan:
    """An object shape laid out for generation.

    Tags name what a key is: 0 is a free one, i + 1 the i-th of `names`, len(names) + 1 + k one of the k-th class. Properties
    come first in the order of the schema; in any order each key may come whenever what is still owed stays possible.
    """

    def __init__(self, shape: ObjectShape, nodes: Lengths, *, any_order: bool) -> None:
        self.shape = shape
        self.is_plain = shape.is_plain
        self._nodes = nodes
        self._any_order = any_order
        self._has_classes = shape.has_classes
        # Only properties and free keys may come, in their order, and nothing but the position tells how far an object is.
        self.is_sequence = self.is_plain and not any_order and not self._has_classes
        self._settled = False
        self._clauses: Clauses[MemberLiteral] = NO_CLAUSES
        if self._has_classes:
            self._clauses = Clauses(shape.clauses)
            named, classes, free = _keys(shape, self._clauses, nodes.max_key_classes)
            self.names = [key.name or "" for key in named]
            self._by_tag: list[Key | None] = [free, *named, *classes]
            self._node_by_tag = [key.node if key is not None else ANYTHING for key in self._by_tag]
            self._has_free = free is not None
        else:
            self.names = list(shape.properties)
            self._node_by_tag = [shape.of(_NO_LANGUAGES), *shape.properties.values()]
            self._has_free = True
        required = shape.required
        self._required = [name in required for name in self.names]
        self._last_required = len(self.names) - 1 - self._required[::-1].index(True) if True in self._required else -1
        self._counts = shape.max_members < UNBOUNDED or shape.min_members > len(required)
        self.start = Progress(owed=self._clauses.all) if self._clauses.all else _START
        self._alive: list[bool] | None = None
        self._sequel: list[list[tuple[NodeKey, Progress]] | None] = [None] * len(self._node_by_tag)
        self._owed_memo: dict[tuple[tuple[Clause, ...], int], tuple[Clause, ...] | None] = {}
        self._claims_memo: dict[tuple[tuple[Clause, ...], int], list[Claim]] = {}
        self._choices_memo: dict[tuple[Progress, int], list[tuple[NodeKey, Progress]]] = {}
        self._ending_members: dict[int, tuple[Member, int]] = {}
        self._endings: dict[Progress, tuple[int, tuple[Member, ...]] | None] = {}
        self._ways_out: dict[Progress, tuple[Member, ...] | None] = {}

    @cached_property
    def _keys_by_tag(self) -> list[Key | None]:
        """What each tag asks for; nothing at 0 where free keys are of several classes."""
        if self._has_classes:
            return self._by_tag
        named = [Key(name, None, node, ()) for name, node in self.shape.properties.items()]
        return [Key(None, None, self._node_by_tag[FREE], ()), *named]

    @cached_property
    def _of_others(self) -> set[int]:
        """The literals that keys may settle which no property names."""
        others = (self._keys_by_tag[FREE], *self._keys_by_tag[len(self.names) + 1 :])
        return {literal for key in others if key is not None for literal in key.literals}

    @cached_property
    def _last_tags(self) -> dict[int, int]:
        """The last name, by its tag, that each literal is about; past all names where it is about other keys."""
        found: dict[int, int] = dict.fromkeys(self._of_others, UNBOUNDED)
        for tag in range(len(self.names), 0, -1):
            for literal in self._key(tag).literals:
                found.setdefault(literal, tag)
        return found

    @cached_property
    def _only(self) -> dict[int, int]:
        """The tag of the only key that each literal is about, where that is a property; -1 where there are more."""
        tags: dict[int, list[int]] = {number: [] for clause in self._clauses.all for number in clause}
        for tag, key in enumerate(self._keys_by_tag):
            for number in key.literals if key is not None else ():
                tags[number].append(tag)
        return {
            number: those[0] if len(those) == 1 and 0 < those[0] <= len(self.names) else -1 for number, those in tags.items()
        }

    def settle(self) -> None:
        """From now on no node's emptiness changes."""
        self._settled = True

    def all_keys(self) -> Iterator[Key]:
        """The properties, then the classes of all other keys."""
        return (key for key in (*self._keys_by_tag[1:], self._keys_by_tag[FREE]) if key is not None)

    @property
    def alive(self) -> list[bool]:
        """By tag, whether some value can be that of such a key, where there is one."""
        if self._alive is not None:
            return self._alive
        free, *names = self._node_by_tag
        is_empty = self._nodes.is_empty
        found = [self._has_free and not is_empty(free)]
        found += [True] * len(names) if self._nodes.are_plain(names) else [not is_empty(node) for node in names]
        if self._settled:
            self._alive = found
        return found

    @property
    def required(self) -> list[bool]:
        """By position, whether a property must be there."""
        return self._required

    def node(self, tag: int) -> NodeKey:
        """What the value of a key with `tag` must meet."""
        return self._node_by_tag[tag]

    # -- what may come

    def check_breadth(self) -> None:
        """Raises `FuelError` where a member may have more alternatives than are followed, so that no document comes to it.

        There are most at the start; each thing that every value of a name is asked for doubles them at most.
        """
        if self.is_plain:
            return
        asked = {one for clause in self._clauses.all for one in clause}
        for tag in range(1, len(self.names) + 1):
            num_claims = sum(one in asked for one in self._key(tag).literals)
            if 1 << num_claims > self._nodes.max_alternatives:
                owed = self.start.owed if self._any_order else self._still_owed(self.start.owed, tag)
                self._claims(owed or (), tag)

    def may_close(self, progress: Progress) -> bool:
        """Whether the object may end."""
        if self.is_sequence:
            return progress.position > self._last_required
        return (
            not self._owes_required(progress)
            and (not self._counts or progress.count >= self.shape.min_members)
            and all(holds_at_end(clause) for clause in progress.owed)
        )

    def candidates(self, progress: Progress) -> list[int]:
        """The tags of the properties that may come next; in the order of the schema no further than the next required one."""
        if not self.is_sequence:
            return list(self._candidates(progress))
        found, alive, required = [], self.alive, self._required
        for index in range(progress.position, len(self.names)):
            if alive[index + 1]:
                found.append(index + 1)
            if required[index]:
                break
        return found

    def _candidates(self, progress: Progress) -> Iterator[int]:
        for index in self._left(progress):
            if self._has_choice(progress, index + 1):
                yield index + 1
            if self._required[index] and not self._any_order:
                break

    def may_add(self, progress: Progress) -> bool:
        """Whether a free key may come next."""
        if self.is_sequence:
            return progress.position > self._last_required and self.alive[FREE]
        return self._has_free and self._is_past(progress) and self._has_choice(progress, FREE)

    def open_classes(self, progress: Progress) -> list[tuple[int, Language]]:
        """The classes of which a key may come next: tag, and the keys that are not there yet."""
        first, end = len(self.names) + 1, len(self._node_by_tag)
        if first == end or not self._is_past(progress):
            return []
        found = [(tag, self.left_of(tag, progress.seen)) for tag in range(first, end)]
        return [(tag, language) for tag, language in found if not language.is_empty and self._has_choice(progress, tag)]

    def may_continue(self, progress: Progress) -> bool:
        """Whether any key may come next."""
        if not self.is_sequence:
            may_name = next(self._candidates(progress), None) is not None
            return may_name or self.may_add(progress) or bool(self.open_classes(progress))
        alive, required = self.alive, self._required
        for index in range(progress.position, len(self.names)):
            if alive[index + 1]:
                return True
            if required[index]:
                return False
        return self.may_add(progress)

    def choices(self, progress: Progress, tag: int) -> list[tuple[NodeKey, Progress]]:
        """What the member whose key has `tag` may be, each with how the object stands after it."""
        if self.is_sequence:
            return self._sequel[tag] or self._find_sequel(tag)
        place = (progress, tag)
        known = self._choices_memo.get(place)
        if known is None:
            after = self._after(progress, tag)
            if self.is_plain:
                node = self.node(tag)
                known = [] if self._nodes.is_empty(node) else [(node, after)]
            else:
                still = progress.owed if self._any_order else self._still_owed(progress.owed, tag)
                claims = [] if still is None else self._claims(still, tag)
                position, there, seen, number = after.position, after.there, after.seen, after.count
                stands = [(node, Progress(position, there, seen, number, owed)) for node, owed in claims]
                known = [(node, stand) for node, stand in stands if self._leads_on(progress, tag, stand)]
            self._choices_memo[place] = known
        return known

    def _find_sequel(self, tag: int) -> list[tuple[NodeKey, Progress]]:
        node = self._node_by_tag[tag]
        found = [] if self._nodes.is_empty(node) else [(node, Progress(tag or len(self.names)))]
        if self._settled:
            self._sequel[tag] = found
        return found

    def left_of(self, tag: int, seen: frozenset[str]) -> Language:
        """The keys of a class that are not there yet."""
        key = self._key(tag)
        assert key.language is not None
        return key.language & ~from_values(seen) if seen else key.language

    def is_of_class(self, tag: int) -> bool:
        """Whether a key with `tag` is of a class."""
        return tag > len(self.names)

    def free_tags(self) -> dict[str, int]:
        """The tag of each property that some value can fill."""
        alive = self.alive
        return {name: tag for tag, name in enumerate(self.names, 1) if alive[tag]}

    def _left(self, progress: Progress) -> Iterator[int]:
        if not self._any_order:
            return iter(range(progress.position, len(self.names)))
        return (index for index in range(len(self.names)) if not progress.there >> index & 1)

    def _owes_required(self, progress: Progress) -> bool:
        if not self._any_order:
            return progress.position <= self._last_required
        return any(self._required[index] for index in self._left(progress))

    def _is_past(self, progress: Progress) -> bool:
        """Whether keys that are no properties may come."""
        return self._any_order or not self._owes_required(progress)

    def _has_choice(self, progress: Progress, tag: int) -> bool:
        if self.is_plain:
            return not self._nodes.is_empty(self.node(tag))
        return bool(self.choices(progress, tag))

    def _after(self, progress: Progress, tag: int) -> Progress:
        """How the object stands after a member with `tag`, but for what is owed."""
        number = progress.count
        if self._counts:
            number = number + 1 if self.shape.max_members < UNBOUNDED else min(number + 1, self.shape.min_members)
        is_name = 0 < tag <= len(self.names)
        if self._any_order:
            return replace(progress, there=progress.there | 1 << (tag - 1) if is_name else progress.there, count=number)
        position = tag if is_name else len(self.names)
        return Progress(position, progress.there, progress.seen, number, progress.owed)

    # -- claims

    def _still_owed(self, owed: tuple[Clause, ...], tag: int) -> tuple[Clause, ...] | None:
        """What is owed when the next key has `tag`, in the order of the schema; None where a clause can't be settled any more.

        Names before it don't come any more: what every such member has to meet holds, what some has to meet does not.
        """
        place = (owed, tag or len(self.names) + 1)
        if place not in self._owed_memo:
            last, stop = self._last_tags, place[1]
            open_ = [clause for clause in owed if not any(one < 0 and last[one] < stop for one in clause)]
            left = [tuple(one for one in clause if one < 0 or last[one] >= stop) for clause in open_]
            self._owed_memo[place] = tuple(left) if all(left) else None
        return self._owed_memo[place]

    def _claims(self, owed: tuple[Clause, ...], tag: int) -> list[Claim]:
        """The nodes of a member with `tag`, by which of the literals it is claimed to meet; with what is then owed."""
        place = (owed, tag)
        known = self._claims_memo.get(place)
        if known is None:
            key = self._key(tag)
            known = self._clauses.claims(
                self._nodes, key.literals, key.node, owed, lambda one: one < 0 or self._only[one] == tag
            )
            if self._settled:
                self._claims_memo[place] = known
        return known

    # -- the end

    def can_end(self, progress: Progress) -> bool:
        """Whether some way leads to the end; no length is asked for."""
        return self._way_out(progress) is not None

    def _way_out(self, progress: Progress) -> tuple[Member, ...] | None:
        """The members of some rest; None where no way leads to the end."""
        if progress in self._ways_out:
            return self._ways_out[progress]
        found: tuple[Member, ...] | None = ()
        if self._owes_required(progress) or not self._is_done(progress.count, progress.owed):
            found = self._some_rest(progress)
        if self._settled:
            self._ways_out[progress] = found
        return found

    def _some_rest(self, progress: Progress) -> tuple[Member, ...] | None:
        if self.is_plain:
            left = [index for index in self._left(progress) if self._required[index]]
            rest = tuple(Member(index + 1, self.names[index], self._node_by_tag[index + 1]) for index in left)
            return None if any(self._nodes.is_empty(member.node) for member in rest) else rest
        ending = self._endings.get(progress) or _Walk(self, progress, measures=False).cheapest()
        return None if ending is None else ending[1]

    def _leads_on(self, before: Progress, tag: int, after: Progress) -> bool:
        """Whether some way leads to the end behind a member with `tag`: what is left of that before it, or another."""
        way = self._way_out(before)
        rest = None if way is None else self._rest_behind(way, before, tag, after)
        if rest is None:
            return self.can_end(after)
        if self._settled:
            self._ways_out[after] = rest
        return True

    def _rest_behind(self, way: tuple[Member, ...], before: Progress, tag: int, after: Progress) -> tuple[Member, ...] | None:
        """A rest without its member with `tag`, where that is seen to be one behind such a member; None where it is not."""
        last = len(self.names)
        is_name = 0 < tag <= last
        rest = tuple([member for member in way if member.tag != tag])
        if len(rest) < len(way) and not is_name:
            return None
        if not self._any_order and any(0 < member.tag <= (tag if is_name else last) for member in rest):
            return None
        if self._counts and not self.shape.min_members <= after.count + len(rest) <= self.shape.max_members:
            return None
        is_settled = len(rest) == len(way) and set(after.owed) <= set(before.owed)
        return rest if is_settled or self._settles(rest, after.owed) else None

    def _settles(self, rest: tuple[Member, ...], owed: tuple[Clause, ...]) -> bool:
        """Whether it is plain that each clause holds when these members follow and no others."""
        met: set[int] = set()
        broken: set[int] = set()
        for member in rest:
            node = set(member.node)
            for number in self._key(member.tag).literals:
                meets = node.issuperset(self._clauses.literals[abs(number) - 1].node)
                if meets == (number > 0):
                    (met if meets else broken).add(number)
        return all(not met.isdisjoint(clause) or any(one < 0 and one not in broken for one in clause) for clause in owed)

    def min_len(self) -> int | None:
        """Bytes of the shortest compact text of such an object; None where there is none."""
        ending = self.ending(self.start)
        return None if ending is None else 2 + ending[0] - bool(ending[1])

    def is_empty(self) -> bool:
        """Whether there is no such object; no length is asked for."""
        return not self.can_end(self.start)

    def ending(self, progress: Progress) -> tuple[int, tuple[Member, ...]] | None:
        """The members of a shortest rest, and its length in bytes with a comma for each; None where no way leads to the end."""
        if progress in self._endings:
            return self._endings[progress]
        found = self._search(progress)
        if self._settled:
            self._endings[progress] = found
        return found

    def _search(self, start: Progress) -> tuple[int, tuple[Member, ...]] | None:
        """Cheapest first: the properties clause by clause, so that few clauses are open at a time; then other keys."""
        if self.is_plain:
            return self._required_rest(start)
        return _Walk(self, start, measures=True).cheapest()

    def _required_nodes(self, start: Progress) -> Iterator[NodeKey]:
        return (self._node_by_tag[index + 1] for index in self._left(start) if self._required[index])

    def _required_rest(self, start: Progress) -> tuple[int, tuple[Member, ...]] | None:
        if any(map(self._nodes.is_empty, self._required_nodes(start))):
            return None
        left = [self._ending_member(index) for index in self._left(start) if self._required[index]]
        return sum(length for _, length in left), tuple(member for member, _ in left)

    def _ending_member(self, index: int) -> tuple[Member, int]:
        """The shortest member of a property, with its length."""
        known = self._ending_members.get(index)
        if known is None:
            name, node = self.names[index], self.node(index + 1)
            known = Member(index + 1, name, node), self._member_len(name, node)
            if self._settled:
                self._ending_members[index] = known
        return known

    def _member_len(self, key: str, node: NodeKey) -> int:
        """Bytes of a member, with the colon and a comma."""
        return texts.quoted_len(key) + 2 + self._nodes.min_len(node)

    def _key(self, tag: int) -> Key:
        key = self._keys_by_tag[tag]
        assert key is not None
        return key

    def _is_wanted(self, number: int, owed: tuple[Clause, ...], key: Key) -> bool:
        lacks = self._counts and number < self.shape.min_members
        return lacks or any(literal > 0 and literal in clause for literal in key.literals for clause in owed)

    def _is_done(self, number: int, owed: tuple[Clause, ...]) -> bool:
        fits = not self._counts or self.shape.min_members <= number <= self.shape.max_members
        return fits and all(holds_at_end(clause) for clause in owed)

    def _fresh(self, tag: int, seen: frozenset[str]) -> Iterator[str]:
        """Keys of a class that are not there yet, shortest first."""
        language = self.left_of(tag, seen) if tag else ANY_STRING & ~from_values(self.shape.properties)
        while (text := language.shortest()) is not None:
            yield text
            language &= ~from_values((text,))


class _Walk:
    """One search for a cheapest ending; for any, the furthest place first, where it does not measure members.

    A place in it is how many properties were looked at, what is owed, and how many keys of each class were taken.
    """

    def __init__(self, plan: ObjectPlan, start: Progress, *, measures: bool) -> None:
        self._plan, self._start, self._measures = plan, start, measures
        useful = self._useful = self._find_useful()
        self._order = [index for index in plan._left(start) if plan._required[index] or index + 1 in useful]
        owed = self._owed = self._find_owed()
        if owed:
            first = {literal: index for index, clause in reversed(list(enumerate(owed))) for literal in clause}
            self._order.sort(key=lambda index: min((first[o] for o in plan._key(index + 1).literals if o in first), default=-1))
        self._last = {o: place for place, index in enumerate(self._order) for o in plan._key(index + 1).literals}
        self._tags = [tag for tag in (*range(len(plan.names) + 1, len(plan._keys_by_tag)), FREE) if plan._keys_by_tag[tag]]
        self._fresh = {tag: plan._fresh(tag, start.seen) for tag in self._tags}
        self._names: dict[int, list[str]] = {tag: [] for tag in self._tags}
        self._heap: list[tuple[int, int, int, Owing, tuple[int, ...], Link]] = []
        self._ticket = count()

    def _find_useful(self) -> set[int]:
        """The tags of keys that can help to settle a clause: one that is open, or one that a key so taken may open."""
        plan, owed = self._plan, self._start.owed
        useful = {index + 1 for index in plan._left(self._start) if plan._required[index]}
        tags = [tag for tag, key in enumerate(plan._keys_by_tag) if key is not None]
        if plan._counts and self._start.count < plan.shape.min_members:
            return set(tags)
        open_ = {clause for clause in owed if not holds_at_end(clause)}
        while True:
            settles = {literal for clause in open_ for literal in clause if literal > 0}
            useful |= {tag for tag in tags if not settles.isdisjoint(plan._key(tag).literals)}
            breaks = {one for tag in useful for one in plan._key(tag).literals if one < 0}
            more = {clause for clause in owed if clause not in open_ and not breaks.isdisjoint(clause)}
            if not more:
                return useful
            open_ |= more

    def _find_owed(self) -> tuple[Clause, ...]:
        """The clauses that don't hold as they are if no other keys are taken than those that may be."""
        plan = self._plan
        others = {tag for tag in self._useful if not 0 < tag <= len(plan.names)}
        taken = [plan._key(tag) for tag in others | {index + 1 for index in self._order}]
        broken = {one for key in taken for one in key.literals if one < 0}
        return tuple(clause for clause in self._start.owed if not any(one < 0 and one not in broken for one in clause))

    def cheapest(self) -> tuple[int, tuple[Member, ...]] | None:
        plan, start = self._plan, self._start
        done: set[tuple[int, Owing, tuple[int, ...]]] = set()
        self._push(0, 0, (start.count, self._owed), (0,) * len(self._tags), None)
        while self._heap:
            cost, ahead, _, owing, used, link = heappop(self._heap)
            place = -ahead
            if (place, owing, used) in done:
                continue
            done.add((place, owing, used))
            if len(done) > 50 * plan._nodes.max_alternatives:
                raise FuelError("too many ways to end an object (50 times max_alternatives)")
            if place < len(self._order):
                self._with_property(place, cost, owing, used, link)
            elif plan._is_done(*owing):
                return cost, _members(link)
            else:
                self._with_others(place, cost, owing, used, link)
        return None

    def _push(self, cost: int, place: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        if place and any(self._is_hopeless(clause, place) for clause in owing[1]):
            return
        heappush(self._heap, (cost, -place, next(self._ticket), owing, used, link))

    def _is_hopeless(self, clause: Clause, place: int) -> bool:
        others = self._plan._of_others
        return all(one > 0 and one not in others and self._last.get(one, -1) < place for one in clause)

    def _with_property(self, place: int, cost: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        """The next property, left out or taken."""
        plan, index, (number, owed) = self._plan, self._order[place], owing
        key = plan._key(index + 1)
        if not plan._required[index]:
            self._push(cost, place + 1, owing, used, link)
            if index + 1 not in self._useful or not plan._is_wanted(number, owed, key):
                return
        after = plan._after(Progress(count=number), index + 1).count
        if after > plan.shape.max_members:
            return
        for node, left in plan._claims(owed, index + 1):
            member = Member(index + 1, plan.names[index], node)
            self._push(cost + self._cost(plan.names[index], node), place + 1, (after, left), used, (link, member))

    def _with_others(self, place: int, cost: int, owing: Owing, used: tuple[int, ...], link: Link) -> None:
        """A key of each class, or a free one, where that settles anything."""
        plan, (number, owed) = self._plan, owing
        after = plan._after(Progress(count=number), FREE).count
        if after > plan.shape.max_members:
            return
        for position, tag in enumerate(self._tags):
            if tag not in self._useful or not plan._is_wanted(number, owed, plan._key(tag)):
                continue
            name = self._name(tag, used[position])
            if name is None:
                continue
            more = (*used[:position], used[position] + 1, *used[position + 1 :])
            for node, left in plan._claims(owed, tag):
                if (after, left) != owing:
                    member = Member(tag, name if tag else None, node)
                    self._push(cost + self._cost(name, node), place, (after, left), more, (link, member))

    def _cost(self, name: str, node: NodeKey) -> int:
        return self._plan._member_len(name, node) if self._measures else 0

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


def _keys(shape: ObjectShape, clauses: Clauses[MemberLiteral], max_classes: int) -> tuple[list[Key], list[Key], Key | None]:
    """The properties (small classes among them), the classes, and the free key: all keys that no property names, where
    they are one class."""
    numbers = _by_name(shape, clauses)
    named = [Key(name, None, node, tuple(numbers[name])) for name, node in shape.properties.items()]
    if not shape.languages:
        return named, [], Key(None, None, shape.of(frozenset()), ())
    classes: list[Key] = []
    parts = _split(shape, clauses, max_classes)
    if len(parts) == 1:
        return named, [], Key(None, None, *parts[0][1])
    for language, (node, literals) in parts:
        listed = language.values(MAX_LISTED_KEYS)
        if listed is not None:
            named += [Key(name, None, node, literals) for name in listed]
        else:
            classes.append(Key(None, language, node, literals))
    return named, classes, None


def _by_name(shape: ObjectShape, clauses: Clauses[MemberLiteral]) -> dict[str, list[int]]:
    """The numbers of the literals about each property. Most literals are about one name, and many about the same one."""
    found: dict[str, list[int]] = {name: [] for name in shape.properties}
    about: dict[Language, list[str]] = {}
    for literal in shape.literals:
        keys = literal.keys
        if keys not in about:
            listed = keys.values(MAX_LISTED_KEYS)
            among = [name for name in found if keys.contains(name)] if listed is None else found.keys() & listed
            about[keys] = list(among)
        for name in about[keys]:
            found[name].append(clauses.number(literal))
    return found


def _split(
    shape: ObjectShape, clauses: Clauses[MemberLiteral], max_classes: int
) -> list[tuple[Language, tuple[NodeKey, tuple[int, ...]]]]:
    """The keys that no property names, as disjoint languages that ask the same."""
    parts: list[tuple[Language, frozenset[Language]]] = [(ANY_STRING & ~from_values(shape.properties), frozenset())]
    for language in shape.languages:
        inside = [(part & language, matching | {language}) for part, matching in parts]
        outside = [(part & ~language, matching) for part, matching in parts]
        parts = [(part, matching) for part, matching in inside + outside if not part.is_empty]
        if len(parts) > max_classes:
            raise FuelError(f"more than {max_classes} classes of keys (max_key_classes)", "", "patternProperties")
    merged: dict[tuple[NodeKey, tuple[int, ...]], Language] = {}
    for part, matching in parts:
        asked = (shape.of(matching), tuple(clauses.number(literal) for literal in shape.literals if literal.keys in matching))
        merged[asked] = merged[asked] | part if asked in merged else part
    return [(language, asked) for asked, language in merged.items()]
