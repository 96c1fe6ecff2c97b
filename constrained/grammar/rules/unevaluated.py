"""`unevaluatedProperties` and `unevaluatedItems`: they come last, and go by what each arm of the rest has evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from constrained.grammar import shapes
from constrained.grammar.evaluated import NOTHING, Evaluated
from constrained.grammar.language import Language, from_values
from constrained.grammar.rules.base import Context, expect
from constrained.grammar.rules.containers import some_member
from constrained.grammar.rules.scalars import pattern_language
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ARRAY, Arm, ArrayShape, Contains, Layer, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED


def own(context: Context, sub: Subschema) -> Evaluated:
    """What the keywords of a subschema, but for the last ones, evaluate where the subschema holds."""
    contents = sub.contents
    names = frozenset(expect(sub, "properties", Mapping, "an object of schemas")) if "properties" in contents else frozenset()
    return Evaluated(
        names,
        _patterns(sub),
        "additionalProperties" in contents,
        _num_items(sub),
        (context.child(sub, "contains", contents=contents["contains"]),)
        if sub.draft >= 2020 and "contains" in contents
        else (),
    )


def _patterns(sub: Subschema) -> tuple[Language, ...]:
    sources = sub.contents.get("patternProperties", {})
    return tuple(pattern_language(sub, "patternProperties", source) for source in sources)


def _num_items(sub: Subschema) -> int:
    contents = sub.contents
    if sub.draft >= 2020:
        return UNBOUNDED if "items" in contents else len(contents.get("prefixItems", ()))
    if isinstance(contents.get("items"), list):
        return UNBOUNDED if "additionalItems" in contents else len(contents["items"])
    return UNBOUNDED if "items" in contents else 0


def annotated(context: Context, sub: Subschema, arms: list[Arm]) -> list[Arm]:
    """The arms of a subschema with what its own keywords evaluate."""
    evaluated = own(context, sub)
    return arms if evaluated == NOTHING else [_evaluate(arm, evaluated) for arm in arms]


def _evaluate(arm: Arm, more: Evaluated) -> Arm:
    return replace(arm, evaluated=arm.evaluated.join(more))


def members(context: Context, sub: Subschema, arms: list[Arm]) -> list[Arm]:
    """`unevaluatedProperties`: what each arm asks of the keys that it has not evaluated."""
    node = context.child(sub, "unevaluatedProperties", contents=sub.contents["unevaluatedProperties"])
    return [_evaluate(_rest_of_members(arm, node), Evaluated(all_members=True)) for arm in arms]


def _rest_of_members(arm: Arm, node: NodeKey) -> Arm:
    done = arm.evaluated
    if done.all_members or node == shapes.ANYTHING:
        return arm
    layer = Layer(tuple((language, shapes.ANYTHING) for language in done.patterns), node)
    known = MappingProxyType(dict.fromkeys(sorted(done.names), shapes.ANYTHING))
    return replace(arm, object=arm.object.meet(ObjectShape(known, (layer,))))


def not_members(context: Context, sub: Subschema, arms: list[Arm]) -> list[Arm]:
    """Some key that was not evaluated has a member that fails."""
    node = context.child(sub, "unevaluatedProperties", contents=sub.contents["unevaluatedProperties"])
    if node == shapes.ANYTHING:
        return []
    fails = context.negated(node)
    left = [arm for arm in arms if not arm.evaluated.all_members]
    parts = [[[arm], [some_member(_others(arm.evaluated), fails)]] for arm in left]
    return [arm for part in parts for arm in context.product(sub, part)]


def _others(done: Evaluated) -> Language:
    """The keys that were not evaluated."""
    keys = ~from_values(done.names)
    for language in done.patterns:
        keys &= ~language
    return keys


def items(context: Context, sub: Subschema, arms: list[Arm]) -> list[Arm]:
    """`unevaluatedItems`: what each arm asks of the items that it has not evaluated."""
    node = context.child(sub, "unevaluatedItems", contents=sub.contents["unevaluatedItems"])
    return [_evaluate(_rest_of_items(context, sub, arm, node), Evaluated(num_items=UNBOUNDED)) for arm in arms]


def _rest_of_items(context: Context, sub: Subschema, arm: Arm, node: NodeKey) -> Arm:
    done = arm.evaluated
    if done.all_items or node == shapes.ANYTHING:
        return arm
    rest = context.either(sub, "unevaluatedItems", (node, *done.matching))
    return replace(arm, array=arm.array.meet(ArrayShape((shapes.ANYTHING,) * done.num_items, rest)))


def not_items(context: Context, sub: Subschema, arms: list[Arm]) -> list[Arm]:
    """Some item that was not evaluated fails."""
    node = context.child(sub, "unevaluatedItems", contents=sub.contents["unevaluatedItems"])
    if node == shapes.ANYTHING:
        return []
    found = []
    for arm in arms:
        if not arm.evaluated.all_items:
            rest = context.either(sub, "unevaluatedItems", (node, *arm.evaluated.matching))
            wrong = ArrayShape(contains=(Contains(context.negated(rest), start=arm.evaluated.num_items),))
            found += context.product(sub, [[arm], [replace(shapes.ANY.only(ARRAY), array=wrong)]])
    return found


def some_of(context: Context, sub: Subschema, members: list[list[Arm]]) -> list[Arm]:
    """The arms of a union for `Tracking.SOME`: beside each member's, those of several at once that have evaluated more."""
    found: list[Arm] = []
    for arms in members:
        joint = [met for a in found for b in arms if (met := _more_than_either(context, a, b)) is not None]
        found = context.alternatives(sub, found + arms + joint)
    return found


def _more_than_either(context: Context, a: Arm, b: Arm) -> Arm | None:
    evaluated = a.evaluated.join(b.evaluated)
    if evaluated in (a.evaluated, b.evaluated) or context.are_disjoint([a], [b]):
        return None
    return a.meet(b)


def each_of(context: Context, sub: Subschema, members: list[list[Arm]], others: list[list[Arm]]) -> list[Arm]:
    """The arms of a union for `Tracking.EXACT`: of each member that evaluates something it is known whether it holds.

    `others` are the complements of the members.
    """
    held: list[Arm] = []
    none: list[Arm] = [shapes.ANY]
    silent: list[Arm] = []
    for arms, fails in zip(members, others, strict=True):
        if all(arm.evaluated == NOTHING for arm in arms):
            silent += arms
            continue
        held = context.product(sub, [held, arms + fails]) + context.product(sub, [none, arms])
        none = context.product(sub, [none, fails])
    return context.alternatives(sub, held + context.product(sub, [none, silent]))
