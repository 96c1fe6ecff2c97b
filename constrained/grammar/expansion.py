"""Expansion: a subschema, or its complement, as arms.

What the rules of keywords ask for (`rules.base.Context`). Knows which obligations meet in which value; knows nothing of how
long texts are or of what is empty for a deeper reason than a glance shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from constrained.errors import FuelError, SchemaError
from constrained.grammar import keywords, numerals, texts
from constrained.grammar.disjoint import Disjointness
from constrained.grammar.evaluated import NOTHING, Tracking
from constrained.grammar.factor import factored
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.language import check_time
from constrained.grammar.rules.base import Keyword
from constrained.grammar.rules.unevaluated import annotated
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.grammar.shapes import ANY, Arm, NodeKey
from constrained.options import CompileOptions

_ANYTHING = [ANY]


class Expansion:
    """All subschemas of one schema with their arms, each expanded once.

    Raises the `SchemaError` family: bad schema, refused keyword, unresolvable reference, fuel.
    """

    def __init__(self, schema: Any, options: CompileOptions) -> None:
        self.formats = FormatChoice(options)
        self.document = SchemaDocument(schema, options.registry, nullable=options.nullable)
        self.tracking = Tracking.NONE
        self.place = self.document.root.pointer  # where the work is, for errors that do not know it
        self._limits = options.limits
        self._arms: dict[tuple[int, bool, Tracking], list[Arm]] = {}
        self._open: set[tuple[int, bool, Tracking]] = set()
        self._unions: dict[int, tuple[NodeKey, ...]] = {}
        self._constants: dict[tuple[int, str, str], Subschema] = {}
        self._disjointness = Disjointness(self, numerals.Notation.of(options))

    # -- keys of nodes

    def key(self, sub: Subschema, meets: bool = True) -> NodeKey:
        """The obligation to meet a subschema, or not to; complements of what says the same elsewhere are one."""
        contents = sub.contents
        if (contents is True or contents == {}) if meets else contents is False:
            return ()
        return (sub.id + 1 if meets else -(self.document.meaning(sub) + 1),)

    def obligation(self, signed: int) -> tuple[Subschema, bool]:
        """The subschema of an obligation, and whether it is to be met."""
        return self.document.subschemas[abs(signed) - 1], signed > 0

    def pointer(self, key: NodeKey) -> str:
        """Where the first obligation of a node is written."""
        return self.obligation(key[0])[0].pointer if key else self.document.root.pointer

    def negated(self, key: NodeKey) -> NodeKey:
        """The complement of a node that is one obligation, or none."""
        if not key:
            return self.key(self._constant_schema(False))
        [obligation] = key
        sub, meets = self.obligation(obligation)
        return self.key(sub, not meets)

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
        return self.key(self._constant_schema({"enum": [texts.parsed(value) for value in values]}, values))

    def _constant_schema(self, contents: Any, name: tuple[str, ...] = ()) -> Subschema:
        place = (self.document.root.id, "", json.dumps(name) if name else str(contents))
        if place not in self._constants:
            self._constants[place] = self.document.made(self.document.root, contents=contents)
        return self._constants[place]

    # -- what the rules ask for

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""
        return self.key(self.document.child(sub, *path, contents=contents), meets)

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, as a subschema of its own, or not to."""
        name = (sub.id, keyword, texts.canonical(value))
        if name not in self._constants:
            self._constants[name] = self.document.made(sub, keyword, contents={"enum": [value]})
        return self.key(self._constants[name], meets)

    def either(self, sub: Subschema, keyword: str, keys: tuple[NodeKey, ...]) -> NodeKey:
        """The obligation to meet at least one of the nodes; it has a subschema of its own."""
        distinct = tuple(dict.fromkeys(keys))
        if len(distinct) == 1 or () in distinct:
            return distinct[0] if len(distinct) == 1 else ()
        child = self.document.made(sub, keyword, contents={"anyOf": distinct})
        self._unions[child.id] = distinct
        return self.key(child)

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
        """Whether it is plain that no value meets both."""
        return self._disjointness.holds(some, others)

    def product(self, sub: Subschema, parts: Sequence[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part, without those that leave no kind of value."""
        if len(parts) == 1:
            return self.alternatives(sub, parts[0])
        try:
            return self._multiply(sub, parts)
        except FuelError:
            fewer = sorted((factored(part, self._is_nothing) for part in parts), key=len)
            if list(map(len, fewer)) == sorted(map(len, parts)):
                raise
            return self._multiply(sub, fewer)

    def _multiply(self, sub: Subschema, parts: Sequence[list[Arm]]) -> list[Arm]:
        arms = _ANYTHING
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
        sub, meets = self.obligation(key[0])
        return sub.contents is (not meets)

    def alternatives(self, sub: Subschema, arms: list[Arm]) -> list[Arm]:
        """The arms, if they are not too many."""
        if len(arms) > self._limits.max_alternatives:
            raise FuelError(f"more than {self._limits.max_alternatives} alternatives (max_alternatives)", sub.pointer)
        return arms

    # -- subschemas as arms

    def arms(self, key: NodeKey) -> list[Arm]:
        """The arms of a node: of all its obligations together."""
        if not key:
            return _ANYTHING
        if self._is_contradiction(key):
            return []
        subs = [self.obligation(signed) for signed in key]
        return self.product(subs[0][0], [self._expand(*sub) for sub in subs])

    def _is_contradiction(self, key: NodeKey) -> bool:
        """Whether a node asks to meet a subschema, and not to meet one that says the same elsewhere."""
        if len(key) == 1:
            return False
        refused = {-signed - 1 for signed in key if signed < 0}
        return bool(refused) and any(
            self.document.meaning(self.document.subschemas[signed - 1]) in refused for signed in key if signed > 0
        )

    def _expand(self, sub: Subschema, meets: bool = True, tracking: Tracking = Tracking.NONE) -> list[Arm]:
        """The arms of a subschema, or of its complement; what fails evaluates nothing."""
        place = (sub.id, meets, tracking if meets else Tracking.NONE)
        known = self._arms.get(place)
        if known is not None:
            return known
        if place in self._open:
            raise SchemaError("this schema refers to itself without going into a member or an item", sub.pointer)
        if len(self._open) > self._limits.max_schema_depth:
            raise FuelError(
                f"more than {self._limits.max_schema_depth} schemas inside each other (max_schema_depth)", sub.pointer
            )
        self._open.add(place)
        outer = self.tracking, self.place
        try:
            arms = self._expand_contents(sub, meets, place[2])
        finally:
            self._open.remove(place)
            self.tracking = outer[0]
        self.place = outer[1]
        self._arms[place] = arms
        return arms

    def _expand_contents(self, sub: Subschema, meets: bool, tracking: Tracking) -> list[Arm]:
        self.tracking, self.place = tracking, sub.pointer
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
        members = [[self._expand(*self.obligation(signed)) for signed in key] for key in keys]
        if meets:
            return [arm for parts in members for arm in self.product(sub, parts)]
        others = [[self._expand(some, not holds) for some, holds in map(self.obligation, key)] for key in keys]
        return self.product(sub, [[arm for arms in parts for arm in arms] for parts in others])

    def _meet_keywords(self, sub: Subschema) -> list[Arm]:
        rules, last = keywords.rules_of(sub)
        if last:
            self.tracking = max(self.tracking, Tracking.SOME)
        arms = self._meet_rules(sub, rules)
        for final in last:
            arms = final.rule(self, sub, arms)
        return annotated(self, sub, arms) if self.tracking else arms

    def _meet_rules(self, sub: Subschema, rules: Sequence[Keyword]) -> list[Arm]:
        arms = self.product(sub, [keyword.rule(self, sub) for keyword in rules])
        return annotated(self, sub, arms) if self.tracking else arms

    def _fail_keywords(self, sub: Subschema) -> list[Arm]:
        rules, last = keywords.rules_of(sub)
        arms = [arm for keyword in rules for arm in keyword.complement(self, sub)]
        if last:
            self.tracking = Tracking.EXACT
            rest = self._meet_rules(sub, rules)
            arms += [arm for final in last for arm in final.complement(self, sub, rest)]
        return [replace(arm, evaluated=NOTHING) if arm.evaluated is not NOTHING else arm for arm in arms]
