"""Object plans: in which order the members of an object shape come, what each key asks for, and the cheapest way to the end.

Known to the measure of nodes, to closings and to the automaton alike; no bytes here but the lengths of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from constrained.grammar import texts
from constrained.grammar.clauses import Clause, Clauses, holds_at_end
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values
from constrained.grammar.member_keys import Key, keys_of
from constrained.grammar.object_endings import EndingSearch
from constrained.grammar.progress import FREE, Member, Progress
from constrained.grammar.shapes import ANYTHING, MemberLiteral, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED


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


_START = Progress()
_NO_LANGUAGES: frozenset[Language] = frozenset()
NO_CLAUSES: Clauses[MemberLiteral] = Clauses(())

Claim = tuple[NodeKey, tuple[Clause, ...]]


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
            named, classes, free = keys_of(shape, self._clauses, nodes.max_key_classes)
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
        self.counts = shape.max_members < UNBOUNDED or shape.min_members > len(required)
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
    def keys_by_tag(self) -> list[Key | None]:
        """What each tag asks for; nothing at 0 where free keys are of several classes."""
        if self._has_classes:
            return self._by_tag
        named = [Key(name, None, node, ()) for name, node in self.shape.properties.items()]
        return [Key(None, None, self._node_by_tag[FREE], ()), *named]

    @cached_property
    def of_others(self) -> set[int]:
        """The literals that keys may settle which no property names."""
        others = (self.keys_by_tag[FREE], *self.keys_by_tag[len(self.names) + 1 :])
        return {literal for key in others if key is not None for literal in key.literals}

    @cached_property
    def _last_tags(self) -> dict[int, int]:
        """The last name, by its tag, that each literal is about; past all names where it is about other keys."""
        found: dict[int, int] = dict.fromkeys(self.of_others, UNBOUNDED)
        for tag in range(len(self.names), 0, -1):
            for literal in self.key_of(tag).literals:
                found.setdefault(literal, tag)
        return found

    @cached_property
    def _only(self) -> dict[int, int]:
        """The tag of the only key that each literal is about, where that is a property; -1 where there are more."""
        tags: dict[int, list[int]] = {number: [] for clause in self._clauses.all for number in clause}
        for tag, key in enumerate(self.keys_by_tag):
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
        return (key for key in (*self.keys_by_tag[1:], self.keys_by_tag[FREE]) if key is not None)

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
    def max_alternatives(self) -> int:
        """How many alternatives are followed."""
        return self._nodes.max_alternatives

    @property
    def required(self) -> list[bool]:
        """By position, whether a property must be there."""
        return self._required

    def node(self, tag: int) -> NodeKey:
        """What the value of a key with `tag` must meet."""
        return self._node_by_tag[tag]

    # -- what may come

    def may_close(self, progress: Progress) -> bool:
        """Whether the object may end."""
        if self.is_sequence:
            return progress.position > self._last_required
        return (
            not self._owes_required(progress)
            and (not self.counts or progress.count >= self.shape.min_members)
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
        for index in self.left(progress):
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
            after = self.after(progress, tag)
            if self.is_plain:
                node = self.node(tag)
                known = [] if self._nodes.is_empty(node) else [(node, after)]
            else:
                still = progress.owed if self._any_order else self._still_owed(progress.owed, tag)
                claims = [] if still is None else self.claims(still, tag)
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
        key = self.key_of(tag)
        assert key.language is not None
        return key.language & ~from_values(seen) if seen else key.language

    def is_of_class(self, tag: int) -> bool:
        """Whether a key with `tag` is of a class."""
        return tag > len(self.names)

    def free_tags(self) -> dict[str, int]:
        """The tag of each property that some value can fill."""
        alive = self.alive
        return {name: tag for tag, name in enumerate(self.names, 1) if alive[tag]}

    def left(self, progress: Progress) -> Iterator[int]:
        """The positions of the properties that may still come, whatever they ask for."""
        if not self._any_order:
            return iter(range(progress.position, len(self.names)))
        return (index for index in range(len(self.names)) if not progress.there >> index & 1)

    def _owes_required(self, progress: Progress) -> bool:
        if not self._any_order:
            return progress.position <= self._last_required
        return any(self._required[index] for index in self.left(progress))

    def _is_past(self, progress: Progress) -> bool:
        """Whether keys that are no properties may come."""
        return self._any_order or not self._owes_required(progress)

    def _has_choice(self, progress: Progress, tag: int) -> bool:
        if self.is_plain:
            return not self._nodes.is_empty(self.node(tag))
        return bool(self.choices(progress, tag))

    def after(self, progress: Progress, tag: int) -> Progress:
        """How the object stands after a member with `tag`, but for what is owed."""
        number = progress.count
        if self.counts:
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

    def claims(self, owed: tuple[Clause, ...], tag: int) -> list[Claim]:
        """The nodes of a member with `tag`, by which of the literals it is claimed to meet; with what is then owed."""
        place = (owed, tag)
        known = self._claims_memo.get(place)
        if known is None:
            key = self.key_of(tag)
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
        if self._owes_required(progress) or not self.is_done(progress.count, progress.owed):
            found = self._some_rest(progress)
        if self._settled:
            self._ways_out[progress] = found
        return found

    def _some_rest(self, progress: Progress) -> tuple[Member, ...] | None:
        if self.is_plain:
            left = [index for index in self.left(progress) if self._required[index]]
            rest = tuple(Member(index + 1, self.names[index], self._node_by_tag[index + 1]) for index in left)
            return None if any(self._nodes.is_empty(member.node) for member in rest) else rest
        ending = self._endings.get(progress) or EndingSearch(self, progress, measures=False).cheapest()
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
        if self.counts and not self.shape.min_members <= after.count + len(rest) <= self.shape.max_members:
            return None
        is_settled = len(rest) == len(way) and set(after.owed) <= set(before.owed)
        return rest if is_settled or self._settles(rest, after.owed) else None

    def _settles(self, rest: tuple[Member, ...], owed: tuple[Clause, ...]) -> bool:
        """Whether it is plain that each clause holds when these members follow and no others."""
        met: set[int] = set()
        broken: set[int] = set()
        for member in rest:
            node = set(member.node)
            for number in self.key_of(member.tag).literals:
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
        return EndingSearch(self, start, measures=True).cheapest()

    def _required_nodes(self, start: Progress) -> Iterator[NodeKey]:
        return (self._node_by_tag[index + 1] for index in self.left(start) if self._required[index])

    def _required_rest(self, start: Progress) -> tuple[int, tuple[Member, ...]] | None:
        if any(map(self._nodes.is_empty, self._required_nodes(start))):
            return None
        left = [self._ending_member(index) for index in self.left(start) if self._required[index]]
        return sum(length for _, length in left), tuple(member for member, _ in left)

    def _ending_member(self, index: int) -> tuple[Member, int]:
        """The shortest member of a property, with its length."""
        known = self._ending_members.get(index)
        if known is None:
            name, node = self.names[index], self.node(index + 1)
            known = Member(index + 1, name, node), self.member_len(name, node)
            if self._settled:
                self._ending_members[index] = known
        return known

    def member_len(self, key: str, node: NodeKey) -> int:
        """Bytes of a member, with the colon and a comma."""
        return texts.quoted_len(key) + 2 + self._nodes.min_len(node)

    def key_of(self, tag: int) -> Key:
        """What a tag asks for, where there are such keys."""
        key = self.keys_by_tag[tag]
        assert key is not None
        return key

    def is_wanted(self, number: int, owed: tuple[Clause, ...], key: Key) -> bool:
        """Whether there are too few members, or one with this key may settle something that is owed."""
        lacks = self.counts and number < self.shape.min_members
        return lacks or any(literal > 0 and literal in clause for literal in key.literals for clause in owed)

    def is_done(self, number: int, owed: tuple[Clause, ...]) -> bool:
        """Whether an object of so many members that owes this may end, its required members aside."""
        fits = not self.counts or self.shape.min_members <= number <= self.shape.max_members
        return fits and all(holds_at_end(clause) for clause in owed)

    def fresh_keys(self, tag: int, seen: frozenset[str]) -> Iterator[str]:
        """Keys of a class that are not there yet, shortest first."""
        language = self.left_of(tag, seen) if tag else ANY_STRING & ~from_values(self.shape.properties)
        while (text := language.shortest()) is not None:
            yield text
            language &= ~from_values((text,))
