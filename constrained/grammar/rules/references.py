"""Rules for references: what they lead to applies in place."""

from __future__ import annotations

from constrained.grammar.rules.base import Context, Rule
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import Arm


def _reference(keyword: str) -> tuple[Rule, Rule]:
    """The rule of a reference keyword, and that of its complement."""

    def meets(context: Context, sub: Subschema) -> list[Arm]:
        return context.arms_of_reference(sub, keyword)

    def fails(context: Context, sub: Subschema) -> list[Arm]:
        return context.arms_of_reference(sub, keyword, meets=False)

    return meets, fails


ref, not_ref = _reference("$ref")
dynamic_ref, not_dynamic_ref = _reference("$dynamicRef")
recursive_ref, not_recursive_ref = _reference("$recursiveRef")
