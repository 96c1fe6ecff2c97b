"""Object plans: in which order the members of an object shape come, what each key asks for, and the cheapest way to the end.

Known to the measure of nodes, to closings and to the automaton alike; no bytes here but the lengths of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from constrained.errors import FuelError
from constrained.grammar import texts
from constrained.grammar.clauses import claims, holds_at_end
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values
from constrained.grammar.shapes import MemberLiteral, NodeKey, ObjectShape
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

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node, where that is one constant."""


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
    literals: tuple[MemberLiteral, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cheapest ending: its tag, its key (None where any free key will do) and its node."""

    tag: int
    key: str | None
    node: NodeKey


Clause = tuple[MemberLiteral, ...]
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
        self._nodes = nodes
        self._any_order = any_order
        named, classes, free = _keys(shape, nodes.max_key_classes)
        self.names = [key.name or "" for key in named]
        self._free = free
        self._by_tag: list[Key | None] = [free, *named, *classes]
        self._counts = shape.max_members < UNBOUNDED or shape.min_members > len(shape.required)
        self.is_plain = not self._counts and not shape.clauses
        self._required = [name in shape.required for name in self.names]
        self._last_required = max((i for i, required in enumerate(self._required) if required), default=-1)
        self._only = {literal: self._only_tag(literal) for literal in shape.literals}
        self.start = Progress(owed=shape.clauses)
        self._settled = False
        self._claims_memo: dict[tuple[tuple[Clause, ...], int], list[Claim]] = {}
        self._choices_memo: dict[tuple[Progress, int], list[tuple[NodeKey, Progress]]] = {}
        self._endings: dict[Progress, tuple[int, tuple[Member, ...]] | None] = {}

    def settle(self) -> None:
        """From now on no node's emptiness changes."""
        self._settled = True

    def all_keys(self) -> Iterator[Key]:
        """The properties, then the classes of all other keys."""
        return (key for key in (*self._by_tag[1:], self._free) if key is not None)

    # -- what may come

    def may_close(self, progress: Progress) -> bool:
        """Whether the object may end."""
        return (
            not self._owes_required(progress)
            and (not self._counts or progress.count >= self.shape.min_members)
            and all(holds_at_end(clause) for clause in progress.owed)
        )

    def candidates(self, progress: Progress) -> list[int]:
        """The tags of the properties that may come next; in the order of the schema no further than the next required one."""
        found = []
        for index in self._left(progress):
            if self._has_choice(progress, index + 1):
                found.append(index + 1)
            if self._required[index] and not self._any_order:
                break
        return found

    def may_add(self, progress: Progress) -> bool:
        """Whether a free key may come next."""
        return self._free is not None and self._is_past(progress) and self._has_choice(progress, FREE)

    def open_classes(self, progress: Progress) -> list[tuple[int, Language]]:
        """The classes of which a key may come next: tag, and the keys that are not there yet."""
        if not self._is_past(progress):
            return []
        first = len(self.names) + 1
        found = [(tag, self.left_of(tag, progress.seen)) for tag in range(first, len(self._by_tag))]
        return [(tag, language) for tag, language in found if not language.is_empty and self._has_choice(progress, tag)]

    def may_continue(self, progress: Progress) -> bool:
        """Whether any key may come next."""
        return bool(self.candidates(progress)) or self.may_add(progress) or bool(self.open_classes(progress))

    def choices(self, progress: Progress, tag: int) -> list[tuple[NodeKey, Progress]]:
        """What the member whose key has `tag` may be, each with how the object stands after it."""
        place = (progress, tag)
        known = self._choices_memo.get(place)
        if known is None:
            after = self._after(progress, tag)
            claims = self._claims(progress.owed, tag)
            known = [(node, stand) for node, owed in claims if self._is_alive(stand := replace(after, owed=owed))]
            self._choices_memo[place] = known
        return known

    def left_of(self, tag: int, seen: frozenset[str]) -> Language:
        """The keys of a class that are not there yet."""
        key = self._by_tag[tag]
        assert key is not None
        assert key.language is not None
        return key.language & ~from_values(seen) if seen else key.language

    def is_of_class(self, tag: int) -> bool:
        """Whether a key with `tag` is of a class."""
        return tag > len(self.names)

    def free_tags(self) -> dict[str, int]:
        """The tag of each property that some value can fill."""
        tags = range(1, len(self.names) + 1)
        return {name: tag for name, tag in zip(self.names, tags, strict=True) if not self._nodes.is_empty(self._node(tag))}

    def _node(self, tag: int) -> NodeKey:
        key = self._by_tag[tag]
        assert key is not None
        return key.node

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
            return not self._nodes.is_empty(self._node(tag))
        return bool(self.choices(progress, tag))

    def _after(self, progress: Progress, tag: int) -> Progress:
        """How the object stands after a member with `tag`, but for what is owed."""
        number = progress.count
        if self._counts:
            number = number + 1 if self.shape.max_members < UNBOUNDED else min(number + 1, self.shape.min_members)
        is_name = 0 < tag <= len(self.names)
        if self._any_order:
            return replace(progress, there=progress.there | 1 << (tag - 1) if is_name else progress.there, count=number)
        return replace(progress, position=tag if is_name else len(self.names), count=number)

    # -- claims

    def _only_tag(self, literal: MemberLiteral) -> int:
        """The tag of the only key that a literal is about; -1 where there are more."""
        tags = [tag for tag, key in enumerate(self._by_tag) if key is not None and literal in key.literals]
        return tags[0] if len(tags) == 1 and 0 < tags[0] <= len(self.names) else -1

    def _claims(self, owed: tuple[Clause, ...], tag: int) -> list[Claim]:
        """The nodes of a member with `tag`, by which of the literals it is claimed to meet; with what is then owed."""
        place = (owed, tag)
        known = self._claims_memo.get(place)
        if known is None:
            key = self._by_tag[tag]
            assert key is not None
            known = claims(self._nodes, key.literals, key.node, owed, lambda one: not one.some or self._only[one] == tag)
            if self._settled:
                self._claims_memo[place] = known
        return known

    # -- the end

    def _is_alive(self, progress: Progress) -> bool:
        return self.is_plain or self.ending(progress) is not None

    def min_len(self) -> int | None:
        """Bytes of the shortest compact text of such an object; None where there is none."""
        ending = self.ending(self.start)
        return None if ending is None else 2 + ending[0] - bool(ending[1])

    def ending(self, progress: Progress) -> tuple[int, tuple[Member, ...]] | None:
        """The members of a shortest rest, and its length in bytes with a comma for each; None where no way leads to the end."""
        if progress in self._endings:
            return self._endings[progress]
        found = self._search(progress)
        if self._settled:
            self._endings[progress] = found
        return found

    def _search(self, start: Progress) -> tuple[int, tuple[Member, ...]] | None:
        layer: dict[Owing, tuple[int, Link]] = {(start.count, start.owed): (0, None)}
        for index in self._left(start):
            layer = self._with_property(layer, index)
        return self._with_others(layer, start)

    def _with_property(self, layer: dict[Owing, tuple[int, Link]], index: int) -> dict[Owing, tuple[int, Link]]:
        """One property more, taken or left out."""
        tag, following = index + 1, dict[Owing, tuple[int, Link]]()
        key = self._by_tag[tag]
        assert key is not None
        if not self._required[index] and self.is_plain:
            return layer
        text_len = len(texts.quote(self.names[index])) + 2
        for (number, owed), (cost, link) in layer.items():
            if not self._required[index]:
                _keep(following, (number, owed), cost, link)
                if not self._is_wanted(number, owed, key):
                    continue
            after = self._after(Progress(count=number), tag).count
            if after > self.shape.max_members:
                continue
            for node, left in self._claims(owed, tag):
                length = cost + text_len + self._nodes.min_len(node)
                _keep(following, (after, left), length, (link, Member(tag, self.names[index], node)))
        if len(following) > self._nodes.max_alternatives:
            raise FuelError(f"more than {self._nodes.max_alternatives} ways to end an object (max_alternatives)")
        return following

    def _is_wanted(self, number: int, owed: tuple[Clause, ...], key: Key) -> bool:
        lacks = self._counts and number < self.shape.min_members
        return lacks or any(literal.some and literal in clause for literal in key.literals for clause in owed)

    def _with_others(self, layer: dict[Owing, tuple[int, Link]], start: Progress) -> tuple[int, tuple[Member, ...]] | None:
        """Other keys until nothing is owed, cheapest first."""
        tags = [tag for tag in (*range(len(self.names) + 1, len(self._by_tag)), FREE) if self._by_tag[tag] is not None]
        ticket = count()
        heap = [(cost, next(ticket), owing, (0,) * len(tags), link) for owing, (cost, link) in layer.items()]
        heap.sort()
        done: set[tuple[Owing, tuple[int, ...]]] = set()
        fresh = {tag: self._fresh(tag, start.seen) for tag in tags}
        names: dict[int, list[str]] = {tag: [] for tag in tags}
        while heap:
            cost, _, (number, owed), used, link = heappop(heap)
            if ((number, owed), used) in done:
                continue
            done.add(((number, owed), used))
            fits = not self._counts or self.shape.min_members <= number <= self.shape.max_members
            if fits and all(holds_at_end(clause) for clause in owed):
                return cost, _members(link)
            after = self._after(Progress(count=number), FREE).count
            for place, tag in enumerate(tags):
                key = self._by_tag[tag]
                assert key is not None
                if after > self.shape.max_members or not self._is_wanted(number, owed, key):
                    continue
                while len(names[tag]) <= used[place] and (name := next(fresh[tag], None)) is not None:
                    names[tag].append(name)
                if len(names[tag]) <= used[place]:
                    continue
                name = names[tag][used[place]]
                more = (*used[:place], used[place] + 1, *used[place + 1 :])
                for node, left in self._claims(owed, tag):
                    if (after, left) == (number, owed):
                        continue
                    length = cost + len(texts.quote(name)) + 2 + self._nodes.min_len(node)
                    member = Member(tag, name if tag else None, node)
                    heappush(heap, (length, next(ticket), (after, left), more, (link, member)))
        return None

    def _fresh(self, tag: int, seen: frozenset[str]) -> Iterator[str]:
        """Keys of a class that are not there yet, shortest first."""
        language = self.left_of(tag, seen) if tag else ANY_STRING & ~from_values(self.shape.properties)
        while (text := language.shortest()) is not None:
            yield text
            language &= ~from_values((text,))


def _keep(layer: dict[Owing, tuple[int, Link]], owing: Owing, cost: int, link: Link) -> None:
    if owing not in layer or cost < layer[owing][0]:
        layer[owing] = (cost, link)


def _members(link: Link) -> tuple[Member, ...]:
    found = []
    while link is not None:
        link, member = link
        found.append(member)
    return tuple(reversed(found))


def _keys(shape: ObjectShape, max_classes: int) -> tuple[list[Key], list[Key], Key | None]:
    """The properties (small classes among them), the classes, and the free key: all keys that no property names, where
    they are one class."""
    named = [
        Key(name, None, node, tuple(literal for literal in shape.literals if literal.keys.contains(name)))
        for name, node in shape.properties.items()
    ]
    if not shape.languages:
        return named, [], Key(None, None, shape.of(frozenset()), ())
    classes: list[Key] = []
    parts = _split(shape, max_classes)
    if len(parts) == 1:
        return named, [], Key(None, None, *parts[0][1])
    for language, (node, literals) in parts:
        listed = language.values(MAX_LISTED_KEYS)
        if listed is not None:
            named += [Key(name, None, node, literals) for name in listed]
        else:
            classes.append(Key(None, language, node, literals))
    return named, classes, None


def _split(shape: ObjectShape, max_classes: int) -> list[tuple[Language, tuple[NodeKey, tuple[MemberLiteral, ...]]]]:
    """The keys that no property names, as disjoint languages that ask the same."""
    parts: list[tuple[Language, frozenset[Language]]] = [(ANY_STRING & ~from_values(shape.properties), frozenset())]
    for language in shape.languages:
        inside = [(part & language, matching | {language}) for part, matching in parts]
        outside = [(part & ~language, matching) for part, matching in parts]
        parts = [(part, matching) for part, matching in inside + outside if not part.is_empty]
        if len(parts) > max_classes:
            raise FuelError(f"more than {max_classes} classes of keys (max_key_classes)", "", "patternProperties")
    merged: dict[tuple[NodeKey, tuple[MemberLiteral, ...]], Language] = {}
    for part, matching in parts:
        asked = (shape.of(matching), tuple(literal for literal in shape.literals if literal.keys in matching))
        merged[asked] = merged[asked] | part if asked in merged else part
    return [(language, asked) for asked, language in merged.items()]
