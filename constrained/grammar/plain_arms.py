"""Arms of plain subschemas, straight from what is written: what the rules of keywords give, without their products.

Only for the commonest forms: objects of properties, arrays of items, lists of scalars, and what is known of those that say
nothing of members and items (`leaves`). Where a reference leads is known without a look at documents.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from constrained.grammar import leaves
from constrained.grammar.leaves import Leaf
from constrained.grammar.plain import Plainness
from constrained.grammar.rules import values
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.grammar.shapes import ANYTHING, ARRAY, OBJECT, Arm, ArrayShape, Layer, NodeKey, ObjectShape
from constrained.grammar.string_sets import UNBOUNDED

_OBJECTS, _ARRAYS = frozenset((OBJECT,)), frozenset((ARRAY,))
_KEYWORDS = {
    "object": frozenset(("type", "properties", "required", "additionalProperties")),
    "array": frozenset(("type", "items", "minItems", "maxItems", "uniqueItems")),
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
        self._landings: dict[str, NodeKey] = {}
        self._document = document
        self._plainness = plainness
        self._plain, self._draft, self._formats = plainness.plain, plainness.draft, plainness.formats

    def find(self, sub: Subschema) -> list[Arm] | None:
        """The arms of a subschema, the same ones whenever asked; None where it is not plain, or of no common form."""
        known = self._known.get(sub.id)
        contents = sub.contents
        if known is not None or id(contents) not in self._plain:
            return known
        kind = contents.get("type")
        if type(kind) is str and kind in _KEYWORDS and self._plainness.asserts_only(contents, _KEYWORDS[kind]):
            found = [self._object(sub, contents) if kind == "object" else self._array(sub, contents)]
        elif "$ref" in contents:
            return None  # what it leads to has one id for all that ask for arms
        elif "enum" in contents or ("const" in contents and sub.draft > 4):
            found = values.listed(sub)
        else:
            said = self.saying(contents)
            leaf = leaves.known(said) if said is not None else None
            return leaf.arms if leaf is not None else None
        self._known[sub.id] = found
        return found

    def look(self, number: int) -> Leaf | list[Arm] | NodeKey | None:
        """A subschema, by its id, as far as it is known at sight: as a leaf, by its arms, or as the node that it refers to."""
        contents = self._document.contents(number)
        if id(contents) not in self._plain:
            return None
        names = leaves.asserted(tuple(contents), self._draft)
        if names is not None:
            return leaves.known(leaves.saying(contents, names, self._draft, self._formats))
        return self._landing(contents) if "$ref" in contents else self.find(self._document.subschema(number))

    def saying(self, contents: Any) -> leaves.Saying | None:
        """What a subschema says; None where it is not plain, or may say something of members or items."""
        names = leaves.asserted(tuple(contents), self._draft) if id(contents) in self._plain else None
        return leaves.saying(contents, names, self._draft, self._formats) if names is not None else None

    def _landing(self, contents: dict[str, Any]) -> NodeKey:
        """The node that a plain reference leads to: one for all references that lead there."""
        ref, root = contents["$ref"], self._document.root
        known = self._landings.get(ref)
        if known is None:
            target = self._plainness.target(ref, (contents, None, root))
            if target is root.contents:
                known = self._document.key(root)
            elif target == _NOTHING:
                known = ANYTHING
            else:
                known = (self._document.below(root, *ref[2:].split("/"), contents=target) + 1,)
            self.keys.add(known)
            self._landings[ref] = known
        return known

    def _object(self, sub: Subschema, contents: dict[str, Any]) -> Arm:
        properties = contents.get("properties", _NOTHING)
        if not self._plainness.named and self._plain.issuperset(map(id, properties.values())):
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

    def _child(self, sub: Subschema, contents: Any, *path: str) -> NodeKey:
        """The obligation to meet a subschema of a member or an item."""
        if contents is True or contents == _NOTHING:
            return ANYTHING
        if contents is False or (id(contents) in self._plain and id(contents) not in self._plainness.named):
            key = (self._document.below(sub, *path, contents=contents) + 1,)
            (self.keys if contents else self.nothing).add(key)
            return key
        return self._document.key(self._document.child(sub, *path, contents=contents))


_NOTHING: dict[str, Any] = {}
