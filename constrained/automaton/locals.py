"""Local states: what may come next inside one frame, without what lies below it on the stack.

A local state is a frozen value (`Done`, `Value`, `ObjectOpen`, ...) with an index. Its row of edges is made when it is
first met, and shared by local states that differ only in what stands behind them: all values that meet the same node, all
places before a comma. The places of an object whose members only have to come in their order are laid out at once
(`automaton.listed`). Whitespace is a lexeme that stands before the local state; how much of it the layout asks for decides
the lexeme that each edge enters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace

from constrained.automaton import lexemes, strings
from constrained.automaton.contents import Contents
from constrained.automaton.edge_rows import CLOSES, Edge, EdgeRows, Edges, SharedEdges, shared
from constrained.automaton.frames import (
    ArrayItem,
    ArrayNext,
    ArrayOpen,
    Close,
    Done,
    Either,
    Local,
    ObjectColon,
    ObjectKey,
    ObjectNext,
    ObjectOpen,
    Value,
)
from constrained.automaton.lexemes import PlainKey, PlainLexemes
from constrained.automaton.listed import Listed
from constrained.automaton.tables import (
    AFTER,
    ANY_TAG,
    ASK,
    BEHIND,
    DONE,
    ENTRY,
    GOTO,
    HIGH,
    LOCAL_COLUMNS,
    LOW,
    NOWHERE,
    PUSH,
    ROW,
    TAGS,
    UNRESOLVED,
    Storage,
    StringTries,
    Table,
)
from constrained.grammar.items import ArrayPlan, Repeat
from constrained.grammar.leaves import MAX_LEAVES, Leaf
from constrained.grammar.members import ObjectPlan
from constrained.grammar.node import node_of
from constrained.grammar.nodes import Node, Nodes
from constrained.grammar.numerals import numeral, spellings
from constrained.grammar.shapes import ARRAY, OBJECT, Arm, NodeKey
from constrained.grammar.string_sets import StringSet
from constrained.options import CompileOptions

INDENT = 2
OBJECTS, ARRAYS = frozenset((OBJECT,)), frozenset((ARRAY,))


class Locals:
    """Local states by index, and the tables of their edges."""

    def __init__(
        self,
        nodes: Nodes,
        options: CompileOptions,
        plain: PlainLexemes,
        tries: StringTries,
        contents: Contents,
        storage: Storage,
    ) -> None:
        self.nodes = nodes
        self._indented = options.whitespace == "indented"
        self._gap = lexemes.gap(options)
        self.nothing = plain.index(lexemes.NOTHING)
        plain.resolve(self.nothing)
        self._gap_lex = plain.index(self._gap)
        plain.resolve(self._gap_lex)  # the kernel reads it behind values without asking
        self._plain = plain
        self._tries = tries
        self._contents = contents
        self.edge_rows = EdgeRows(tries, storage)
        self.info = Table(LOCAL_COLUMNS, 128, storage)
        self.tags = Table(1, 128, storage)
        self._states: list[Local | None] = []
        self._listed: list[Listed] = []
        self._listed_from: list[int] = []
        self._rows: dict[tuple[NodeKey, int], int] = {}
        self._leaf_rows: dict[tuple[Leaf, int], int] = {}
        self._leaf_edges = plain.leaf_edges.setdefault(nodes.notation, {})
        self._frames: tuple[int, ...] | None = None
        self._behind_items: dict[tuple[bool, bool], int] = {}
        self.plans: list[ObjectPlan] = []
        self.array_plans: list[ArrayPlan] = []
        self._plan_index: dict[ObjectPlan | ArrayPlan, int] = {}
        self._index: dict[Local, int] = {}
        self._key_lexes: dict[int, int] = {}
        self._open_keys: dict[int, int] = {}
        self._closed_keys: dict[tuple[int, tuple[int, ...]], int] = {}
        self._value_lexes: dict[StringSet, int] = {}
        self.done = self.index(Done())
        self.start = self.index(Value(nodes.root, self.done, 0))

    # -- indices

    def index(self, local: Local) -> int:
        """The index of a local state; its row may still be empty."""
        made = len(self._states)
        found = self._index.setdefault(local, made)
        if found == made:
            self._states.append(local)
            is_done = isinstance(local, Done)
            after = local.after if isinstance(local, Value) else -1
            self.info.add((self.nothing if is_done else self._gap_lex, -1, int(is_done), UNRESOLVED, after, 0, ANY_TAG))
        return found

    def __len__(self) -> int:
        return len(self._states)

    def state(self, index: int) -> Local:
        """The local state of an index."""
        found = self._states[index]
        if found is None:
            found = self._states[index] = self._listed_at(index).state(index)
        return found

    def entry(self, index: int) -> int:
        """The lexeme that stands before a local state."""
        return self.info.cells[index * LOCAL_COLUMNS + ENTRY]

    def is_done(self, index: int) -> bool:
        """Whether the document may end at this local state."""
        return bool(self.info.cells[index * LOCAL_COLUMNS + DONE])

    def is_key(self, index: int) -> bool:
        """Whether a key is being read at this local state."""
        return self.info.cells[index * LOCAL_COLUMNS + TAGS] >= 0

    def after(self, index: int) -> int:
        """What stands `BEHIND` a local state, for edges that others share."""
        return self.info.cells[index * LOCAL_COLUMNS + AFTER]

    def plan(self, plan: ObjectPlan) -> int:
        """The index of the plan of an object shape."""
        if plan not in self._plan_index:
            self._plan_index[plan] = len(self.plans)
            self.plans.append(plan)
        return self._plan_index[plan]

    def array_plan(self, plan: ArrayPlan) -> int:
        """The index of the plan of an array shape."""
        if plan not in self._plan_index:
            self._plan_index[plan] = len(self.array_plans)
            self.array_plans.append(plan)
        return self._plan_index[plan]

    @property
    def endings_vary(self) -> bool:
        """Whether a shortest ending may depend on more of the history than a state knows: on values, or on keys."""
        return any(not plan.is_plain for plan in self.array_plans) or any(not plan.is_plain for plan in self.plans)

    # -- rows

    def resolve(self, index: int) -> None:
        """Give a local state its row of edges."""
        if self.info.cells[index * LOCAL_COLUMNS + ROW] == UNRESOLVED:
            local = self._states[index]
            row = self._listed_row(index) if local is None else self._row_of(index, local)
            self.info.cells[index * LOCAL_COLUMNS + ROW] = row

    def _row_of(self, index: int, local: Local) -> int:
        match local:
            case Value(node, _, depth):
                return self._value_row(node, depth)
            case ObjectOpen(plan, depth) if self._lays_out(self.plans[plan]):
                return self._listed_open(index, plan)
            case ArrayItem(plan, standing, depth) if len(options := self.array_plans[plan].choices(standing)) == 1:
                self._set_after(index, self.index(ArrayNext(plan, options[0][1], depth)))
                return self._value_row(options[0][0], depth)
            case ArrayNext(plan, standing, _) if not (self._indented or self.array_plans[plan].awaits_value(standing)):
                return self._array_next_row(index, self.array_plans[plan], local)
            case ArrayOpen(plan, depth) if not self._indented:
                return self._array_open_row(index, plan)
        return self.edge_rows.add(self._edges(local))

    def _set_after(self, index: int, after: int) -> None:
        self.info.cells[index * LOCAL_COLUMNS + AFTER] = after

    def _value_row(self, node: NodeKey, depth: int) -> int:
        """The row of all values that meet a node."""
        row = self._rows.get((node, depth))
        if row is not None:
            return row
        seen = self.nodes.look(node)
        if isinstance(seen, Leaf):  # most nodes: scalars that all grammars share
            row = self._leaf_rows.get((seen, depth))
            return self._new_leaf_row(seen, depth) if row is None else row
        row = self._rows[node, depth] = self._new_value_row(node, seen, depth)
        return row

    def _new_value_row(self, node: NodeKey, seen: list[Arm] | NodeKey | None, depth: int) -> int:
        """The row of a node, which is made where it is not known at sight (`Nodes.look`)."""
        if isinstance(seen, tuple):
            return self._value_row(seen, depth)
        if seen is None:
            return self.edge_rows.add(self._value(self.nodes[node], BEHIND, depth))
        arm, inner = seen[0], self._inner(depth)
        if arm.kinds == OBJECTS:
            plan = self.plan(self.nodes.plan(arm.object))
            return self.edge_rows.add_one(ord("{"), self._push(ObjectOpen(plan, inner), BEHIND))
        if arm.kinds == ARRAYS:
            plan = self.array_plan(self.nodes.array_plan(self.nodes.trimmed(arm.array)))
            return self.edge_rows.add_one(ord("["), self._push(ArrayOpen(plan, inner), BEHIND))
        return self.edge_rows.add(self._value(node_of((), seen), BEHIND, depth))

    def _new_leaf_row(self, leaf: Leaf, depth: int) -> int:
        node = leaf.node
        known = self._leaf_edges.get(leaf) if node.numbers or node.literals else ()
        if known is None:
            known = self._new_leaf_edges(leaf)
        own = [(strings.QUOTE, self._string(texts_, BEHIND)) for texts_ in node.strings]
        if node.arrays or node.objects:
            own += self._containers(node, BEHIND, depth)
        row = self._leaf_rows[leaf, depth] = self.edge_rows.add(own, known)
        return row

    def _new_leaf_edges(self, leaf: Leaf) -> SharedEdges:
        """The edges into the numbers and literals of a leaf, the same for all grammars over the lexemes."""
        known = self._leaf_edges
        if len(known) >= MAX_LEAVES:
            known.clear()
        found = known[leaf] = shared(self._plain_values(leaf.node, BEHIND))
        return found

    def _edges(self, local: Local) -> Edges:
        """The edges of a local state: (byte, (kind, lex, need, room, local, return))."""
        match local:
            case Value(node, after, depth):
                return self._value(self.nodes[node], after, depth)
            case ObjectOpen(plan, depth):
                return self._object_open(plan, depth)
            case ObjectKey():
                return [(strings.QUOTE, edge) for edge in self._keys(local)]
            case ObjectColon():
                return self._object_colon(local)
            case ObjectNext():
                return self._object_next(local)
            case ArrayOpen(plan, depth):
                return self._array_open(plan, depth)
            case ArrayItem():
                return self._item(local)
            case ArrayNext():
                return self._array_next(local)
            case Close(byte, _):
                return [(byte, CLOSES)]
            case Done():
                return []
            case Either(places):
                return list(dict.fromkeys(edge for place in places for edge in self._all_edges(place)))

    def _all_edges(self, index: int) -> Iterable[tuple[int, Edge]]:
        """The edges of a local state as they are for it alone."""
        self.resolve(index)
        return self.edge_rows.edges_of(self.info.cells[index * LOCAL_COLUMNS + ROW], self.after(index))

    def may_be_either(self, index: int) -> bool:
        """Whether what follows a local state behind a value is known without the value."""
        return not (self.is_done(index) or self.awaits_value(index))

    def either(self, places: Iterable[int]) -> int:
        """The local state that is one of several that `may_be_either`."""
        found: set[int] = set()
        for place in places:
            here = self._states[place]
            found |= set(here.places) if isinstance(here, Either) else {place}
        return self.index(Either(tuple(sorted(found))))

    def _go(self, local: int, lexeme: PlainKey | None = None, kind: int = GOTO) -> Edge:
        lex = self.entry(local) if lexeme is None else self._plain.index(lexeme)
        return (kind, lex, 0, 0, local, -1)

    def _indent(self, depth: int) -> PlainKey:
        return lexemes.layout(b" " * (INDENT * depth))

    def _line(self, depth: int) -> PlainKey | None:
        """The lexeme after a comma: a new line in the indented layout."""
        return lexemes.layout(b"\n" + b" " * (INDENT * depth)) if self._indented else None

    def _value(self, node: Node, after: int, depth: int) -> Edges:
        for texts_ in node.strings:
            yield strings.QUOTE, self._string(texts_, after)
        if node.numbers or node.literals:
            yield from self._plain_values(node, after)
        yield from self._containers(node, after, depth)

    def _plain_values(self, node: Node, after: int) -> Edges:
        """Numbers and literals."""
        literal = {text.encode() for text in node.literals}
        notation = self.nodes.notation
        for numbers in node.numbers:
            if numbers.values is not None and not notation.permissive:
                written = (spellings(value, notation, plain=numbers.plain) for value in numbers.values)
                literal |= {text.encode() for texts_ in written for text in texts_}
                continue
            for byte, lex in self._plain.begins(("number", numeral(numbers, notation))):
                yield byte, (GOTO, lex, 0, 0, after, -1)
        if literal:
            for byte, lex in self._plain.begins(lexemes.literal(*literal)):
                yield byte, (GOTO, lex, 0, 0, after, -1)

    def _containers(self, node: Node, after: int, depth: int) -> Edges:
        inner = self._inner(depth)
        for shape in node.arrays:
            yield ord("["), self._push(ArrayOpen(self.array_plan(self.nodes.array_plan(shape)), inner), after)
        for members in node.objects:
            yield ord("{"), self._push(ObjectOpen(self.plan(self.nodes.plan(members)), inner), after)

    def _inner(self, depth: int) -> int:
        """The depth of what stands in a value at `depth`, as far as it matters."""
        return depth + 1 if self._indented else 0

    def _push(self, inside: Local, after: int) -> Edge:
        opened = self.index(inside)
        return (PUSH, self.entry(opened), 0, 0, opened, after)

    def _string(self, texts_: StringSet, after: int) -> Edge:
        if texts_.language is not None:
            # An upper length is counted beside the automaton of the rest: else it takes a state for each character.
            core, most = texts_.language.apart_from_length() or (texts_.language, strings.UNBOUNDED)
            return (GOTO, self._contents.lex(core, counted=True), 0, most, after, -1)
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
        tags, free = plan.candidates(here.progress), plan.may_add(here.progress)
        if tags or free:
            yield self._named_key(here, tags, free)
        for tag, language in plan.open_classes(here.progress):
            local = self.index(replace(here, tag=tag))
            if not self.is_key(local):
                # What is left of a language may be anything: then the key ends as a free string does.
                colon = self.index(ObjectColon(here.plan, tag, here.progress, here.depth))
                self._set_tags(local, {strings.VALUE_TAG: colon, strings.FREE_TAG: colon}, strings.VALUE_TAG)
            yield (GOTO, self._contents.lex(language), 0, strings.UNBOUNDED, local, -1)

    def _named_key(self, here: ObjectKey, tags: list[int], free: bool) -> Edge:
        local = self.index(here)
        if local not in self._key_lexes:
            plan = self.plans[here.plan]
            if free:
                lex = self._open_key(here.plan)
            else:
                lex = self._closed_key(here.plan, tuple(tags))
            self._key_lexes[local] = lex
            places = dict.fromkeys(tags, _later(local))
            if free:
                places[strings.FREE_TAG] = self.index(ObjectColon(here.plan, strings.FREE_TAG, here.progress, here.depth))
            self._set_tags(local, places, len(plan.names))
        return (GOTO, self._key_lexes[local], 0, strings.UNBOUNDED, local, -1)

    def _closed_key(self, plan_index: int, tags: tuple[int, ...]) -> int:
        """The trie of the names that may come next where no other key may."""
        place = (plan_index, tags)
        if place not in self._closed_keys:
            names = self.plans[plan_index].names
            self._closed_keys[place] = self._tries.add([(names[tag - 1], tag) for tag in tags], fallback=False)
        return self._closed_keys[place]

    def _open_key(self, plan_index: int) -> int:
        """The trie of an open object's names, the same at every position: a name that is past leads nowhere there."""
        if plan_index not in self._open_keys:
            plan = self.plans[plan_index]
            tags = plan.free_tags()
            names = [(name, tags.get(name, strings.EXCLUDED)) for name in plan.names]
            self._open_keys[plan_index] = self._tries.add(names, fallback=True) if names else strings.FREE
        return self._open_keys[plan_index]

    def _set_tags(self, local: int, places: dict[int, int], most: int) -> None:
        """Where a key with each tag, up to `most`, leads to from `local`; nowhere if it is not among the places."""
        base, count = self.tags.size, most + 1
        self.tags.reserve(count)
        self.tags.size += count
        cells = self.tags.cells
        for tag, place in places.items():
            cells[base + tag] = place
        self.info.cells[local * LOCAL_COLUMNS + TAGS] = base

    def behind(self, local: int, tag: int) -> int:
        """The local state behind a string that ends with `tag`, read at a local state; NOWHERE where it may not end so."""
        at, cells = local * LOCAL_COLUMNS, self.info.cells
        base = cells[at + TAGS]
        if base < 0:
            return local
        if tag != strings.FREE_TAG and not cells[at + LOW] <= tag <= cells[at + HIGH]:
            return NOWHERE
        if self.tags.cells[base + tag] < NOWHERE:
            self.resolve_key(base + tag)
        return self.tags.cells[base + tag]

    def resolve_key(self, slot: int) -> None:
        """Make the place behind a name, which a row of the table of tags is to hold."""
        local = _later(self.tags.cells[slot])
        if local >= 0:
            here, tag = self.state(local), slot - self.info.cells[local * LOCAL_COLUMNS + TAGS]
            assert isinstance(here, ObjectKey)
            colon = self.tags.cells[slot] = self.index(ObjectColon(here.plan, tag, here.progress, here.depth))
            self.resolve(colon)

    def with_key(self, local: int, content: bytes) -> int | None:
        """The local state behind a key of a class, with the key among those seen; None for any other key."""
        here = self._states[local]  # one that is laid out is of no class
        if not isinstance(here, ObjectColon) or not self.plans[here.plan].is_of_class(here.tag):
            return None
        progress = replace(here.progress, seen=here.progress.seen | {content.decode()})
        return self.index(replace(here, progress=progress))

    def awaits_value(self, local: int) -> bool:
        """Whether the value of the item that ends before a local state decides what follows."""
        here = self._states[local]
        return isinstance(here, ArrayNext) and self.array_plans[here.plan].awaits_value(here.standing)

    def ends_member(self, local: int) -> bool:
        """Whether a local state is behind a member of an object."""
        return isinstance(self.state(local), ObjectNext)

    def with_value(self, local: int, value: str) -> int | None:
        """The local state of the next item, when the one just read has this value; None where no item may follow."""
        here = self._states[local]
        assert isinstance(here, ArrayNext)  # only its comma is an ASK edge
        standing = here.standing.with_value(value)
        if not self.array_plans[here.plan].may_go_on(standing):
            return None
        return self.index(ArrayItem(here.plan, standing, here.depth))

    # -- objects that are laid out at once

    def _lays_out(self, plan: ObjectPlan) -> bool:
        return plan.is_sequence and not self._indented

    def _listed_at(self, index: int) -> Listed:
        """The object to whose places, laid out at once, a local state belongs."""
        return self._listed[bisect_right(self._listed_from, index) - 1]

    def _listed_row(self, index: int) -> int:
        """The row before a value of an object that is laid out, or before a key where only names may come."""
        listed = self._listed_at(index)
        if index >= listed.first_value:
            return self._value_row(listed.node(index), 0)
        at, cells = index * LOCAL_COLUMNS, self.info.cells
        return self._listed_key_row(listed, cells[at + LOW], cells[at + HIGH])

    def _listed_key_row(self, listed: Listed, first: int, last: int) -> int:
        """The row before a key that must be one of the names with tags from `first` to `last`."""
        tags = listed.alive
        at, stop = bisect_left(tags, first), bisect_right(tags, last)
        if at >= stop:
            return self.edge_rows.add([])
        if listed.has_free:
            return self._key_row(self._tries.part(self._open_key(listed.plan_index), first, last))
        lex = self._closed_key(listed.plan_index, tags)
        return self._key_row(lex if stop - at == len(tags) else self._tries.part(lex, first, last))

    def _listed_open(self, index: int, plan_index: int) -> int:
        """The row behind an opening brace; lays out all places of the object."""
        plan = self.plans[plan_index]
        listed = Listed(plan, plan_index, len(self._states))
        self._listed.append(listed)
        self._listed_from.append(listed.first)
        self._states += [None] * len(listed)
        free = self._key_row(self._open_key(plan_index)) if listed.has_free else UNRESOLVED
        listed.lay_out(self.info, self.tags, self._gap_lex, self._frame_rows(), free)
        key = listed.key(0)
        self._set_after(index, key)
        self.resolve(key)
        row = self.info.cells[key * LOCAL_COLUMNS + ROW]
        return self.edge_rows.beside(row, ord("}")) if plan.may_close(plan.start) else row

    def _key_row(self, lex: int) -> int:
        return self.edge_rows.add_one(strings.QUOTE, (GOTO, lex, 0, strings.UNBOUNDED, BEHIND, -1))

    def _frame_rows(self) -> tuple[int, ...]:
        """Shared rows: before a colon, before a comma or brace, before a comma, before a brace."""
        if self._frames is None:
            go: Edge = (GOTO, self._gap_lex, 0, 0, BEHIND, -1)
            comma, brace = (ord(","), go), (ord("}"), CLOSES)
            self._frames = tuple(self.edge_rows.add(edges) for edges in ([(ord(":"), go)], [comma, brace], [comma], [brace]))
        return self._frames

    # -- objects, place by place

    def _object_open(self, plan_index: int, depth: int) -> Edges:
        plan = self.plans[plan_index]
        first = ObjectKey(plan_index, plan.start, depth)
        if plan.may_close(plan.start):
            yield ord("}"), CLOSES
        if plan.may_continue(plan.start):
            if self._indented:
                yield ord("\n"), self._go(self.index(first), self._indent(depth))
            else:
                for edge in self._keys(first):
                    yield strings.QUOTE, edge

    def _object_colon(self, here: ObjectColon) -> Edges:
        for node, progress in self.plans[here.plan].choices(here.progress, here.tag):
            after = self.index(ObjectNext(here.plan, progress, here.depth))
            value = self.index(Value(node, after, here.depth))
            self.resolve(value)  # whatever asks for the colon asks for the value
            yield ord(":"), self._go(value, lexemes.layout(b" ") if self._indented else None)

    def _object_next(self, here: ObjectNext) -> Edges:
        plan = self.plans[here.plan]
        if plan.may_continue(here.progress):
            yield ord(","), self._go(self.index(ObjectKey(here.plan, here.progress, here.depth)), self._line(here.depth))
        if plan.may_close(here.progress):
            yield self._close(ord("}"), here.depth)

    def _close(self, byte: int, depth: int) -> tuple[int, Edge]:
        if self._indented:
            return ord("\n"), self._go(self.index(Close(byte, depth)), self._indent(depth - 1))
        return byte, CLOSES

    def _array_open_row(self, index: int, plan_index: int) -> int:
        """The row behind an opening bracket, compact: that of the first item, and the closing bracket."""
        plan = self.array_plans[plan_index]
        options = plan.choices(plan.start)
        if len(options) != 1:
            return self.edge_rows.add(self._array_open(plan_index, 0))
        node, standing = options[0]
        after = self.index(ArrayNext(plan_index, standing, 0))
        self._set_after(index, after)
        self.resolve(after)
        row = self._value_row(node, 0)
        return self.edge_rows.beside(row, ord("]")) if plan.may_close(plan.start) else row

    def _array_open(self, plan_index: int, depth: int) -> Edges:
        plan = self.array_plans[plan_index]
        if plan.may_close(plan.start):
            yield ord("]"), CLOSES
        if plan.choices(plan.start):
            first = ArrayItem(plan_index, plan.start, depth)
            if self._indented:
                yield ord("\n"), self._go(self.index(first), self._indent(depth))
            else:
                yield from self._item(first)

    def _item(self, here: ArrayItem) -> Edges:
        for node, standing in self.array_plans[here.plan].choices(here.standing):
            after = self.index(ArrayNext(here.plan, standing, here.depth))
            yield from self._value(self.nodes[node], after, here.depth)

    def _array_next_row(self, index: int, plan: ArrayPlan, here: ArrayNext) -> int:
        """The row behind an item whose value does not matter, compact: one for all arrays that may go on, or end, alike."""
        goes_on, closes = plan.may_go_on(here.standing), plan.may_close(here.standing)
        if goes_on:
            self._set_after(index, self.index(ArrayItem(here.plan, here.standing, here.depth)))
        row = self._behind_items.get((goes_on, closes))
        if row is None:
            go: Edge = (GOTO, self._gap_lex, 0, 0, BEHIND, -1)
            edges = [(ord(","), go)] * goes_on + [(ord("]"), CLOSES)] * closes
            row = self._behind_items[goes_on, closes] = self.edge_rows.add(edges)
        return row

    def _array_next(self, here: ArrayNext) -> Edges:
        plan, standing = self.array_plans[here.plan], here.standing
        if plan.awaits_value(standing):
            # Until the value is known: wherever any value could lead.
            standing = replace(standing, repeat=Repeat.DONE)
        if plan.may_go_on(standing):
            item = self.index(ArrayItem(here.plan, standing, here.depth))
            kind = ASK if plan.awaits_value(here.standing) else GOTO
            yield ord(","), self._go(item, self._line(here.depth), kind)
        if plan.may_close(here.standing):
            yield self._close(ord("]"), here.depth)


def _later(local: int) -> int:
    """What stands in the table of tags for a place behind a name that may be read at `local`, until it is made; and back."""
    return NOWHERE - 1 - local
