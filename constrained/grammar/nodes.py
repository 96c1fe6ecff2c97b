"""Nodes: the sets of subschemas that one value must meet together, expanded to arms, with exact emptiness.

A node is named by its `NodeKey`; its children are nodes again, so recursion closes by itself. Every node that a schema leads
to is expanded and measured when the schema is compiled, but for those of which a look at the schema shows that they are not
empty (`Plainness`): they are expanded when they are met, and measured when somebody asks how long they are. Nodes that
depend on values are made while documents are generated.
"""

from __future__ import annotations

import marshal
from _thread import RLock
from dataclasses import replace
from math import inf
from threading import get_ident
from time import monotonic
from typing import Any
from weakref import proxy

from constrained.errors import FuelError, SchemaError, UnsatisfiableSchemaError
from constrained.grammar import leaves, numerals, texts
from constrained.grammar.expansion import Expansion
from constrained.grammar.finite import few_values
from constrained.grammar.items import ArrayPlan
from constrained.grammar.language import LanguageFuelError, LanguageTimeError, time_limit
from constrained.grammar.leaves import Leaf
from constrained.grammar.measuring import SOME, Measuring
from constrained.grammar.members import ObjectPlan
from constrained.grammar.node import INFINITE, Node, node_of
from constrained.grammar.number_sets import NumberSet
from constrained.grammar.plain import Plainness
from constrained.grammar.plain_arms import PlainArms
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import Arm, ArrayShape, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED, StringSet
from constrained.options import CompileOptions

__all__ = ["INFINITE", "Node", "Nodes"]

_BARE: dict[tuple[str, numerals.Notation], Node] = {}  # by type and draft: a few dozen at most


class Nodes:
    """All nodes of one schema, expanded and trimmed. Immutable once built; plans live no longer than their nodes.

    Raises the `SchemaError` family: bad schema, refused keyword, unresolvable reference, fuel, unsatisfiable.
    """

    def __init__(self, schema: Any, options: CompileOptions, *, lazily: bool = True, is_own: bool = False) -> None:
        """`lazily` False has every node measured at once; `is_own` says that nobody else ever changes the schema."""
        self.any_order = options.property_order == "any"
        self.notation = numerals.Notation.of(options)
        self._limits = options.limits
        self.max_key_classes, self.max_alternatives = options.limits.max_key_classes, options.limits.max_alternatives
        self._lock = RLock()
        self._deadline: float | None = monotonic() + options.limits.timeout_s
        self._compile(schema, schema if is_own else _copied(schema), options, lazily)
        self._deadline = None

    def _compile(self, schema: Any, copy: Any, options: CompileOptions, lazily: bool) -> None:
        if copy is not None and lazily:
            self._begin(copy, options)
            if self._is_proved(options):
                return
        self._begin(schema if copy is None else copy, options)
        if self.is_empty(self.root):
            raise UnsatisfiableSchemaError("no JSON value meets this schema", self.document.root.pointer)

    def _begin(self, schema: Any, options: CompileOptions) -> None:
        """Nothing but the schema."""
        self._expansion = Expansion(schema, options, self.notation)
        self.document = self._expansion.document
        self._plainness: Plainness | None = None
        # Nodes that are known not to be empty, or to be; those that were measured, and those that were expanded alone.
        self._not_empty: set[NodeKey] = set()
        self._nothing: set[NodeKey] = set()
        self._nodes: dict[NodeKey, Node] = {}
        self._unmeasured: dict[NodeKey, Node] = {}
        self._plans: dict[object, ObjectPlan] = {}
        self._array_plans: dict[ArrayShape, ArrayPlan] = {}
        # Nodes that are being measured, by the thread that does it.
        self._measuring: Measuring | None = None
        self._measurer: int | None = None
        self.root = self.document.key(self.document.root)

    def _is_proved(self, options: CompileOptions) -> bool:
        """Whether the root and all that it leads to is known to be legal, and some value meets the root."""
        plainness = self._plainness = Plainness(self.document, options, self._expansion.formats)
        plain = self._expansion.plain = PlainArms(self.document, plainness)
        self._not_empty, self._nothing = plain.keys, plain.nothing
        try:
            is_legal = plainness.prove(lambda sub: not self._is_found_empty(self.document.key(sub)), self._deadline or inf)
        except LanguageTimeError as error:
            raise self._too_late() from error
        except SchemaError as error:
            if isinstance(error.__cause__, LanguageTimeError):
                raise
            return False  # the exact way meets faults in an order of its own
        if is_legal:
            self._not_empty.add(self.root)
        # A subschema may get two nodes: one below a plain one, one below what was measured.
        num_nodes = len(plainness.plain) + len(plainness.others) + len(self._nodes) + len(self._unmeasured)
        return is_legal and 2 * num_nodes <= self._limits.max_nodes

    def __getitem__(self, key: NodeKey) -> Node:
        """The node of `key`; one that was not met before is expanded, and trimmed unless it is plain."""
        found = self._nodes.get(key) or self._unmeasured.get(key)
        if found is None and self._measuring is not None and self._measurer == get_ident():
            found = self._measuring.fresh.get(key)
        if found is None:
            with self._lock:
                has_value = not self.is_empty(key) and key in self._not_empty
                found = self._nodes.get(key) or self._unmeasured.get(key)
                if found is None:
                    found = self._expand(key) if has_value else self._add(key)
        return found

    def has(self, key: NodeKey) -> bool:
        """Whether the node was measured before."""
        return key in self._nodes

    def is_expanded(self, key: NodeKey) -> bool:
        """Whether the node was expanded before."""
        return key in self._nodes or key in self._unmeasured

    def min_len(self, key: NodeKey) -> int:
        """Bytes of the shortest text of a node's values; INFINITE where it is empty."""
        found = self._nodes.get(key)
        if found is None:
            if self._measuring is not None and self._measurer == get_ident():
                return self._measuring.min_len(key)
            with self._lock:
                found = self._nodes.get(key) or self._add(key)
        return found.min_len

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets a node."""
        if key in self._not_empty:
            return False
        if key in self._nothing:
            return True
        found = self._nodes.get(key)
        if found is not None:
            return found.min_len >= INFINITE
        if self._plainness is None or (self._measuring is not None and self._measurer == get_ident()):
            return self.min_len(key) >= INFINITE
        return not self.has_value(key) and self._is_found_empty(key)

    def _is_found_empty(self, key: NodeKey) -> bool:
        """`is_empty` for a node of which nothing is plain to see."""
        if len(key) == 1 and key[0] > 0 and self.document.subschema(key[0] - 1).contents is False:
            self._nothing.add(key)
            return True
        with self._lock:
            if key not in self._not_empty and key not in self._nodes:
                self._grow(key, roughly=True)
        return key not in self._not_empty

    def has_value(self, key: NodeKey) -> bool:
        """Whether it is known, or plain to see, that some value meets a node."""
        if key in self._not_empty:
            return True
        if self._plainness is None or len(key) != 1 or key[0] < 0:
            return False
        is_plain = self._plainness.shows(self.document.subschema(key[0] - 1))
        if is_plain:
            self._not_empty.add(key)
        return is_plain

    def are_plain(self, keys: list[NodeKey]) -> bool:
        """Whether it is known without a look at each that no node is empty."""
        return self._not_empty.issuperset(keys)

    def _expand(self, key: NodeKey) -> Node:
        """A plain node, not measured."""
        plain = self._expansion.plain
        arms = plain.find(self.document.subschema(key[0] - 1)) if key and plain is not None else None
        node = node_of(key, self._expansion.arms(key) if arms is None else arms)
        for shape in node.arrays:
            if shape.prefix or shape.rest:
                node.arrays = tuple(map(self.trimmed, node.arrays))
                break
        self._unmeasured[key] = node
        return node

    def look(self, key: NodeKey) -> Leaf | list[Arm] | NodeKey | None:
        """A node as far as it is known at sight: none is made.

        One that says nothing of members and items is a leaf, the same object for all grammars; another plain one is given by
        its arms, its arrays not trimmed; or as the node that it is a reference to. Of any other node nothing is known.
        """
        if not key:
            return leaves.ANY_LEAF
        plain = self._expansion.plain
        if plain is None or len(key) > 1 or key[0] < 0:
            return None
        with self._lock:
            found = plain.look(key[0] - 1)
            return found if found is not None else self._new_leaf(plain, key[0] - 1)

    def _new_leaf(self, plain: PlainArms, number: int) -> Leaf | None:
        said = plain.saying(self.document.contents(number))
        return None if said is None else leaves.kept(said, self._expansion.scalars(self.document.subschema(number)))

    def negated(self, key: NodeKey) -> NodeKey:
        """The complement of a node that is one obligation, or none."""
        with self._lock:
            return self._expansion.negated(key)

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node that is all values but one; None for any other node."""
        return self._expansion.opposite(key)

    def left_out(self, key: NodeKey) -> str | None:
        """The canonical text of the one value that a node leaves out; None for any other node."""
        return self._expansion.left_out(key)

    def one_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of the values with these canonical texts."""
        with self._lock:
            return self._expansion.one_of(values)

    def none_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of all values but those with these canonical texts."""
        return self.negated(self.one_of(values)) if values else ()

    def values(self, key: NodeKey, limit: int) -> frozenset[str] | None:
        """The canonical texts of all values that meet a node; None where they are more than `limit`."""
        return few_values(self, key, limit)

    def plan(self, shape: ObjectShape) -> ObjectPlan:
        """The plan of an object shape."""
        identity = shape.identity
        with self._lock:
            found = self._plans.get(identity)
            if found is None:
                found = self._plans[identity] = ObjectPlan(shape, proxy(self), any_order=self.any_order)
                if self._measurer is None:
                    found.settle()
            return found

    def array_plan(self, shape: ArrayShape) -> ArrayPlan:
        """The plan of an array shape."""
        with self._lock:
            if shape not in self._array_plans:
                plan = self._array_plans[shape] = ArrayPlan(shape, proxy(self))
                if self._measurer is None:
                    plan.settle()
            return self._array_plans[shape]

    @property
    def minds_values(self) -> bool:
        """Whether some array here asks for items that differ, or for two that are equal."""
        self.min_len(self.root)  # then all nodes are there
        return any(shape.distinct or shape.repeats for node in self._nodes.values() for shape in node.arrays)

    def subschema(self, key: NodeKey) -> Subschema | None:
        """The one subschema that a node stands for; None where several meet, or a complement."""
        return self.document.subschema(key[0] - 1) if len(key) == 1 and key[0] > 0 else None

    def landing(self, sub: Subschema) -> Subschema:
        """Where a subschema that is nothing but a reference leads to."""
        seen: set[int] = set()
        while sub.id not in seen and not isinstance(sub.contents, bool) and set(sub.contents) == {"$ref"}:
            seen.add(sub.id)
            with self._lock:
                sub = self.document.refer(sub, "$ref")
        return sub

    def is_alive(self, arm: Arm) -> bool:
        """Whether some value meets the arm."""
        return self.node_len(node_of((), (arm,))) < INFINITE

    # -- lengths

    def node_len(self, node: Node) -> int:
        """The shortest compact text of a node's values, in bytes, by what is known of its children."""
        shortest = min(map(len, node.literals), default=INFINITE)
        for numbers in node.numbers:
            shortest = min(shortest, self.number_len(numbers))
        for strings in node.strings:
            shortest = min(shortest, self.string_len(strings))
        for array in node.arrays:
            shortest = min(shortest, self.array_len(array))
        for shape in node.objects:
            shortest = min(shortest, self.object_len(shape))
        return shortest

    def number_len(self, numbers: NumberSet) -> int:
        """The shortest text of a number in the set, in bytes."""
        length = numerals.min_number_len(numbers, self.notation)
        return INFINITE if length is None else length

    def string_len(self, strings: StringSet) -> int:
        """The shortest JSON string in the set, in bytes."""
        length = texts.min_string_len(strings)
        return INFINITE if length is None else length

    def array_len(self, shape: ArrayShape) -> int:
        """The shortest compact text of an array of this shape, in bytes."""
        if not shape.min_items <= shape.max_items:
            return INFINITE
        if shape.min_items == 0 and shape.is_plain:
            return 2
        plan = self.array_plan(shape)
        if self._asks_no_lengths:
            return INFINITE if plan.is_empty() else SOME
        length = plan.min_len()
        return INFINITE if length is None else min(length, INFINITE)

    def object_len(self, shape: ObjectShape) -> int:
        """The shortest compact text of an object of this shape, in bytes."""
        if not shape.is_plain:
            plan = self.plan(shape)
            if self._asks_no_lengths:
                return INFINITE if plan.is_empty() else SOME
            length = plan.min_len()
            return INFINITE if length is None else min(length, INFINITE)
        if not shape.required:
            return 2
        length = 1
        for name in shape.required:
            length += texts.quoted_len(name) + 2 + self.min_len(shape.properties[name])
        return min(length, INFINITE)

    @property
    def _asks_no_lengths(self) -> bool:
        """Whether a growth is under way that asks only which nodes are empty."""
        return self._measuring is not None and self._measuring.roughly and self._measurer == get_ident()

    # -- growth

    def children(self, node: Node) -> list[NodeKey]:
        """The nodes that the members and items of a node's values may have to meet."""
        keys: dict[NodeKey, None] = {}
        for array in node.arrays:
            keys.update(dict.fromkeys(array.prefix))
            keys[array.rest] = None
            for contained in array.contains:
                keys[contained.node] = None
                if contained.most < UNBOUNDED:
                    keys[self.negated(contained.node)] = None
            keys.update(dict.fromkeys(literal.node for clause in array.clauses for literal in clause))
        for shape in node.objects:
            if shape.has_classes:
                keys.update(dict.fromkeys(key.node for key in self.plan(shape).all_keys()))
                keys.update(dict.fromkeys(literal.node for literal in shape.literals))
            else:
                keys.update(dict.fromkeys(shape.properties.values()))
                keys[shape.of(frozenset())] = None
        return list(keys)

    def trimmed(self, shape: ArrayShape) -> ArrayShape:
        """An array shape with no more items than the first one that nothing can fill."""
        for index, key in enumerate(shape.prefix[: shape.max_items]):
            if self.is_empty(key):
                return replace(shape, max_items=index)
        if self.is_empty(shape.rest):
            return replace(shape, max_items=min(shape.max_items, len(shape.prefix)))
        return shape

    def placed(self, error: FuelError, key: NodeKey) -> FuelError:
        """The same error at a node's first obligation."""
        return FuelError(error.message, self._expansion.first(key).pointer, error.keyword)

    def work_at(self, key: NodeKey) -> None:
        """Note where the work is, for errors that do not know it."""
        self._expansion.at = self._expansion.first(key)

    def _add(self, key: NodeKey) -> Node:
        """Expand, measure and trim a node and all that it leads to."""
        self._grow(key)
        return self._nodes[key]

    def _grow(self, key: NodeKey, *, roughly: bool = False) -> None:
        """`_add`; or `roughly`, as far as it takes to know which nodes are empty."""
        growth = self._measuring = Measuring(self, self._make, roughly=roughly)
        self._measurer = get_ident()
        plans, array_plans = self._plans, self._array_plans
        self._plans, self._array_plans = {}, {}  # those that are settled keep lengths
        limit = self._limits.timeout_s if self._deadline is None else self._deadline - monotonic()
        try:
            with time_limit(limit):
                growth.run(key)
            self._keep(growth.fresh, roughly=roughly)
        except LanguageFuelError as error:
            raise FuelError(f"the strings of a pattern or format: {error}", self._expansion.at.pointer) from error
        except LanguageTimeError as error:
            raise self._too_late() from error
        finally:
            self._measurer = self._measuring = None
            for plan in self._plans.values():
                plan.settle()
            for array_plan in self._array_plans.values():
                array_plan.settle()
            self._plans, self._array_plans = self._plans | plans, self._array_plans | array_plans

    def _keep(self, fresh: dict[NodeKey, Node], *, roughly: bool) -> None:
        """What a growth came to."""
        if not roughly:
            self._nodes |= fresh
            return
        for key, node in fresh.items():
            if node.is_empty:
                self._nodes[key] = node
            else:
                node.min_len = INFINITE
                self._unmeasured[key] = node
                self._not_empty.add(key)

    def _too_late(self) -> FuelError:
        return FuelError(f"the compile took more than {self._limits.timeout_s} s (timeout_s)", self._expansion.at.pointer)

    def _make(self, key: NodeKey) -> Node:
        known = self._unmeasured.get(key)
        if known is not None:
            return known
        fresh = self._measuring.fresh if self._measuring else ()
        if max(len(self._nodes), len(self._unmeasured)) + len(fresh) >= self._limits.max_nodes:
            raise FuelError(f"more than {self._limits.max_nodes} nodes (max_nodes)", self._expansion.first(key).pointer)
        name = self._expansion.bare_type(key)
        return self._bare(key, name) if name is not None else node_of(key, self._expansion.arms(key))

    def _bare(self, key: NodeKey, name: str) -> Node:
        """A node that asks for a type and nothing else, measured: most nodes are."""
        known = _BARE.get((name, self.notation))
        if known is None:
            known = node_of((), self._expansion.arms(key))
            known.min_len = self.node_len(known)
            _BARE[name, self.notation] = known
        return known.at(key)


def _copied(schema: Any) -> Any:
    """A copy of a schema object as `json.loads` gives it, for what is read later; None for anything else."""
    try:
        copy = marshal.loads(marshal.dumps(schema, 2)) if type(schema) is dict else None
    except ValueError:  # values that are none of JSON, or too many levels
        return None
    return copy
