"""Expansion: a subschema, or its complement, as arms.

What the rules of keywords ask for (`rules.base.Context`). Knows which obligations meet in which value; knows nothing of how
long texts are or of what is empty for a deeper reason than a glance shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any
from weakref import proxy

from constrained.errors import FuelError, SchemaError
from constrained.grammar import keywords, numerals, texts
from constrained.grammar.disjoint import Disjointness
from constrained.grammar.evaluated import NOTHING, Tracking
from constrained.grammar.factor import factored
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.glimpses import Glimpses
from constrained.grammar.language import check_time
from constrained.grammar.plain_arms import PlainArms
from constrained.grammar.rules.base import Keyword
from constrained.grammar.rules.unevaluated import annotated
from constrained.grammar.schema import ANNOTATIONS, SchemaDocument, Subschema
from constrained.grammar.shapes import ALL_OBJECTS, ANY, OBJECT, Arm, NodeKey
from constrained.grammar.simplify import simplified
from constrained.options import CompileOptions

_ANYTHING = [ANY]
_NO_NAMES: frozenset[str] = frozenset()
_TYPE_ALONE = ANNOTATIONS | {"type"}
# A subschema, or its complement, with what of the evaluation is tracked, and the names that every object has there.
_Place = tuple[int, bool, Tracking, frozenset[str]]
MANY = 100  # arms from which on it pays to look for fewer that say the same


class Expansion:
    """All subschemas of one schema with their arms, each expanded once.

    Raises the `SchemaError` family: bad schema, refused keyword, unresolvable reference, fuel.
    """

    def __init__(self, schema: Any, options: CompileOptions, notation: numerals.Notation) -> None:
        self.formats = FormatChoice(options)
        self.document = SchemaDocument(schema, options.registry, nullable=options.nullable)
        self.tracking = Tracking.NONE
        self.plain: PlainArms | None = None
        self.at = self.document.root  # where the work is, for errors that do not know it
        self._limits = options.limits
        self._arms: dict[_Place, list[Arm]] = {}
        self._open: set[_Place] = set()
        # Names that every object has by what stands beside the subschema that is being expanded; which of them mind.
        self._there = _NO_NAMES
        self._minding: dict[int, bool] = {}
        self._unions: dict[int, tuple[NodeKey, ...]] = {}
        self._constants: dict[tuple[int, str, str | tuple[str, ...]], Subschema] = {}
        self._listed: set[int] = set()  # the subschemas that were made of values
        self._left_out: dict[NodeKey, str | None] = {}
        self._parsed: dict[str, Any] = {}
        self._notation = notation

    @cached_property
    def _glimpses(self) -> Glimpses:
        return Glimpses(self.document)

    @cached_property
    def _disjointness(self) -> Disjointness:
        return Disjointness(proxy(self), self._glimpses, self._notation)

    # -- keys of nodes

    def first(self, key: NodeKey) -> Subschema:
        """The subschema of a node's first obligation."""
        return self.document.obligation(key[0])[0] if key else self.document.root

    def negated(self, key: NodeKey) -> NodeKey:
        """The complement of a node that is one obligation, or none."""
        if not key:
            return self.document.key(self._constant_schema(False))
        [obligation] = key
        sub, meets = self.document.obligation(obligation)
        return self.document.key(sub, not meets)

    def opposite(self, key: NodeKey) -> NodeKey | None:
        """The complement of a node that is all values but one; None for any other node."""
        if len(key) != 1 or key[0] > 0:
            return None
        contents = self.document.subschema(-key[0] - 1).contents
        is_constant = isinstance(contents, dict) and (
            set(contents) == {"const"} or len(contents.get("enum", ())) == 1 == len(contents)
        )
        return (-key[0],) if is_constant else None

    def left_out(self, key: NodeKey) -> str | None:
        """The canonical text of the one value that a node leaves out; None for any other node."""
        if key not in self._left_out:
            self._left_out[key] = self._find_left_out(key)
        return self._left_out[key]

    def _find_left_out(self, key: NodeKey) -> str | None:
        opposite = self.opposite(key)
        if opposite is None:
            return None
        contents = self.document.subschema(opposite[0] - 1).contents
        return texts.canonical(contents["const"] if "const" in contents else contents["enum"][0])

    def one_of(self, values: tuple[str, ...]) -> NodeKey:
        """The node of the values with these canonical texts."""
        parsed = self._parsed
        for value in values:
            if value not in parsed:
                parsed[value] = texts.parsed(value)
        return self.document.key(self._constant_schema({"enum": [parsed[value] for value in values]}, values))

    def _constant_schema(self, contents: Any, name: tuple[str, ...] = ()) -> Subschema:
        place = (self.document.root.id, "", name or str(contents))
        if place not in self._constants:
            self._constants[place] = made = self.document.made(self.document.root, contents=contents)
            self._listed.add(made.id)
        return self._constants[place]

    # -- what the rules ask for

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""
        return self.document.key(self.document.child(sub, *path, contents=contents), meets)

    def children(self, sub: Subschema, keyword: str, members: Mapping[str, Any]) -> dict[str, NodeKey]:
        """The obligations to meet each of the subschemas that `keyword` gives by name."""
        key = self.document.key
        return {name: key(child) for name, child in self.document.children(sub, keyword, members)}

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, as a subschema of its own, or not to."""
        if sub.id in self._listed:  # made for some values: their parts are those of what is made for others
            made = self._constant_schema({"enum": [value]}, (texts.canonical(value),))
            return self.document.key(made, meets)
        name = (sub.id, keyword, texts.canonical(value))
        if name not in self._constants:
            self._constants[name] = self.document.made(sub, keyword, contents={"enum": [value]})
        return self.document.key(self._constants[name], meets)

    def either(self, sub: Subschema, keyword: str, keys: tuple[NodeKey, ...]) -> NodeKey:
        """The obligation to meet at least one of the nodes; it has a subschema of its own."""
        distinct = tuple(dict.fromkeys(keys))
        if len(distinct) == 1 or () in distinct:
            return distinct[0] if len(distinct) == 1 else ()
        child = self.document.made(sub, keyword, contents={"anyOf": distinct})
        self._unions[child.id] = distinct
        return self.document.key(child)

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> list[Arm]:
        """The arms of a subschema that applies to the same value, or of its complement; a union's member marks its arms."""
        child = self.document.child(sub, *path, contents=contents)
        arms = self._expand(child, meets, self.tracking, self._there)
        if not meets:
            return [replace(arm, origin=-1) if arm.origin >= 0 else arm for arm in arms]
        if path[0] not in ("anyOf", "oneOf"):
            return arms
        return [replace(arm, origin=child.id) if arm.origin < 0 else arm for arm in arms]

    def arms_of_reference(self, sub: Subschema, keyword: str, meets: bool = True) -> list[Arm]:
        """The arms of the subschema that a reference leads to, or of its complement."""
        return self._expand(self.document.refer(sub, keyword), meets, self.tracking, self._there)

    def are_disjoint(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets both, of those that have the members that what stands beside requires."""
        return self._disjointness.holds(some, others, self._there)

    def in_turn(self, parts: Sequence[tuple[int, Callable[[], list[Arm]]]]) -> list[list[Arm]]:
        """The arms of parts that a value meets together, found in the order of their numbers.

        Each knows the members that those before it require: a `oneOf` whose members differ in such a one needs no complements.
        """
        found: list[list[Arm]] = [[]] * len(parts)
        outer = self._there
        try:
            for index in sorted(range(len(parts)), key=lambda index: parts[index][0]):
                found[index] = parts[index][1]()
                self._there |= _required(found[index])
        finally:
            self._there = outer
        return found

    def minds_names(self, sub: Subschema, *path: str | int, contents: Any) -> bool:
        """Whether the arms of a subschema may be fewer where it is known which members every object has."""
        return not self.tracking and self._minds(self.document.child(sub, *path, contents=contents))

    def _minds(self, sub: Subschema) -> bool:
        known = self._minding.get(sub.id)
        if known is None:
            self._minding[sub.id] = False  # where it leads back to itself
            known = self._minding[sub.id] = self._has_one_of(sub)
        return known

    def _has_one_of(self, sub: Subschema) -> bool:
        contents, child = sub.contents, self.document.child
        if not isinstance(contents, Mapping):
            return False
        if "$ref" in contents:
            try:
                if self._minds(self.document.refer(sub, "$ref")):
                    return True
            except SchemaError:
                return False  # what is wrong with it is said when its own turn comes
        if keywords.ref_stands_alone(sub):
            return False
        for keyword in ("allOf", "anyOf"):
            values = contents.get(keyword)
            if isinstance(values, list):
                for index, value in enumerate(values):
                    if self._minds(child(sub, keyword, index, contents=value)):
                        return True
        return "oneOf" in contents

    def product(self, sub: Subschema, parts: Sequence[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part, without those that nothing meets; where they are many, said in fewer."""
        if all(len(part) == 1 for part in parts):
            return self._meet_all(parts)
        if len(parts) == 1:
            return self.alternatives(sub, [arm for arm in parts[0] if arm.kinds])
        arms = self._multiply(parts, min(MANY, self._limits.max_alternatives))
        if arms is None:
            fewer = [factored(part, self._is_nothing) for part in self._reduced(parts)]
            arms = self._multiply(fewer, self._limits.max_alternatives)
        if arms is None:
            raise self._too_many(sub)
        return [arm for one in arms if (arm := self._simplified(one)) is not None]

    def _meet_all(self, parts: Sequence[list[Arm]]) -> list[Arm]:
        """The product of parts of one arm each."""
        found = ANY
        for part in parts:
            met = self._meet(found, part[0])
            if met is None:
                return []
            found = met
        arm = self._simplified(found)
        return [arm] if arm is not None else []

    def _simplified(self, arm: Arm) -> Arm | None:
        """The same arm with simpler clauses; None where that leaves no kind of value."""
        if not arm.object.clauses or OBJECT not in arm.kinds:
            return arm
        shape = simplified(arm.object, self._glimpses)
        if shape is None:
            return replace(arm, kinds=arm.kinds - {OBJECT}, object=ALL_OBJECTS) if len(arm.kinds) > 1 else None
        return arm if shape is arm.object else replace(arm, object=shape)

    def _multiply(self, parts: Sequence[list[Arm]], most: int) -> list[Arm] | None:
        """The arms that meet one arm of every part; None where they are more than `most`."""
        arms = _ANYTHING
        for part in parts:
            found: list[Arm] = []
            for a in arms:
                check_time()
                found += [met for b in part if (met := self._meet(a, b)) is not None]
                if len(found) > most:
                    return None
            arms = found
        return arms

    def _reduced(self, parts: Sequence[list[Arm]]) -> list[list[Arm]]:
        """The parts without the arms that those which have no choice rule out, until that leaves no other without choice."""
        left, base = list(parts), ANY
        settled: set[int] = set()
        while True:
            alone = [index for index, part in enumerate(left) if len(part) == 1 and index not in settled]
            if not alone:
                return left
            settled.update(alone)
            for index in alone:
                met = self._meet(base, left[index][0])
                if met is None:
                    return [[]]
                base = met
            check_time()
            left = [
                part if index in settled else [arm for arm in part if self._meet(base, arm) is not None]
                for index, part in enumerate(left)
            ]

    def _meet(self, a: Arm, b: Arm) -> Arm | None:
        """The intersection; None where it leaves no kind of value, or a glance at its objects shows that there are none."""
        met = b if a is ANY else a if b is ANY else a.meet(b)
        if len(met.kinds) > 1:
            return met
        if not met.kinds or (OBJECT in met.kinds and self._disjointness.has_dead_member(met.object, a.object, b.object)):
            return None
        return met

    def _is_nothing(self, key: NodeKey) -> bool:
        """Whether a node is one `false`."""
        if len(key) != 1:
            return False
        sub, meets = self.document.obligation(key[0])
        return sub.contents is (not meets)

    def alternatives(self, sub: Subschema, arms: list[Arm]) -> list[Arm]:
        """The arms, if they are not too many."""
        if len(arms) > self._limits.max_alternatives:
            raise self._too_many(sub)
        return arms

    def _too_many(self, sub: Subschema) -> FuelError:
        return FuelError(f"more than {self._limits.max_alternatives} alternatives (max_alternatives)", sub.pointer)

    # -- subschemas as arms

    def arms(self, key: NodeKey) -> list[Arm]:
        """The arms of a node: of all its obligations together."""
        if not key:
            return _ANYTHING
        if len(key) == 1:
            sub, meets = self.document.obligation(key[0])
            return self.alternatives(sub, self._expand(sub, meets))
        if self._glimpses.show_nothing(key):
            return []
        subs = [self.document.obligation(signed) for signed in key]
        return self.product(subs[0][0], [self._expand(*sub) for sub in subs])

    def scalars(self, sub: Subschema) -> list[Arm]:
        """The arms of a plain subschema of which each rule gives one arm (`leaves`)."""
        found = ANY
        for keyword in keywords.rules_of(sub)[0]:
            [arm] = keyword.rule(self, sub)
            found = found.meet(arm)
        return [found]

    def bare_type(self, key: NodeKey) -> str | None:
        """The name of the one type that a node asks for, in its draft, where it asks for nothing else."""
        if len(key) != 1 or key[0] < 0:
            return None
        sub = self.document.subschema(key[0] - 1)
        if isinstance(sub.contents, bool) or not sub.contents.keys() <= _TYPE_ALONE:
            return None
        name = sub.contents.get("type")
        return f"{name} {sub.draft}" if isinstance(name, str) else None

    def _expand(
        self, sub: Subschema, meets: bool = True, tracking: Tracking = Tracking.NONE, there: frozenset[str] = _NO_NAMES
    ) -> list[Arm]:
        """The arms of a subschema, or of its complement; what fails evaluates nothing.

        They need only be right for objects that have the members `there`.
        """
        if there and (not meets or tracking or not self._minds(sub)):
            there = _NO_NAMES
        place = (sub.id, meets, tracking if meets else Tracking.NONE, there)
        known = self._arms.get(place)
        if known is not None:
            return known
        if self.plain is not None and meets and not tracking:
            plain = self.plain.find(sub)
            if plain is not None:
                return plain
        if place in self._open:
            raise SchemaError("this schema refers to itself without going into a member or an item", sub.pointer)
        if len(self._open) > self._limits.max_schema_depth:
            raise FuelError(
                f"more than {self._limits.max_schema_depth} schemas inside each other (max_schema_depth)", sub.pointer
            )
        self._open.add(place)
        outer = self.tracking, self.at, self._there
        self._there = there
        try:
            arms = self._expand_contents(sub, meets, place[2])
        finally:
            self._open.remove(place)
            self.tracking, self._there = outer[0], outer[2]
        self.at = outer[1]
        self._arms[place] = arms
        return arms

    def _expand_contents(self, sub: Subschema, meets: bool, tracking: Tracking) -> list[Arm]:
        self.tracking, self.at = tracking, sub
        check_time()
        if isinstance(sub.contents, bool):
            return _ANYTHING if sub.contents == meets else []
        if sub.id in self._unions:
            return self._expand_union(sub, self._unions[sub.id], meets)
        refusal = keywords.refusal(self.formats, sub)
        if refusal is not None:
            raise refusal
        return self._meet_keywords(sub) if meets else self._fail_keywords(sub)

    def _expand_union(self, sub: Subschema, keys: tuple[NodeKey, ...], meets: bool) -> list[Arm]:
        members = [[self._expand(*self.document.obligation(signed)) for signed in key] for key in keys]
        if meets:
            return [arm for parts in members for arm in self.product(sub, parts)]
        others = [[self._expand(some, not holds) for some, holds in map(self.document.obligation, key)] for key in keys]
        return self.product(sub, [[arm for arms in parts for arm in arms] for parts in others])

    def _meet_keywords(self, sub: Subschema) -> list[Arm]:
        rules, last = keywords.rules_of(sub)
        if last:
            self.tracking, self._there = max(self.tracking, Tracking.SOME), _NO_NAMES
        arms = self._meet_rules(sub, rules)
        for final in last:
            arms = final.rule(self, sub, arms)
        return annotated(self, sub, arms) if self.tracking else arms

    def _meet_rules(self, sub: Subschema, rules: Sequence[Keyword]) -> list[Arm]:
        if len(rules) == 1 or self.tracking or not any(keyword.turn for keyword in rules):
            parts = [keyword.rule(self, sub) for keyword in rules]
        else:
            parts = self.in_turn([(keyword.turn, partial(keyword.rule, self, sub)) for keyword in rules])
        arms = self.product(sub, parts)
        return annotated(self, sub, arms) if self.tracking else arms

    def _fail_keywords(self, sub: Subschema) -> list[Arm]:
        rules, last = keywords.rules_of(sub)
        arms = [arm for keyword in rules for arm in keyword.complement(self, sub)]
        if last:
            self.tracking = Tracking.EXACT
            rest = self._meet_rules(sub, rules)
            arms += [arm for final in last for arm in final.complement(self, sub, rest)]
        return [replace(arm, evaluated=NOTHING) if arm.evaluated is not NOTHING else arm for arm in arms]


def _required(arms: list[Arm]) -> frozenset[str]:
    """The members that every object has which meets one of the arms."""
    shapes = [arm.object.required for arm in arms if OBJECT in arm.kinds]
    return frozenset(shapes[0].intersection(*shapes[1:])) if shapes else _NO_NAMES
