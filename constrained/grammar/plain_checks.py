"""What a plain subschema's keywords must say: one check for the keywords that are about the same, and which are asked.

A check knows that the other keywords are checked too; where it does not, it asks that there be none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, Any

from constrained.grammar import keywords, plain_patterns, plain_unions
from constrained.grammar.formats import FORMATS
from constrained.grammar.language import Language, LanguageFuelError
from constrained.grammar.plain_values import KINDS, LARGEST, Step, are_names, can_be_said, kind_of
from constrained.grammar.schema import ANNOTATIONS
from constrained.grammar.string_sets import UNBOUNDED

if TYPE_CHECKING:
    from constrained.grammar.plain import Plainness

Check = Callable[["Plainness", dict[str, Any], Step], bool]

MAX_COUNT = 1000  # items or characters that must be there, and factors

_ALL_KINDS = frozenset(KINDS.values())
_BARE_NAMES = ANNOTATIONS | {"type"}
_LISTED = frozenset(("type", "enum", "const"))
_LENGTHS = ("minLength", "maxLength")
_ANYTHING: dict[str, Any] = {}
_NO_NAMES: list[str] = []
_NAMES = {str}


def _type(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    names = contents["type"]
    if type(names) is str:
        return names in KINDS
    return type(names) is list and are_names(names) and bool(names) and KINDS.keys() >= set(names)


# -- objects


def _members(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`properties`, `required`, `patternProperties` and `additionalProperties`."""
    members: dict[str, Any] = contents.get("properties", _ANYTHING)
    names: list[str] = contents.get("required", _NO_NAMES)
    others = contents.get("additionalProperties", True)
    if type(members) is not dict or type(names) is not list or not are_names(names) or set(map(type, members)) - _NAMES:
        return False
    if not can_be_said((*members, *names)):
        return False
    if "patternProperties" in contents and not _is_plain_class(proof, contents["patternProperties"], members, step):
        return False
    required = frozenset(names) if len(names) > 8 else names
    plain, queue = proof.plain, proof.queue
    for name, member in members.items():
        if type(member) is dict and type(kind := member.get("type")) is str and kind in KINDS and member.keys() <= _BARE_NAMES:
            plain.add(id(member))
        elif name not in required:
            queue.append((member, step, ("properties", name)))
        elif not proof.is_inhabited((member, step, ("properties", name))):
            return False
    if type(others) is not bool:
        queue.append((others, step, ("additionalProperties",)))
    if all(map(members.__contains__, names)):
        return True
    return "patternProperties" not in contents and proof.is_inhabited((others, step, ("additionalProperties",)))


def _is_plain_class(proof: Plainness, patterns: Any, members: dict[str, Any], step: Step) -> bool:
    """Whether there is one pattern of keys, which is about no property."""
    if type(patterns) is not dict or len(patterns) != 1:
        return False
    [(pattern, member)] = patterns.items()
    if type(pattern) is not str or not plain_patterns.is_plain(pattern):
        return False
    if members:
        prefix = plain_patterns.prefix(pattern)
        if not prefix or any(name.startswith(prefix) for name in members):
            return False
    proof.queue.append((member, step, ("patternProperties", pattern)))
    return True


# -- arrays


def _items(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`items`, their numbers, and whether they must differ. `additionalItems` says nothing beside one schema of items."""
    least, most, items = contents.get("minItems", 0), contents.get("maxItems", MAX_COUNT), contents.get("items", True)
    distinct = contents.get("uniqueItems", False)
    if type(least) is not int or type(most) is not int or not 0 <= least <= most or least > MAX_COUNT:
        return False
    if type(distinct) is not bool or (distinct and least > 1):
        return False
    if type(items) is not dict:
        return items is True
    if least == 0:
        proof.queue.append((items, step, ("items",)))
        return True
    return proof.is_inhabited((items, step, ("items",)))


# -- strings


def _length(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    least, most = contents.get("minLength", 0), contents.get("maxLength", MAX_COUNT)
    return type(least) is int and type(most) is int and 0 <= least <= most and least <= MAX_COUNT


def _pattern(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    pattern = contents["pattern"]
    if type(pattern) is not str or "format" in contents or not plain_patterns.is_plain(pattern):
        return False
    least, most = contents.get("minLength", 0), contents.get("maxLength", UNBOUNDED)
    return type(least) is int and type(most) is int and plain_patterns.fits(pattern, least, most)


def _format(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    name = contents["format"]
    if type(name) is not str or name in proof.formats.custom or proof.formats.refusal(name) is not None:
        return False
    found = proof.formats.find(name, proof.draft)
    if found is None:
        return True
    if not any(name in contents for name in _LENGTHS):
        return _has_string(found.sure)
    length, least, most = _shortest(found.sure), contents.get("minLength", 0), contents.get("maxLength", UNBOUNDED)
    return length is not None and type(least) is int and type(most) is int and least <= length <= most


@lru_cache(maxsize=2 * len(FORMATS))  # none of them is ever given up
def _has_string(language: Language) -> bool:
    return not language.is_empty


@lru_cache(maxsize=2 * len(FORMATS))
def _shortest(language: Language) -> int | None:
    """How many characters the shortest string has, where that is found without a long search."""
    try:
        return language.shortest_len()
    except LanguageFuelError:
        return None


# -- numbers


def _range(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """Whether a small whole number lies inside all bounds: a multiple of a whole factor; zero, beside another one."""
    low, high = -LARGEST, LARGEST
    if proof.draft == 4 and ("exclusiveMinimum" in contents or "exclusiveMaximum" in contents):
        return False  # there they are no numbers
    for name in ("minimum", "exclusiveMinimum"):
        if name in contents:
            bound = _whole(contents[name], ceil)
            if bound is None:
                return False
            low = max(low, bound + (name != "minimum"))
    for name in ("maximum", "exclusiveMaximum"):
        if name in contents:
            bound = _whole(contents[name], floor)
            if bound is None:
                return False
            high = min(high, bound - (name != "maximum"))
    if "multipleOf" not in contents:
        return low <= high
    factor = contents["multipleOf"]
    if not _is_factor(factor):
        return False
    return low <= 0 <= high or (factor == int(factor) and -(-low // int(factor)) * int(factor) <= high)


def _whole(value: Any, rounded: Callable[[float], int]) -> int | None:
    """A bound as the whole number nearest to it on its inner side; None where it is none, or large."""
    if type(value) is int:
        return value if -LARGEST < value < LARGEST else None
    return rounded(value) if type(value) is float and isfinite(value) and -LARGEST < value < LARGEST else None


def _is_factor(value: Any) -> bool:
    """Whether a number is positive, of few digits."""
    return type(value) in (int, float) and 0 < value <= MAX_COUNT and round(value, 3) == value


# -- values


def _values(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """Whether of the scalars that are listed one has a type that may be."""
    if "enum" in contents and "const" in contents and proof.draft > 4:
        return False
    values = contents["enum"] if "enum" in contents else [contents["const"]]
    if type(values) is not list or not proof.asserts_only(contents, _LISTED):
        return False
    if "type" in contents and not _type(proof, contents, step):
        return False
    names = contents.get("type")
    if names is None:
        kinds = _ALL_KINDS
    else:
        kinds = frozenset(map(KINDS.__getitem__, [names] if type(names) is str else names))
    are_texts = bool(values) and are_names(values) and can_be_said(values)
    found = {"string"} if are_texts else set(map(kind_of, values))
    return None not in found and not kinds.isdisjoint(found)


_CHECKS: dict[str, Check] = {
    "type": _type,
    "properties": _members,
    "required": _members,
    "patternProperties": _members,
    "additionalProperties": _members,
    "items": _items,
    "minItems": _items,
    "maxItems": _items,
    "uniqueItems": _items,
    "minLength": _length,
    "maxLength": _length,
    "pattern": _pattern,
    "format": _format,
    "minimum": _range,
    "maximum": _range,
    "exclusiveMinimum": _range,
    "exclusiveMaximum": _range,
    "multipleOf": _range,
    "enum": _values,
    "const": _values,
    "$ref": plain_unions.ref,
    "anyOf": plain_unions.any_of,
    "oneOf": plain_unions.one_of,
    "allOf": plain_unions.all_of,
}


_ALONE = frozenset((_type, _length, _pattern, _format, _range, _values))  # these look at nothing below


@lru_cache(maxsize=8)
def _asserting(draft: int) -> frozenset[str]:
    """The keywords that assert something in a draft; all others say nothing of values."""
    tables = (keywords.RULES.items(), keywords.LAST_RULES.items())
    return frozenset(name for table in tables for name, rule in table if rule.since <= draft <= rule.until)


# What to ask of a subschema; whether that looks at others too.
Questions = tuple[list[Check], bool]


@lru_cache(maxsize=8)
def _asked(draft: int) -> dict[str, Check | None]:
    """What to ask of a subschema that has a keyword, by its name; None where it is never plain. Others assert nothing."""
    return {name: _CHECKS.get(name) for name in _asserting(draft) if name != "additionalItems"}


def questions(names: tuple[str, ...], draft: int) -> Questions | None:
    """What to ask of a subschema that has these names; None where one of them is no string, or never plain.

    Schemas come with ever new sets of keywords, so this is quick rather than remembered from one to the next.
    """
    if draft <= 7 and "$ref" in names:  # which alone counts
        return _REFERENCE if set(map(type, names)) == _NAMES else None
    asked, found = _asked(draft), []
    for name in names:
        check = asked.get(name, _silent)
        if check is None:
            return None
        if check is _silent:
            if type(name) is not str:
                return None
        elif check not in found:
            found.append(check)
    return found, not _ALONE.issuperset(found)


def _silent(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """Of a keyword that asserts nothing."""
    return True


_REFERENCE: Questions = [plain_unions.ref], True


@lru_cache(maxsize=4096)
def asserts_only(names: tuple[str, ...], draft: int, allowed: frozenset[str]) -> bool:
    """Whether of the names in a subschema none but those allowed asserts anything."""
    return allowed.issuperset(_asserting(draft).intersection(names))
