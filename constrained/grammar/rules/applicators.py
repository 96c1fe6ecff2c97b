"""Rules that apply other schemas to the same value: Boolean combinations, conditions and dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from constrained.errors import SchemaError
from constrained.grammar import shapes
from constrained.grammar.evaluated import NOTHING, Tracking
from constrained.grammar.rules import unevaluated
from constrained.grammar.rules.base import Context, expect, expect_text
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ANY, OBJECT, Arm, ObjectShape


def any_of(context: Context, sub: Subschema) -> list[Arm]:
    """`anyOf`: the arms of all members."""
    if context.tracking is Tracking.SOME:
        return unevaluated.some_of(context, sub, _members(context, sub, "anyOf"))
    if context.tracking is Tracking.EXACT:
        members, others = _members(context, sub, "anyOf"), _members(context, sub, "anyOf", meets=False)
        return unevaluated.each_of(context, sub, members, others)
    return [arm for arms in _members(context, sub, "anyOf") for arm in arms]


def not_any_of(context: Context, sub: Subschema) -> list[Arm]:
    """No member."""
    return context.product(sub, _members(context, sub, "anyOf", meets=False))


def all_of(context: Context, sub: Subschema) -> list[Arm]:
    """`allOf`: arms that meet one arm of every member."""
    members = _listed(sub, "allOf")
    if len(members) == 1:
        return context.product(sub, _members(context, sub, "allOf"))
    parts = []
    for index, value in enumerate(members):
        turn = int(context.minds_names(sub, "allOf", index, contents=value))
        parts.append((turn, partial(context.arms_of, sub, "allOf", index, contents=value)))
    return context.product(sub, context.in_turn(parts))


def not_all_of(context: Context, sub: Subschema) -> list[Arm]:
    """Some member fails."""
    return [arm for arms in _members(context, sub, "allOf", meets=False) for arm in arms]


def one_of(context: Context, sub: Subschema) -> list[Arm]:
    """`oneOf`: the arms of each member, without those of the members that it is not plainly disjoint from."""
    members = _members(context, sub, "oneOf")
    values = sub.contents["oneOf"]
    whole = [frozenset(kind for arm in arms for kind in shapes.whole_kinds(arm)) for arms in members]
    found: list[Arm] = []
    for index, arms in enumerate(members):
        # Of a kind of which all values meet another member none meets this one alone.
        lost = frozenset[str]().union(*(kinds for other, kinds in enumerate(whole) if other != index))
        if lost:
            arms = [replace(arm, kinds=arm.kinds - lost) for arm in arms if not arm.kinds <= lost]
        parts = [arms]
        for other, others in enumerate(members):
            if other != index and not context.are_disjoint(arms, others):
                parts.append(context.arms_of(sub, "oneOf", other, contents=values[other], meets=False))
        found += context.product(sub, parts)
    return found


def not_one_of(context: Context, sub: Subschema) -> list[Arm]:
    """No member, or two."""
    members = _members(context, sub, "oneOf")
    none = context.product(sub, _members(context, sub, "oneOf", meets=False))
    pairs = [context.product(sub, [a, b]) for i, a in enumerate(members) for b in members[i + 1 :]]
    return none + [arm for pair in pairs for arm in pair]


def _members(context: Context, sub: Subschema, keyword: str, meets: bool = True) -> list[list[Arm]]:
    listed = enumerate(_listed(sub, keyword))
    return [context.arms_of(sub, keyword, index, contents=value, meets=meets) for index, value in listed]


def _listed(sub: Subschema, keyword: str) -> list[Any]:
    members: list[Any] = expect(sub, keyword, list, "a list of schemas")
    if not members:
        raise SchemaError("the list of schemas is empty: at least one is needed", sub.pointer, keyword)
    return members


def not_(context: Context, sub: Subschema) -> list[Arm]:
    """`not`: the complement."""
    return context.arms_of(sub, "not", contents=sub.contents["not"], meets=False)


def not_not(context: Context, sub: Subschema) -> list[Arm]:
    """The schema itself."""
    return context.arms_of(sub, "not", contents=sub.contents["not"])


def if_(context: Context, sub: Subschema) -> list[Arm]:
    """`if`, `then` and `else`, together."""
    return _branches(context, sub, meets=True)


def not_if(context: Context, sub: Subschema) -> list[Arm]:
    """The branch that counts fails."""
    return _branches(context, sub, meets=False)


def _branches(context: Context, sub: Subschema, meets: bool) -> list[Arm]:
    found: list[Arm] = []
    if "then" not in sub.contents and "else" not in sub.contents:
        return _condition(context, sub) if meets else []
    for keyword, holds in (("then", True), ("else", False)):
        condition = context.arms_of(sub, "if", contents=sub.contents["if"], meets=holds)
        branch = context.arms_of(sub, keyword, contents=sub.contents.get(keyword, True), meets=meets)
        found += context.product(sub, [condition, branch])
    return found


def _condition(context: Context, sub: Subschema) -> list[Arm]:
    """A condition alone: any value, and what the condition evaluates where it holds."""
    if not context.tracking:
        return [ANY]
    holds = context.arms_of(sub, "if", contents=sub.contents["if"])
    if all(arm.evaluated == NOTHING for arm in holds):
        return [ANY]
    fails = (
        context.arms_of(sub, "if", contents=sub.contents["if"], meets=False) if context.tracking is Tracking.EXACT else [ANY]
    )
    return holds + fails


def dependencies(context: Context, sub: Subschema) -> list[Arm]:
    """`dependentRequired`, `dependentSchemas` and `dependencies`: for each name, it is absent or all holds."""
    parts = []
    for keyword, name, value in _dependencies(sub):
        absent = Arm(object=ObjectShape(MappingProxyType({name: context.child(sub, keyword, contents=False)})))
        there = _with_keys((name,))
        if isinstance(value, list):
            parts.append([absent, _with_keys((name, *value))])
        else:
            schema = context.arms_of(sub, keyword, name, contents=value)
            parts.append([absent, *context.product(sub, [[there], schema])])
    return context.product(sub, parts)


def not_dependencies(context: Context, sub: Subschema) -> list[Arm]:
    """Some name is there and what it asks for does not hold."""
    found: list[Arm] = []
    for keyword, name, value in _dependencies(sub):
        there = [_with_keys((name,))]
        if isinstance(value, list):
            nothing = context.child(sub, keyword, contents=False)
            lacking = [Arm(object=ObjectShape(MappingProxyType({other: nothing}))) for other in value]
            found += context.product(sub, [there, lacking])
        else:
            found += context.product(sub, [there, context.arms_of(sub, keyword, name, contents=value, meets=False)])
    return found


def _with_keys(names: tuple[str, ...]) -> Arm:
    members = MappingProxyType(dict.fromkeys(names, shapes.ANYTHING))
    return replace(ANY.only(OBJECT), object=ObjectShape(members, required=frozenset(names)))


def _dependencies(sub: Subschema) -> list[tuple[str, str, Any]]:
    found = []
    # 2019-09 split `dependencies` in two and allows to keep it.
    for keyword in ("dependencies",) if sub.draft <= 7 else ("dependentRequired", "dependentSchemas", "dependencies"):
        if keyword not in sub.contents:
            continue
        for name, value in expect(sub, keyword, Mapping, "an object").items():
            names = isinstance(value, list) and all(isinstance(other, str) for other in value)
            for text in (name, *(value if names else ())):
                expect_text(text, sub, keyword)
            if keyword == "dependentRequired" and not names:
                raise SchemaError(f"{value!r} is not a list of names", sub.pointer, keyword)
            if isinstance(value, list) and (keyword == "dependentSchemas" or not names):
                raise SchemaError(f"{value!r} is not a schema", sub.pointer, keyword)
            found.append((keyword, name, value))
    return found
