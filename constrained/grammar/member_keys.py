"""The keys of an object shape: its properties, and classes of other keys that ask the same."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import FuelError
from constrained.grammar.clauses import Clauses
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values
from constrained.grammar.shapes import MemberLiteral, NodeKey, ObjectShape

MAX_LISTED_KEYS = 100  # a class of no more keys is generated as so many properties


@dataclass(frozen=True, slots=True)
class Key:
    """One property, or one class of keys that ask the same: `name`, or `language` (None: every key that is not a property)."""

    name: str | None
    language: Language | None
    node: NodeKey
    literals: tuple[int, ...]


def keys_of(shape: ObjectShape, clauses: Clauses[MemberLiteral], max_classes: int) -> tuple[list[Key], list[Key], Key | None]:
    """The properties (small classes among them), the classes, and the free key: all keys that no property names, where
    they are one class."""
    numbers = _by_name(shape, clauses)
    named = [Key(name, None, node, tuple(numbers[name])) for name, node in shape.properties.items()]
    if not shape.languages:
        return named, [], Key(None, None, shape.of(frozenset()), ())
    classes: list[Key] = []
    parts = _split(shape, clauses, max_classes)
    if len(parts) == 1:
        return named, [], Key(None, None, *parts[0][1])
    for language, (node, literals) in parts:
        listed = language.values(MAX_LISTED_KEYS)
        if listed is not None:
            named += [Key(name, None, node, literals) for name in listed]
        else:
            classes.append(Key(None, language, node, literals))
    return named, classes, None


def _by_name(shape: ObjectShape, clauses: Clauses[MemberLiteral]) -> dict[str, list[int]]:
    """The numbers of the literals about each property. Most literals are about one name, and many about the same one."""
    found: dict[str, list[int]] = {name: [] for name in shape.properties}
    about: dict[Language, list[str]] = {}
    for literal in shape.literals:
        keys = literal.keys
        if keys not in about:
            listed = keys.values(MAX_LISTED_KEYS)
            among = [name for name in found if keys.contains(name)] if listed is None else found.keys() & listed
            about[keys] = list(among)
        for name in about[keys]:
            found[name].append(clauses.number(literal))
    return found


def _split(
    shape: ObjectShape, clauses: Clauses[MemberLiteral], max_classes: int
) -> list[tuple[Language, tuple[NodeKey, tuple[int, ...]]]]:
    """The keys that no property names, as disjoint languages that ask the same."""
    parts: list[tuple[Language, frozenset[Language]]] = [(ANY_STRING & ~from_values(shape.properties), frozenset())]
    for language in shape.languages:
        inside = [(part & language, matching | {language}) for part, matching in parts]
        outside = [(part & ~language, matching) for part, matching in parts]
        parts = [(part, matching) for part, matching in inside + outside if not part.is_empty]
        if len(parts) > max_classes:
            raise FuelError(f"more than {max_classes} classes of keys (max_key_classes)", "", "patternProperties")
    merged: dict[tuple[NodeKey, tuple[int, ...]], Language] = {}
    for part, matching in parts:
        asked = (shape.of(matching), tuple(clauses.number(literal) for literal in shape.literals if literal.keys in matching))
        merged[asked] = merged[asked] | part if asked in merged else part
    return [(language, asked) for asked, language in merged.items()]
