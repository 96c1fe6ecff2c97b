"""The dispatch table of keywords: which rule each has, in which drafts, and what is refused.

A keyword that no dialect knows is an annotation.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from constrained.errors import UnsupportedKeywordError
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.rules import applicators, containers, numbers, references, scalars, unevaluated, values
from constrained.grammar.rules.base import Keyword, LastKeyword
from constrained.grammar.schema import Subschema, escape

# In this order the rules of one subschema are met: its own members come before those of what it applies in place.
RULES: dict[str, Keyword] = {
    "type": Keyword(values.type_, values.not_type),
    "enum": Keyword(values.enum, values.not_enum),
    "const": Keyword(values.const, values.not_const, since=6),
    "properties": Keyword(containers.object_, containers.not_object),
    "patternProperties": Keyword(containers.object_, containers.not_object),
    "required": Keyword(containers.object_, containers.not_object),
    "additionalProperties": Keyword(containers.object_, containers.not_object),
    "minProperties": Keyword(containers.members, containers.not_members),
    "maxProperties": Keyword(containers.members, containers.not_members),
    "propertyNames": Keyword(containers.property_names, containers.not_property_names, since=6),
    "prefixItems": Keyword(containers.array, containers.not_array, since=2020),
    "items": Keyword(containers.array, containers.not_array),
    "additionalItems": Keyword(containers.array, containers.not_array, until=2019),
    "minItems": Keyword(containers.array, containers.not_array),
    "maxItems": Keyword(containers.array, containers.not_array),
    "contains": Keyword(containers.contains, containers.not_contains, since=6),
    "minContains": Keyword(containers.contains, containers.not_contains, since=2019),
    "maxContains": Keyword(containers.contains, containers.not_contains, since=2019),
    "uniqueItems": Keyword(containers.unique_items, containers.not_unique_items),
    "minLength": Keyword(scalars.string, scalars.not_string),
    "maxLength": Keyword(scalars.string, scalars.not_string),
    "pattern": Keyword(scalars.pattern, scalars.not_pattern),
    "format": Keyword(scalars.format_, scalars.not_format),
    "multipleOf": Keyword(numbers.multiple_of, numbers.not_multiple_of),
    "minimum": Keyword(numbers.bounds, numbers.not_bounds),
    "maximum": Keyword(numbers.bounds, numbers.not_bounds),
    "exclusiveMinimum": Keyword(numbers.bounds, numbers.not_bounds),
    "exclusiveMaximum": Keyword(numbers.bounds, numbers.not_bounds),
    "$ref": Keyword(references.ref, references.not_ref, turn=1),
    "$dynamicRef": Keyword(references.dynamic_ref, references.not_dynamic_ref, since=2020),
    "$recursiveRef": Keyword(references.recursive_ref, references.not_recursive_ref, since=2019, until=2019),
    "allOf": Keyword(applicators.all_of, applicators.not_all_of, turn=1),
    "anyOf": Keyword(applicators.any_of, applicators.not_any_of, turn=2),
    "oneOf": Keyword(applicators.one_of, applicators.not_one_of, turn=2),
    "not": Keyword(applicators.not_, applicators.not_not),
    "if": Keyword(applicators.if_, applicators.not_if, since=7),
    "dependentRequired": Keyword(applicators.dependencies, applicators.not_dependencies, since=2019),
    "dependentSchemas": Keyword(applicators.dependencies, applicators.not_dependencies, since=2019),
    "dependencies": Keyword(applicators.dependencies, applicators.not_dependencies),
}

LAST_RULES: dict[str, LastKeyword] = {
    "unevaluatedProperties": LastKeyword(unevaluated.members, unevaluated.not_members, since=2019),
    "unevaluatedItems": LastKeyword(unevaluated.items, unevaluated.not_items, since=2019),
}

# Keywords that another one's rule reads; without that one they say nothing.
PARTS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}


def refusal(formats: FormatChoice, sub: Subschema) -> UnsupportedKeywordError | None:
    """What of a schema object cannot be enforced; None where all can, or asserts nothing."""
    if "format" not in sub.contents or ref_stands_alone(sub):
        return None
    reason = formats.refusal(sub.contents["format"])
    return UnsupportedKeywordError(reason, sub.pointer, "format") if reason is not None else None


def applies(sub: Subschema, keyword: str) -> bool:
    """Whether the dialect of `sub` knows `keyword`, and there is a rule for it."""
    return _is_known(keyword, sub.contents, sub.draft)


def _is_known(keyword: str, beside: Container[str], draft: int) -> bool:
    if keyword in PARTS and PARTS[keyword] not in beside:
        return False
    rule = RULES.get(keyword) or RULES.get(PARTS.get(keyword, "")) or LAST_RULES.get(keyword)
    return rule is not None and rule.since <= draft <= rule.until


def ref_stands_alone(sub: Subschema) -> bool:
    """Up to draft 7 a reference stands alone, whatever is beside it."""
    return sub.draft <= 7 and "$ref" in sub.contents


def rules_of(sub: Subschema) -> tuple[tuple[Keyword, ...], tuple[LastKeyword, ...]]:
    """The keywords of `sub` with distinct rules, in the order of the table; and those that come after all others."""
    return _rules_of(tuple(sub.contents), sub.draft)


@lru_cache(maxsize=4096)  # schemas use few sets of keywords
def _rules_of(names: tuple[str, ...], draft: int) -> tuple[tuple[Keyword, ...], tuple[LastKeyword, ...]]:
    if draft <= 7 and "$ref" in names:
        return (RULES["$ref"],), ()
    known = [name for name in names if _is_known(name, names, draft)]
    rules = {RULES[name].rule: RULES[name] for name in RULES if name in known}
    return tuple(rules.values()), tuple(rule for name, rule in LAST_RULES.items() if name in known)


def describe(sub: Subschema, keyword: str) -> str:
    """The JSON Pointer of a keyword of `sub`."""
    return f"{sub.pointer}/{escape(keyword)}"
