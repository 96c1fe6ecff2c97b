"""Glimpses: what `type`, `const` and `enum` alone tell of a subschema, without expanding it.

Enough to see that the arms of unions with a discriminator exclude each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from constrained.errors import SchemaError
from constrained.grammar import texts
from constrained.grammar.schema import ANNOTATIONS, SchemaDocument, Subschema
from constrained.grammar.shapes import ALL_KINDS, ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, NodeKey, join

_TYPES: dict[str, frozenset[str]] = {
    "null": frozenset((NULL,)),
    "boolean": frozenset((TRUE, FALSE)),
    "number": frozenset((NUMBER,)),
    "integer": frozenset((NUMBER,)),
    "string": frozenset((STRING,)),
    "array": frozenset((ARRAY,)),
    "object": frozenset((OBJECT,)),
}
_BY_LETTER = {"n": NULL, "t": TRUE, "f": FALSE, '"': STRING, "[": ARRAY, "{": OBJECT}
_LISTS = frozenset(("const", "enum"))


class Glimpse(NamedTuple):
    """Kinds that a value may have, canonical texts that it must be one of (None: any), and that it must not be."""

    kinds: frozenset[str] = ALL_KINDS
    values: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()


_ANYTHING = Glimpse()
_NOTHING = Glimpse(frozenset())


class Glimpses:
    """Glimpses of the subschemas of one document, each taken once."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self.nothing = document.key(document.made(document.root, contents=False))
        self._known: dict[int, Glimpse] = {}
        self._nothing: dict[NodeKey, bool] = {}
        self._compared: dict[tuple[NodeKey, NodeKey], tuple[bool, bool]] = {}

    def show_nothing(self, key: NodeKey) -> bool:
        """Whether the obligations of a node are plainly at odds."""
        known = self._nothing.get(key)
        if known is None:
            known = self._nothing[key] = self.contradict(key) or self._are_at_odds(key)
        return known

    def compare(self, key: NodeKey, other: NodeKey) -> tuple[bool, bool]:
        """Whether it is plain that what meets the node `key` meets `other`, and whether, that it does not."""
        known = self._compared.get((key, other))
        if known is None:
            known = self._compared[key, other] = self.implies(key, other), self.show_nothing(join(key, other))
        return known

    def implies(self, key: NodeKey, other: NodeKey) -> bool:
        """Whether it is plain that what meets the node `key` meets `other`."""
        if set(other) <= set(key) or self.show_nothing(key):
            return True
        if len(other) > 1:
            return False
        sub, meets = self._document.obligation(other[0])
        return self.show_nothing(join(key, self._document.key(sub, not meets)))

    def contradict(self, key: NodeKey) -> bool:
        """Whether a node asks to meet a subschema, and not to meet one that says the same elsewhere."""
        refused = {-signed - 1 for signed in key if signed < 0}
        subschema = self._document.subschema
        return bool(refused) and any(self._document.meaning(subschema(signed - 1)) in refused for signed in key if signed > 0)

    def _are_at_odds(self, key: NodeKey) -> bool:
        kinds, values, excluded = ALL_KINDS, None, frozenset[str]()
        for signed in key:
            one = self._of(signed)
            kinds &= one.kinds
            excluded |= one.excluded
            if one.values is not None:
                values = one.values if values is None else values & one.values
        if values is None:
            return not kinds
        return not any(_BY_LETTER.get(value[0], NUMBER) in kinds and value not in excluded for value in values)

    def _of(self, signed: int) -> Glimpse:
        known = self._known.get(signed)
        if known is None:
            sub = self._document.subschema(abs(signed) - 1)
            known = self._known[signed] = self._take(sub) if signed > 0 else _not(sub)
        return known

    def _take(self, sub: Subschema) -> Glimpse:
        try:
            for _ in range(8):
                if not isinstance(sub.contents, Mapping) or "$ref" not in sub.contents:
                    break
                sub = self._document.refer(sub, "$ref")
        except SchemaError:
            return _ANYTHING  # what is wrong with it is said when its own turn comes
        if isinstance(sub.contents, bool):
            return _ANYTHING if sub.contents else _NOTHING
        return Glimpse(_kinds(sub.contents), _values(sub))


def _not(sub: Subschema) -> Glimpse:
    if isinstance(sub.contents, bool):
        return _NOTHING if sub.contents else _ANYTHING
    said = sub.contents.keys() - ANNOTATIONS
    kinds = _kinds(sub.contents)
    if said == {"type"} and "integer" not in sub.contents["type"]:
        return Glimpse(ALL_KINDS - kinds)
    values = _values(sub)
    if values is not None and len(said & _LISTS) == 1 and said <= _LISTS | {"type"}:
        return Glimpse(excluded=frozenset(value for value in values if _BY_LETTER.get(value[0], NUMBER) in kinds - {NUMBER}))
    return _ANYTHING


def _kinds(contents: Mapping[str, Any]) -> frozenset[str]:
    names = contents.get("type")
    if isinstance(names, str):
        return _TYPES.get(names, ALL_KINDS)
    if isinstance(names, list) and all(isinstance(name, str) and name in _TYPES for name in names):
        return frozenset[str]().union(*(_TYPES[name] for name in names))
    return ALL_KINDS


def _values(sub: Subschema) -> frozenset[str] | None:
    """The values that `const` or `enum` lists; None where there is neither."""
    contents = sub.contents
    if sub.draft >= 6 and "const" in contents:
        return frozenset((texts.canonical(contents["const"]),))
    values = contents.get("enum")
    return frozenset(map(texts.canonical, values)) if isinstance(values, list) else None
