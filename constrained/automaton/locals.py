"""Local states: what may come next inside one frame, without what lies below it on the stack.

A local state is a frozen value (`Done`, `Value`, `ObjectOpen`, ...) with an index. Its row of edges is made when it is
first met. Whitespace is a lexeme that stands before the local state; how much of it the layout asks for decides the
lexeme that each edge enters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from constrained.automaton import lexemes, strings
from constrained.automaton.contents import Contents
from constrained.automaton.frames import (
    NO_KEYS,
    ArrayItem,
    ArrayNext,
    ArrayOpen,
    Close,
    Done,
    Local,
    ObjectColon,
    ObjectKey,
    ObjectNext,
    ObjectOpen,
    Value,
)
from constrained.automaton.lexemes import PlainKey, PlainLexemes
from constrained.automaton.numbers import number_machine
from constrained.automaton.plans import ObjectPlan
from constrained.automaton.tables import (
    BYTE_CLASS,
    DONE,
    GOTO,
    NUM_CLASSES,
    POP,
    PUSH,
    TAGS,
    UNRESOLVED,
    YES,
    StringTries,
    Table,
)
from constrained.grammar import texts
from constrained.grammar.nodes import Node, Nodes
from constrained.grammar.shapes import ArrayShape, ObjectShape
from constrained.grammar.string_sets import StringSet
from constrained.options import CompileOptions

INDENT = 2
# (kind, lex, need, room, local, return), as in the edge table; `Edges` come with the byte that each reads.
Edge = tuple[int, int, int, int, int, int]
Edges = Iterable[tuple[int, Edge]]


class Locals:
    """Local states by index, and the tables of their edges."""

    def __init__(
        self, nodes: Nodes, options: CompileOptions, plain: PlainLexemes, tries: StringTries, contents: Contents
    ) -> None:
        self._nodes = nodes
        self._indented = options.whitespace == "indented"
        self._gap = lexemes.gap(options)
        plain.resolve(plain.index(self._gap))  # the kernel reads it behind values without asking
        self._plain = plain
        self._tries = tries
        self._contents = contents
        self.rows = Table(NUM_CLASSES)
        self.info = Table(3)
        self.edges = Table(7, 256)
        self.tags = Table(1, 256)
        self.states: list[Local] = []
        self.plans: list[ObjectPlan] = []
        self._plan_index: dict[object, int] = {}
        self._index: dict[Local, int] = {}
        self._key_lexes: dict[int, int] = {}
        self._open_keys: dict[int, int] = {}
        self._value_lexes: dict[StringSet, int] = {}
        self.done = self.index(Done())
        self.start = self.index(Value(nodes.root, self.done, 0))

    # -- indices

    def index(self, local: Local) -> int:
        """The index of a local state; its row may still be empty."""
        found = self._index.get(local)
        if found is None:
            found = self._index[local] = self.rows.add()
            self.states.append(local)
            gap = lexemes.NOTHING if isinstance(local, Done) else self._gap
            self.info.add((self._plain.index(gap), -1, int(isinstance(local, Done))))
        return found

    def entry(self, index: int) -> int:
        """The lexeme that stands before a local state."""
        return int(self.info.array[index, 0])

    def is_done(self, index: int) -> bool:
        """Whether the document may end at this local state."""
        return bool(self.info.array[index, DONE])

    def plan(self, shape: ObjectShape) -> int:
        """The index of the plan of an object shape."""
        identity = shape.identity
        if identity not in self._plan_index:
            self._plan_index[identity] = len(self.plans)
            self.plans.append(ObjectPlan(shape, self._nodes))
        return self._plan_index[identity]

    # -- rows

    def resolve(self, index: int) -> None:
        """Fill the row of a local state."""
        if self.rows.array[index, 0] != UNRESOLVED:
            return
        by_class: dict[int, int] = {}
        for byte, edge in self._edges(self.states[index]):
            klass = int(BYTE_CLASS[byte])
            by_class[klass] = self.edges.add((*edge, by_class.get(klass, -1)))
        row = self.rows.array[index]
        for klass, first in by_class.items():
            row[klass] = first
        row[0] = YES

    def _edges(self, local: Local) -> Edges:
        """The edges of a local state: (byte, (kind, lex, need, room, local, return))."""
        match local:
            case Value(node, after, depth):
                return self._value(self._nodes[node], after, depth)
            case ObjectOpen(plan, depth):
                return self._object_open(plan, depth)
            case ObjectKey():
                return [(strings.QUOTE, edge) for edge in self._keys(local)]
            case ObjectColon(plan, tag, depth, seen):
                after = self.index(ObjectNext(plan, self.plans[plan].after(tag), depth, seen))
                value = self.index(Value(self.plans[plan].member(tag), after, depth))
                return [(ord(":"), self._go(value, lexemes.layout(b" ") if self._indented else None))]
            case ObjectNext():
                return self._object_next(local)
            case ArrayOpen(shape, depth):
                return self._array_open(shape, depth)
            case ArrayItem(shape, item, depth):
                return self._item(shape, item, depth)
            case ArrayNext(shape, count, depth):
                return self._array_next(shape, count, depth)
            case Close(byte, _):
                return [(byte, (POP, -1, 0, 0, -1, -1))]
            case Done():
                return []

    def _go(self, local: int, lexeme: PlainKey | None = None) -> Edge:
        lex = self.entry(local) if lexeme is None else self._plain.index(lexeme)
        return (GOTO, lex, 0, 0, local, -1)

    def _indent(self, depth: int) -> PlainKey:
        return lexemes.layout(b" " * (INDENT * depth))

    def _line(self, depth: int) -> PlainKey | None:
        """The lexeme after a comma: a new line in the indented layout."""
        return lexemes.layout(b"\n" + b" " * (INDENT * depth)) if self._indented else None

    def _value(self, node: Node, after: int, depth: int) -> Edges:
        for texts_ in node.strings:
            yield strings.QUOTE, self._string(texts_, after)
        literal = {text.encode() for text in node.literals}
        for numbers in node.numbers:
            if numbers.values is not None:
                literal |= {text.encode() for value in numbers.values for text in texts.number_spellings(value)}
                continue
            machine = number_machine(numbers)
            for byte, position in machine.steps(machine.start).items():
                yield byte, self._go(after, ("number", machine, position))
        if literal:
            for byte, key in self._plain.steps(lexemes.literal(*literal)).items():
                yield byte, self._go(after, key)
        inner = depth + 1 if self._indented else 0
        for shape in node.arrays:
            opened = self.index(ArrayOpen(shape, inner))
            yield ord("["), (PUSH, self.entry(opened), 0, 0, opened, after)
        for members in node.objects:
            opened = self.index(ObjectOpen(self.plan(members), inner))
            yield ord("{"), (PUSH, self.entry(opened), 0, 0, opened, after)

    def _string(self, texts_: StringSet, after: int) -> Edge:
        if texts_.language is not None:
            return (GOTO, self._contents.lex(texts_.language), 0, strings.UNBOUNDED, after, -1)
        if texts_.values is None and not texts_.excluded:
            return (GOTO, strings.FREE, texts_.min_len, texts_.max_len, after, -1)
        lex = self._value_lexes.get(texts_)
        if texts_.values is None:
            if lex is None:
                names = [(text, strings.EXCLUDED) for text in texts_.excluded]
                lex = self._value_lexes[texts_] = self._tries.add(names, fallback=True)
            return (GOTO, lex, texts_.min_len, texts_.max_len, after, -1)
        if lex is None:
            lex = self._value_lexes[texts_] = self._tries.add([(text, 1) for text in texts_.values], fallback=False)
        return (GOTO, lex, 0, strings.UNBOUNDED, after, -1)

    def _keys(self, here: ObjectKey) -> Iterable[Edge]:
        """The edges into a key at a place: one into the trie of names, one into each class."""
        plan = self.plans[here.plan]
        if plan.candidates(here.position) or plan.may_add(here.position):
            yield self._named_key(here)
        for tag, language in plan.open_classes(here.position, here.seen):
            local = self.index(replace(here, tag=tag))
            if self.info.array[local, TAGS] < 0:
                # What is left of a language may be anything: then the key ends as a free string does.
                colon = self.index(ObjectColon(here.plan, tag, here.depth, here.seen))
                self._set_tags(local, {strings.VALUE_TAG: colon, strings.FREE_TAG: colon}, strings.VALUE_TAG)
            yield (GOTO, self._contents.lex(language), 0, strings.UNBOUNDED, local, -1)

    def _named_key(self, here: ObjectKey) -> Edge:
        local = self.index(here)
        if local not in self._key_lexes:
            plan = self.plans[here.plan]
            tags = [i + 1 for i in plan.candidates(here.position)]
            free = plan.may_add(here.position)
            if free:
                lex = self._open_key(here.plan)
            else:
                lex = self._tries.add([(plan.names[tag - 1], tag) for tag in tags], fallback=False)
            self._key_lexes[local] = lex
            places = {tag: self.index(ObjectColon(here.plan, tag, here.depth, here.seen)) for tag in tags}
            if free:
                places[strings.FREE_TAG] = self.index(ObjectColon(here.plan, strings.FREE_TAG, here.depth, here.seen))
            self._set_tags(local, places, len(plan.names))
        return (GOTO, self._key_lexes[local], 0, strings.UNBOUNDED, local, -1)

    def _open_key(self, plan_index: int) -> int:
        """The trie of an open object's names, the same at every position: a name that is past leads nowhere there."""
        if plan_index not in self._open_keys:
            plan = self.plans[plan_index]
            tags = {name: index + 1 for index, name in enumerate(plan.names)}
            names = [(name, tags.get(name, strings.EXCLUDED)) for name in plan.declared]
            self._open_keys[plan_index] = self._tries.add(names, fallback=True) if names else strings.FREE
        return self._open_keys[plan_index]

    def _set_tags(self, local: int, places: dict[int, int], most: int) -> None:
        """Where a key with each tag, up to `most`, leads to from `local`; nowhere if it is not among the places."""
        base, count = self.tags.size, most + 1
        self.tags.reserve(count)
        self.tags.size += count
        for tag, place in places.items():
            self.tags.array[base + tag, 0] = place
        self.info.array[local, TAGS] = base

    def with_key(self, local: int, content: bytes) -> int | None:
        """The local state behind a key of a class, with the key among those seen; None for any other key."""
        here = self.states[local]
        if not isinstance(here, ObjectColon) or not self.plans[here.plan].is_of_class(here.tag):
            return None
        return self.index(replace(here, seen=here.seen | {content.decode()}))

    def _object_open(self, plan: int, depth: int) -> Edges:
        first = ObjectKey(plan, 0, depth)
        if self.plans[plan].may_close(0):
            yield ord("}"), (POP, -1, 0, 0, -1, -1)
        if self.plans[plan].may_continue(0, NO_KEYS):
            if self._indented:
                yield ord("\n"), self._go(self.index(first), self._indent(depth))
            else:
                for edge in self._keys(first):
                    yield strings.QUOTE, edge

    def _object_next(self, here: ObjectNext) -> Edges:
        if self.plans[here.plan].may_continue(here.position, here.seen):
            key = ObjectKey(here.plan, here.position, here.depth, here.seen)
            yield ord(","), self._go(self.index(key), self._line(here.depth))
        if self.plans[here.plan].may_close(here.position):
            yield self._close(ord("}"), here.depth)

    def _close(self, byte: int, depth: int) -> tuple[int, Edge]:
        if self._indented:
            return ord("\n"), self._go(self.index(Close(byte, depth)), self._indent(depth - 1))
        return byte, (POP, -1, 0, 0, -1, -1)

    def _array_open(self, shape: ArrayShape, depth: int) -> Edges:
        if shape.min_items == 0:
            yield ord("]"), (POP, -1, 0, 0, -1, -1)
        if shape.max_items > 0:
            if self._indented:
                yield ord("\n"), self._go(self.index(ArrayItem(shape, 0, depth)), self._indent(depth))
            else:
                yield from self._item(shape, 0, depth)

    def _item(self, shape: ArrayShape, index: int, depth: int) -> Edges:
        after = self.index(ArrayNext(shape, _count(shape, index + 1), depth))
        return self._value(self._nodes[shape.item(index)], after, depth)

    def _array_next(self, shape: ArrayShape, count: int, depth: int) -> Edges:
        if count < shape.max_items:
            yield ord(","), self._go(self.index(ArrayItem(shape, count, depth)), self._line(depth))
        if count >= shape.min_items:
            yield self._close(ord("]"), depth)


def _count(shape: ArrayShape, count: int) -> int:
    """`count`, or the first count from which on nothing changes any more."""
    if shape.max_items < strings.UNBOUNDED:
        return count
    return min(count, max(len(shape.prefix), shape.min_items))
