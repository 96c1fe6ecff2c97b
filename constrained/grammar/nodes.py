"""Nodes: the sets of subschemas that one value must meet together, expanded to arms, with exact emptiness.

A node is named by its `NodeKey`. Expanding it meets the arms of its subschemas; its children are nodes again, so
recursion closes by itself. The shortest text of every reachable node is found by a fixpoint: a node without one is
empty, and every arm, property and item that leads to an empty node is trimmed, so that no dead end is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from threading import RLock, get_ident
from typing import Any

from constrained.errors import FuelError, SchemaError, UnsatisfiableSchemaError
from constrained.grammar import keywords, numerals, texts
from constrained.grammar.evaluated import NOTHING, Tracking
from constrained.grammar.factor import factored
from constrained.grammar.finite import few_values
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.items import ArrayPlan
from constrained.grammar.language import LanguageFuelError, LanguageTimeError, check_time, time_limit
from constrained.grammar.members import ObjectPlan
from constrained.grammar.number_sets import NumberSet, union
from constrained.grammar.rules.unevaluated import annotated
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.grammar.shapes import (
    ANY,
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
from constrained.grammar.string_sets import UNBOUNDED, StringSet
from constrained.options import CompileOptions

INFINITE = 1 << 60
_GLANCE = 3  # how deep `are_disjoint` looks into required members


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

    @property
    def is_empty(self) -> bool:
        """Whether no value meets the node."""
        return self.min_len >= INFINITE


class Nodes:
    """All nodes of one schema, expanded and trimmed. Immutable once built.

    Raises the `SchemaError` family: bad schema, refused keyword, unresolvable reference, fuel, unsatisfiable.
    """

    def __init__(self, schema: Any, options: CompileOptions) -> None:
        self.formats = FormatChoice(options)
        self.any_order = options.property_order == "any"
        self.notation = numerals.Notation.of(options)
        self._limits = options.limits
        self.max_key_classes, self.max_alternatives = options.limits.max_key_classes, options.limits.max_alternatives
        self.document = SchemaDocument(schema, options.registry, nullable=options.nullable)
        self.tracking = Tracking.NONE
        self._place = self.document.root.pointer  # where the work is, for errors that do not know it
        self._arms: dict[tuple[int, bool, Tracking], list[Arm]] = {}
        self._open: set[tuple[int, bool, Tracking]] = set()
        self._unions: dict[int, tuple[NodeKey, ...]] = {}
        self._constants: dict[tuple[int, str, str], Subschema] = {}
        self._nodes: dict[NodeKey, Node] = {}
        self._listed_strings: dict[NodeKey, frozenset[str] | None] = {}
        self._plans: dict[object, ObjectPlan] = {}
        self._array_plans: dict[ArrayShape, ArrayPlan] = {}
        self._lock = RLock()
        # Nodes that are being measured, by the thread that does it; and those that it met for the first time.
        self._fresh: dict[NodeKey, Node] = {}
        self._measurer: int | None = None
        self._wanted: dict[NodeKey, None] = {}
        self.root = self._key(self.document.root)
        if self[self.root].is_empty:
            raise UnsatisfiableSchemaError("no JSON value meets this schema", self.document.root.pointer)

    def __getitem__(self, key: NodeKey) -> Node:
        """The node of `key`; one that was not met before is expanded, measured and trimmed, with all that it leads to."""
        found = self._nodes.get(key)
        if found is None and self._measurer == get_ident():
            found = self._fresh.get(key)
        if found is None:
            with self._lock:
                found = self._nodes.get(key) or self._add(key)
        return found

    def min_len(self, key: NodeKey) -> int:
        """Bytes of the shortest text of a node's values; INFINITE where it is empty."""
        found = self._nodes.get(key)
        if found is None and self._measurer == get_ident():
            found = self._fresh.get(key)
            if found is None:
                self._wanted[key] = None
                return INFINITE
        return (found or self[key]).min_len

    def is_empty(self, key: NodeKey) -> bool:
        """Whether no value meets a node."""
        return self.min_len(key) >= INFINITE

    def negated(self, key: NodeKey) -> NodeKey:
        """The complement of a node that is one obligation, or none."""
        if not key:
            return self._key(self._constant_schema(False))
        [obligation] = key
        sub, meets = self._obligation(obligation)
        return self._key(sub, not meets)

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node that is all values but one; None for any other node."""
        if len(key) != 1 or key[0] > 0:
            return None
        contents = self.document.subschemas[-key[0] - 1].contents
        is_constant = isinstance(contents, dict) and (
            set(contents) == {"const"} or len(contents.get("enum", ())) == 1 == len(contents)
        )
        return (-key[0],) if is_constant else None

    def one_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of the values with these canonical texts."""
        return self._key(self._constant_schema({"enum": [texts.parsed(value) for value in values]}, values))

    def none_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of all values but those with these canonical texts."""
        return self.negated(self.one_of(values)) if values else ()

    def values(self, key: NodeKey, limit: int) -> frozenset[str] | None:
        """The canonical texts of all values that meet a node; None where they are more than `limit`."""
        return few_values(self, key, limit)

    def _constant_schema(self, contents: Any, name: tuple[str, ...] = ()) -> Subschema:
        place = (self.document.root.id, "", json.dumps(name) if name else str(contents))
        if place not in self._constants:
            self._constants[place] = self.document.made(self.document.root, contents=contents)
        return self._constants[place]

    def plan(self, shape: ObjectShape) -> ObjectPlan:
        """The plan of an object shape."""
        with self._lock:
            if shape.identity not in self._plans:
                plan = self._plans[shape.identity] = ObjectPlan(shape, self, any_order=self.any_order)
                if self._measurer is None:
                    plan.settle()
            return self._plans[shape.identity]

    def array_plan(self, shape: ArrayShape) -> ArrayPlan:
        """The plan of an array shape."""
        with self._lock:
            if shape not in self._array_plans:
                plan = self._array_plans[shape] = ArrayPlan(shape, self)
                if self._measurer is None:
                    plan.settle()
            return self._array_plans[shape]

    @property
    def minds_values(self) -> bool:
        """Whether some array here asks for items that differ, or for two that are equal."""
        return any(shape.distinct or shape.repeats for node in self._nodes.values() for shape in node.arrays)

    def subschema(self, key: NodeKey) -> Subschema | None:
        """The one subschema that a node stands for; None where several meet, or a complement."""
        return self.document.subschemas[key[0] - 1] if len(key) == 1 and key[0] > 0 else None

    def landing(self, sub: Subschema) -> Subschema:
        """Where a subschema that is nothing but a reference leads to."""
        seen: set[int] = set()
        while sub.id not in seen and not isinstance(sub.contents, bool) and set(sub.contents) == {"$ref"}:
            seen.add(sub.id)
            sub = self.document.refer(sub, "$ref")
        return sub

    def is_alive(self, arm: Arm) -> bool:
        """Whether some value meets the arm."""
        return self._measure_arm(arm) < INFINITE

    # -- what the rules ask for (keywords.Context)

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""
        return self._key(self.document.child(sub, *path, contents=contents), meets)

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, as a subschema of its own, or not to."""
        name = (sub.id, keyword, texts.canonical(value))
        if name not in self._constants:
            self._constants[name] = self.document.made(sub, keyword, contents={"enum": [value]})
        return self._key(self._constants[name], meets)

    def either(self, sub: Subschema, keyword: str, keys: tuple[NodeKey, ...]) -> NodeKey:
        """The obligation to meet at least one of the nodes; it has a subschema of its own."""
        distinct = tuple(dict.fromkeys(keys))
        if len(distinct) == 1 or () in distinct:
            return distinct[0] if len(distinct) == 1 else ()
        child = self.document.made(sub, keyword, contents={"anyOf": distinct})
        self._unions[child.id] = distinct
        return self._key(child)

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> list[Arm]:
        """The arms of a subschema that applies to the same value, or of its complement; a union's member marks its arms."""
        child = self.document.child(sub, *path, contents=contents)
        arms = self._expand(child, meets, self.tracking)
        if not meets:
            return [replace(arm, origin=-1) if arm.origin >= 0 else arm for arm in arms]
        if path[0] not in ("anyOf", "oneOf"):
            return arms
        return [replace(arm, origin=child.id) if arm.origin < 0 else arm for arm in arms]

    def arms_of_reference(self, sub: Subschema, keyword: str, meets: bool = True) -> list[Arm]:
        """The arms of the subschema that a reference leads to, or of its complement."""
        return self._expand(self.document.refer(sub, keyword), meets, self.tracking)

    def are_disjoint(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets both: kinds, finite sets, bounds, or a required member that shows it."""
        return all(self._differ(a, b) or self._is_plainly_empty(a.meet(b), _GLANCE) for a in some for b in others)

    def _differ(self, a: Arm, b: Arm) -> bool:
        """Whether both are objects with a required member of few strings, none of them the same."""
        if len(a.kinds) != 1 or a.kinds != b.kinds or OBJECT not in a.kinds:
            return False
        for name in a.object.required & b.object.required:
            mine, other = (self._few_strings(arm.object.properties.get(name, ())) for arm in (a, b))
            if mine is not None and other is not None and mine.isdisjoint(other):
                return True
        return False

    def _few_strings(self, key: NodeKey) -> frozenset[str] | None:
        """The values of a node that is one subschema of nothing but listed strings."""
        if key not in self._listed_strings:
            values = None
            if len(key) == 1 and key[0] > 0:
                contents = self.document.subschemas[key[0] - 1].contents
                values = _listed_strings(contents) if isinstance(contents, Mapping) else None
            self._listed_strings[key] = values
        return self._listed_strings[key]

    def _is_plainly_empty(self, arm: Arm, depth: int) -> bool:
        if arm.kinds & {NULL, TRUE, FALSE}:
            return False
        if NUMBER in arm.kinds and numerals.min_number_len(arm.number, self.notation) is not None:
            return False
        if STRING in arm.kinds and texts.min_string_len(arm.string) is not None:
            return False
        if ARRAY in arm.kinds:
            items = [arm.array.item(i) for i in range(min(arm.array.min_items, len(arm.array.prefix)))]
            if arm.array.min_items <= arm.array.max_items and not any(self._has_plainly_none(item, depth) for item in items):
                return False
        if OBJECT in arm.kinds:
            return any(self._has_plainly_none(arm.object.member(name), depth) for name in arm.object.required)
        return True

    def _has_plainly_none(self, key: NodeKey, depth: int) -> bool:
        """Whether a glance shows that no value meets a node; a schema that is being expanded is not looked into."""
        if depth == 0 or not key:
            return False
        try:
            subs = [self._obligation(i) for i in key]
            arms = self.product(subs[0][0], [self._expand(*sub) for sub in subs])
        except SchemaError:
            return False  # what is wrong with it is said when its own turn comes
        return all(self._is_plainly_empty(arm, depth - 1) for arm in arms)

    def product(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part, without those that leave no kind of value."""
        try:
            return self._multiply(sub, parts)
        except FuelError:
            fewer = sorted((factored(part, self._is_nothing) for part in parts), key=len)
            if list(map(len, fewer)) == sorted(map(len, parts)):
                raise
            return self._multiply(sub, fewer)

    def _multiply(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        arms = [ANY]
        for part in parts:
            found: list[Arm] = []
            for a in arms:
                check_time()
                found += [met for b in part if (met := a.meet(b)).kinds]
                self.alternatives(sub, found)
            arms = found
        return arms

    def _is_nothing(self, key: NodeKey) -> bool:
        """Whether a node is one `false`."""
        if len(key) != 1:
            return False
        sub, meets = self._obligation(key[0])
        return sub.contents is (not meets)

    def alternatives(self, sub: Subschema, arms: list[Arm]) -> list[Arm]:
        """The arms, if they are not too many."""
        if len(arms) > self._limits.max_alternatives:
            raise FuelError(f"more than {self._limits.max_alternatives} alternatives (max_alternatives)", sub.pointer)
        return arms

    # -- expansion

    def _key(self, sub: Subschema, meets: bool = True) -> NodeKey:
        if (sub.contents is True or sub.contents == {}) if meets else sub.contents is False:
            return ()
        return (sub.id + 1 if meets else -(sub.id + 1),)

    def _obligation(self, signed: int) -> tuple[Subschema, bool]:
        return self.document.subschemas[abs(signed) - 1], signed > 0

    def _pointer(self, key: NodeKey) -> str:
        return self._obligation(key[0])[0].pointer if key else self.document.root.pointer

    def _expand(self, sub: Subschema, meets: bool = True, tracking: Tracking = Tracking.NONE) -> list[Arm]:
        """The arms of a subschema, or of its complement; what fails evaluates nothing."""
        place = (sub.id, meets, tracking if meets else Tracking.NONE)
        if place in self._arms:
            return self._arms[place]
        if place in self._open:
            raise SchemaError("this schema refers to itself without going into a member or an item", sub.pointer)
        if len(self._open) > self._limits.max_schema_depth:
            raise FuelError(
                f"more than {self._limits.max_schema_depth} schemas inside each other (max_schema_depth)", sub.pointer
            )
        self._open.add(place)
        outer = self.tracking, self._place
        try:
            arms = self._expand_contents(sub, meets, place[2])
        finally:
            self._open.remove(place)
            self.tracking = outer[0]
        self._place = outer[1]
        self._arms[place] = arms
        return arms

    def _expand_contents(self, sub: Subschema, meets: bool, tracking: Tracking) -> list[Arm]:
        self.tracking, self._place = tracking, sub.pointer
        check_time()
        if isinstance(sub.contents, bool):
            return [ANY] if sub.contents == meets else []
        if sub.id in self._unions:
            return self._expand_union(sub, self._unions[sub.id], meets)
        self._refuse_unsupported(sub)
        return self._meet_keywords(sub) if meets else self._fail_keywords(sub)

    def _expand_union(self, sub: Subschema, keys: tuple[NodeKey, ...], meets: bool) -> list[Arm]:
        members = [[self._expand(*self._obligation(signed)) for signed in key] for key in keys]
        if meets:
            return [arm for parts in members for arm in self.product(sub, parts)]
        others = [[self._expand(some, not holds) for some, holds in map(self._obligation, key)] for key in keys]
        return self.product(sub, [[arm for arms in parts for arm in arms] for parts in others])

    def _refuse_unsupported(self, sub: Subschema) -> None:
        if not keywords.ref_stands_alone(sub):
            for name in sub.contents:
                refusal = keywords.refusal(self.formats, sub, name)
                if refusal is not None:
                    raise refusal

    def _meet_keywords(self, sub: Subschema) -> list[Arm]:
        last = keywords.last_rules_of(sub)
        if last:
            self.tracking = max(self.tracking, Tracking.SOME)
        arms = self._meet_rules(sub)
        for keyword in last:
            arms = keyword.rule(self, sub, arms)
        return annotated(self, sub, arms) if self.tracking else arms

    def _meet_rules(self, sub: Subschema) -> list[Arm]:
        arms = self.product(sub, [keyword.rule(self, sub) for keyword in keywords.rules_of(sub)])
        return annotated(self, sub, arms) if self.tracking else arms

    def _fail_keywords(self, sub: Subschema) -> list[Arm]:
        arms = [arm for keyword in keywords.rules_of(sub) for arm in keyword.complement(self, sub)]
        last = keywords.last_rules_of(sub)
        if last:
            self.tracking = Tracking.EXACT
            rest = self._meet_rules(sub)
            arms += [arm for keyword in last for arm in keyword.complement(self, sub, rest)]
        return [replace(arm, evaluated=NOTHING) if arm.evaluated is not NOTHING else arm for arm in arms]

    def _add(self, key: NodeKey) -> Node:
        """Expand, measure and trim a node and all that it leads to."""
        self._measurer = get_ident()
        num_plans, num_array_plans = len(self._plans), len(self._array_plans)
        try:
            with time_limit(self._limits.timeout_s):
                self._expand_all([key])
                self._measure()
                self._trim()
            self._nodes |= self._fresh
        except LanguageFuelError as error:
            raise FuelError(f"the strings of a pattern or format: {error}", self._place) from error
        except LanguageTimeError as error:
            raise FuelError(f"the compile took more than {self._limits.timeout_s} s (timeout_s)", self._place) from error
        finally:
            self._measurer = None
            self._fresh, self._wanted = {}, {}
            for plan in islice(self._plans.values(), num_plans, None):
                plan.settle()
            for array_plan in islice(self._array_plans.values(), num_array_plans, None):
                array_plan.settle()
        return self._nodes[key]

    def _expand_all(self, pending: list[NodeKey]) -> None:
        while pending:
            key = pending.pop()
            if key in self._nodes or key in self._fresh:
                continue
            self._place = self._pointer(key)
            check_time()
            if len(self._nodes) + len(self._fresh) >= self._limits.max_nodes:
                raise FuelError(f"more than {self._limits.max_nodes} nodes (max_nodes)", self._place)
            node = self._fresh[key] = self._make(key)
            pending += self._children(node)

    def _make(self, key: NodeKey) -> Node:
        subs = [self._obligation(i) for i in key]
        arms = self.product(subs[0][0], [self._expand(*sub) for sub in subs]) if subs else [ANY]
        kinds = frozenset[str]().union(*(arm.kinds for arm in arms))
        return Node(
            key,
            kinds & {NULL, TRUE, FALSE},
            union(arm.number for arm in arms if NUMBER in arm.kinds),
            _merge_strings(arm.string for arm in arms if STRING in arm.kinds),
            tuple(dict.fromkeys(arm.array for arm in arms if ARRAY in arm.kinds)),
            tuple({arm.object.identity: arm.object for arm in arms if OBJECT in arm.kinds}.values()),
            tuple(arms),
        )

    def _children(self, node: Node) -> list[NodeKey]:
        keys: dict[NodeKey, None] = {}
        for array in node.arrays:
            keys.update(dict.fromkeys((*array.prefix, array.rest)))
            for contained in array.contains:
                keys[contained.node] = None
                if contained.most < UNBOUNDED:
                    keys[self.negated(contained.node)] = None
            keys.update(dict.fromkeys(literal.node for clause in array.clauses for literal in clause))
        for shape in node.objects:
            keys.update(dict.fromkeys(key.node for key in self.plan(shape).all_keys()))
            keys.update(dict.fromkeys(literal.node for literal in shape.literals))
        return list(keys)

    # -- emptiness

    def _measure(self) -> None:
        """Least fixpoint of the shortest texts; lengths only shrink, so it ends.

        Arrays whose elements must differ count by lower bounds; where they cannot differ they go, and all is measured anew.
        """
        while True:
            self._measure_fresh()
            lacking = [(node, shape) for node in self._fresh.values() for shape in node.arrays if self._lacks_values(shape)]
            if not lacking:
                return
            for node, shape in lacking:
                node.arrays = tuple(other for other in node.arrays if other != shape)
            for node in self._fresh.values():
                node.min_len = INFINITE

    def _measure_fresh(self) -> None:
        changed = True
        while changed:
            changed = False
            for node in reversed(list(self._fresh.values())):
                self._place = self._pointer(node.key)
                check_time()
                length = self._measure_node(node)
                if length < node.min_len:
                    node.min_len, changed = length, True
            if self._wanted:
                self._expand_all(list(self._wanted))
                self._wanted, changed = {}, True

    def _lacks_values(self, shape: ArrayShape) -> bool:
        if not shape.distinct or self.array_len(shape) >= INFINITE:
            return False
        plan = ArrayPlan(shape, self)
        plan.settle()
        return plan.ending(plan.start) is None

    def _measure_node(self, node: Node) -> int:
        lengths = [len(literal) for literal in node.literals]
        lengths += [length for s in node.numbers if (length := numerals.min_number_len(s, self.notation)) is not None]
        lengths += [length for s in node.strings if (length := texts.min_string_len(s)) is not None]
        lengths += [self.array_len(shape) for shape in node.arrays]
        lengths += [self.object_len(shape) for shape in node.objects]
        return min(lengths, default=INFINITE)

    def _measure_arm(self, arm: Arm) -> int:
        lengths = [len(kind) for kind in arm.kinds & {NULL, TRUE, FALSE}]
        if NUMBER in arm.kinds and (length := numerals.min_number_len(arm.number, self.notation)) is not None:
            lengths.append(length)
        if STRING in arm.kinds and (length := texts.min_string_len(arm.string)) is not None:
            lengths.append(length)
        if ARRAY in arm.kinds:
            lengths.append(self.array_len(arm.array))
        if OBJECT in arm.kinds:
            lengths.append(self.object_len(arm.object))
        return min(lengths, default=INFINITE)

    def array_len(self, shape: ArrayShape) -> int:
        """The shortest compact text of an array of this shape, in bytes."""
        length = self.array_plan(shape).min_len()
        return INFINITE if length is None else min(length, INFINITE)

    def object_len(self, shape: ObjectShape) -> int:
        """The shortest compact text of an object of this shape, in bytes."""
        length = self.plan(shape).min_len()
        return INFINITE if length is None else min(length, INFINITE)

    def _trim(self) -> None:
        for node in self._fresh.values():
            node.numbers = tuple(s for s in node.numbers if numerals.min_number_len(s, self.notation) is not None)
            node.strings = tuple(s for s in node.strings if texts.min_string_len(s) is not None)
            node.arrays = tuple(self._trim_array(s) for s in node.arrays if self.array_len(s) < INFINITE)
            node.objects = tuple(s for s in node.objects if self.object_len(s) < INFINITE)

    def _trim_array(self, shape: ArrayShape) -> ArrayShape:
        """No more items than the first one that nothing can fill."""
        for index, key in enumerate(shape.prefix[: shape.max_items]):
            if self.is_empty(key):
                return replace(shape, max_items=index)
        if self.is_empty(shape.rest):
            return replace(shape, max_items=min(shape.max_items, len(shape.prefix)))
        return shape


def _merge_strings(sets: Iterable[StringSet]) -> tuple[StringSet, ...]:
    """The union: finite sets in one, and nothing beside a set that holds it."""
    distinct = list(dict.fromkeys(sets))
    if StringSet() in distinct:
        return (StringSet(),)
    infinite = [s for s in distinct if s.values is None]
    finite = frozenset(v for s in distinct if s.values is not None for v in s.values if not any(v in i for i in infinite))
    return (*infinite, *((StringSet(values=finite),) if finite else ()))


def _listed_strings(contents: Mapping[str, Any]) -> frozenset[str] | None:
    """The strings that `const` or `enum` lists; None where there is neither, or another value among them."""
    values = [contents["const"]] if "const" in contents else contents.get("enum")
    if not isinstance(values, list) or "$ref" in contents or not all(isinstance(value, str) for value in values):
        return None
    return frozenset(values)
