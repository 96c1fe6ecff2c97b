"""Rules for numbers: bounds and `multipleOf`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from constrained.errors import SchemaError
from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.rules.base import Context, exact, expect
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ANY, NUMBER, Arm


def multiple_of(context: Context, sub: Subschema) -> list[Arm]:
    """`multipleOf`: a positive number of which the value is a whole multiple, exactly."""
    return [Arm(number=NumberSet(multiple_of=_factor(sub)))]


def not_multiple_of(context: Context, sub: Subschema) -> list[Arm]:
    """A number that is no multiple."""
    return [replace(ANY.only(NUMBER), number=NumberSet(not_multiple_of=frozenset((_factor(sub),))))]


def _factor(sub: Subschema) -> Fraction:
    value = exact(sub.contents["multipleOf"], sub, "multipleOf")
    if value <= 0:
        raise SchemaError(f"{sub.contents['multipleOf']!r} is not a positive number", sub.pointer, "multipleOf")
    return value


def bounds(context: Context, sub: Subschema) -> list[Arm]:
    """`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` (draft 4: booleans beside the plain bounds)."""
    return [Arm(number=NumberSet(_bound(sub, "Minimum", 1), _bound(sub, "Maximum", -1)))]


def not_bounds(context: Context, sub: Subschema) -> list[Arm]:
    """A number beyond a bound."""
    [arm] = bounds(context, sub)
    low, high = arm.number.lower, arm.number.upper
    wrong = [NumberSet(upper=Bound(low.value, not low.exclusive))] if low is not None else []
    wrong += [NumberSet(lower=Bound(high.value, not high.exclusive))] if high is not None else []
    return [replace(ANY.only(NUMBER), number=other) for other in wrong]


def _bound(sub: Subschema, name: str, sign: int) -> Bound | None:
    plain, exclusive = name.lower(), f"exclusive{name}"
    bound = Bound(exact(sub.contents[plain], sub, plain)) if plain in sub.contents else None
    if exclusive not in sub.contents:
        return bound
    if sub.draft == 4:
        flag = expect(sub, exclusive, bool, "a boolean (draft 4)")
        return replace(bound, exclusive=flag) if bound is not None else None
    value = exact(sub.contents[exclusive], sub, exclusive)
    if bound is None or (value - bound.value) * sign >= 0:
        return Bound(value, exclusive=True)
    return bound
