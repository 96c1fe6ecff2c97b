"""Arms of plain subschemas, straight from what is written: what the rules of keywords give, without their products.

Only for the commonest forms: objects of properties, arrays of items, lists of strings.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from constrained.grammar.plain import Plainness
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.grammar.shapes import ANYTHING, ARRAY, OBJECT, STRING, Arm, ArrayShape, Layer, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED, StringSet

_OBJECTS, _ARRAYS, _STRINGS = frozenset((OBJECT,)), frozenset((ARRAY,)), frozenset((STRING,))
_KEYWORDS = {
    "object": frozenset(("type", "properties", "required", "additionalProperties")),
    "array": frozenset(("type", "items", "minItems", "maxItems", "uniqueItems")),
    "string": frozenset(("type", "enum")),
}
_NO_LAYERS: tuple[Layer, ...] = ()


class PlainArms:
    """Arms of the plain subschemas of one document.

    `keys` are the nodes that are known to be plain, `nothing` some that are `false`.
    """

    def __init__(self, document: SchemaDocument, plainness: Plainness) -> None:
        self.keys: set[NodeKey] = {()}
        self.nothing: set[NodeKey] = set()
        self._known: dict[int, list[Arm]] = {}
        self._document = document
        self._plainness = plainness

    def find(self, sub: Subschema) -> list[Arm] | None:
        """The arms of a subschema, the same ones whenever asked; None where it is not plain, or of no common form."""
        known = self._known.get(sub.id)
        contents = sub.contents
        if known is not None or id(contents) not in self._plainness.plain:
            return known
        kind = contents.get("type")
        if type(kind) is not str or kind not in _KEYWORDS or not self._plainness.asserts_only(contents, _KEYWORDS[kind]):
            return None
        if kind == "object":
            found = self._known[sub.id] = [self._object(sub, contents)]
        elif kind == "array":
            found = self._known[sub.id] = [self._array(sub, contents)]
        else:
            return self._strings(contents)
        return found

    def _object(self, sub: Subschema, contents: dict[str, Any]) -> Arm:
        properties = contents.get("properties", _NOTHING)
        if not self._plainness.named and self._plainness.plain.issuperset(map(id, properties.values())):
            members = self._document.below_each(sub, "properties", properties)
            self.keys.update(members.values())
        else:
            members = {name: self._child(sub, member, "properties", name) for name, member in properties.items()}
        layers = _NO_LAYERS
        others = self._child(sub, contents.get("additionalProperties", True), "additionalProperties")
        if others:
            layers = (Layer((), others),)
        required = contents.get("required", ())
        for name in required:
            if name not in members:
                members[name] = others
        return Arm(_OBJECTS, object=ObjectShape(MappingProxyType(members), layers, frozenset(required)))

    def _array(self, sub: Subschema, contents: dict[str, Any]) -> Arm:
        rest = self._child(sub, contents.get("items", True), "items")
        least, most = contents.get("minItems", 0), min(contents.get("maxItems", UNBOUNDED), UNBOUNDED)
        return Arm(_ARRAYS, array=ArrayShape((), rest, least, most, distinct=contents.get("uniqueItems", False)))

    def _strings(self, contents: dict[str, Any]) -> list[Arm] | None:
        values = contents.get("enum")
        if values is None or not all(type(value) is str for value in values):
            return None
        return [Arm(_STRINGS, string=StringSet(values=frozenset(values)))]

    def _child(self, sub: Subschema, contents: Any, *path: str) -> NodeKey:
        """The obligation to meet a subschema of a member or an item."""
        if contents is True or contents == _NOTHING:
            return ANYTHING
        if contents is False or (id(contents) in self._plainness.plain and id(contents) not in self._plainness.named):
            key = (self._document.below(sub, *path, contents=contents) + 1,)
            (self.keys if contents else self.nothing).add(key)
            return key
        return self._document.key(self._document.child(sub, *path, contents=contents))


_NOTHING: dict[str, Any] = {}
