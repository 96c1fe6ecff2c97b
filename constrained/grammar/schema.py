"""Subschemas: each place of a schema document under each dynamic scope gets an id.

Knows dynamic scopes and what a dialect leaves of a schema object; where references lead is `resources`' matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from referencing import Registry

from constrained.errors import SchemaError
from constrained.grammar.dialects import Dialect
from constrained.grammar.resources import Library, Place, escape
from constrained.grammar.shapes import NodeKey

__all__ = ["SchemaDocument", "Scope", "Subschema", "escape"]

ANNOTATIONS = frozenset(("title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"))

# For each dynamic anchor, the outermost resource beneath the main one that has it. Whatever the main resource has comes before.
Scope = tuple[tuple[str, str], ...]


class Subschema(NamedTuple):
    """One schema object or boolean: what it asserts in its dialect, and where it is written."""

    id: int
    pointer: str
    contents: Any
    draft: int
    place: Place
    scope: Scope


class SchemaDocument:
    """A schema with the documents that it may refer to; hands out `Subschema`s by place and scope.

    Raises `SchemaError` where something that should be a schema is none, `UnresolvableReferenceError` for references
    that lead nowhere.
    """

    def __init__(self, schema: Any, registry: Registry[Any] | None = None, *, nullable: bool = False) -> None:
        self.subschemas: list[Subschema] = []
        self._nullable = nullable
        self._ids: dict[tuple[str, int, Scope], int] = {}
        self._references: dict[tuple[int, str], Subschema] = {}
        self._meanings: dict[int, int] = {}
        self._spoken: dict[tuple[str, str, Dialect, Scope], int] = {}
        self._library = Library(schema, registry if registry is not None else Registry())
        self.root = self._add(self._library.root, ())

    def child(self, parent: Subschema, *path: str | int, contents: Any) -> Subschema:
        """The subschema `contents` at `path` below `parent`."""
        return self._child(parent, parent.place.below(*path, contents=contents))

    def children(self, parent: Subschema, keyword: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Subschema]]:
        """The subschemas that `keyword` of `parent` gives by name."""
        place = parent.place
        base = f"{place.pointer}/{keyword}/"
        for name, contents in members.items():
            yield name, self._child(parent, Place(base + escape(name), contents, place.base, place.dialect))

    def _child(self, parent: Subschema, place: Place) -> Subschema:
        scope, contents = parent.scope, place.contents
        if isinstance(contents, (dict, Mapping)) and ("$id" in contents or "id" in contents or "$schema" in contents):
            place = self._library.settle(place)
            if place.base != parent.place.base:
                self._library.enter(place)
                scope = self._entered(scope, place.base)
        return self._add(place, scope)

    def made(self, parent: Subschema, *path: str | int, contents: Any) -> Subschema:
        """A subschema that nobody wrote, for what `parent` says at `path`; it means what it says in every dialect."""
        place = parent.place.below(*path, contents=contents)
        return self._add(place._replace(dialect=Dialect(place.dialect.draft)), parent.scope)

    def key(self, sub: Subschema, meets: bool = True) -> NodeKey:
        """The obligation to meet a subschema, or not to; complements of what says the same elsewhere are one."""
        contents = sub.contents
        if (contents is True or contents == {}) if meets else contents is False:
            return ()
        return (sub.id + 1 if meets else -(self.meaning(sub) + 1),)

    def obligation(self, signed: int) -> tuple[Subschema, bool]:
        """The subschema of an obligation, and whether it is to be met."""
        return self.subschemas[abs(signed) - 1], signed > 0

    def meaning(self, sub: Subschema) -> int:
        """The id of the first subschema that says the same, as far as texts without annotations show it."""
        known = self._meanings.get(sub.id)
        if known is None:
            text = json.dumps(_without_annotations(sub.contents), sort_keys=True, default=repr)
            spoken = (text, sub.place.base, sub.place.dialect, sub.scope)
            known = self._meanings[sub.id] = self._spoken.setdefault(spoken, sub.id)
        return known

    def refer(self, sub: Subschema, keyword: str) -> Subschema:
        """The subschema that `$ref`, `$dynamicRef` or `$recursiveRef` of `sub` leads to."""
        known = self._references.get((sub.id, keyword))
        if known is None:
            known = self._references[sub.id, keyword] = self._refer(sub, keyword)
        return known

    def _refer(self, sub: Subschema, keyword: str) -> Subschema:
        ref = sub.contents[keyword]
        if not isinstance(ref, str):
            raise SchemaError(f"a reference is a string, not {_type_name(ref)}", sub.pointer, keyword)
        if keyword == "$recursiveRef" and ref != "#":
            raise SchemaError(f"{ref!r} is not '#', the only recursive reference", sub.pointer, keyword)
        place = self._library.find(sub.place, keyword, ref)
        if keyword != "$ref":
            name = "" if keyword == "$recursiveRef" else ref.partition("#")[2] or None
            place = self._outermost(sub.scope, place, name)
        scope = sub.scope if place.base == sub.place.base else self._entered(sub.scope, place.base)
        return self._add(place, scope)

    def _outermost(self, scope: Scope, place: Place, name: str | None) -> Place:
        """The place of the dynamic anchor `name` in the outermost resource that has it, if `place` is one of that name."""
        own = self._library.resource(place.base).dynamic
        if name is None or name not in own or own[name].pointer != place.pointer:
            return place
        main = self._library.resource(self._library.root.base).dynamic
        if name in main:
            return main[name]
        outer = dict(scope).get(name)
        return self._library.resource(outer).dynamic[name] if outer is not None else place

    def _entered(self, scope: Scope, base: str) -> Scope:
        """The scope inside the resource `base`: the dynamic anchors that it has and no resource around it."""
        main = self._library.resource(self._library.root.base).dynamic
        known = main.keys() | {name for name, _ in scope}
        new = [(name, base) for name in self._library.dynamic(base) if name not in known]
        return tuple(sorted((*scope, *new))) if new else scope

    def _add(self, place: Place, scope: Scope) -> Subschema:
        contents = place.contents
        key = (place.pointer, id(contents), scope)
        known = self._ids.get(key)
        if known is not None:
            return self.subschemas[known]
        if isinstance(contents, (dict, Mapping)):  # the first is the fast one
            for name in contents:
                if not isinstance(name, str):
                    raise SchemaError("the names of a schema object are strings", place.pointer)
            if place.dialect.without or self._nullable:
                contents = self._asserted(place, contents)
        elif not isinstance(contents, bool):
            raise SchemaError(f"a schema is an object or a boolean, not {_type_name(contents)}", place.pointer)
        sub = Subschema(len(self.subschemas), place.pointer, contents, place.dialect.draft, place, scope)
        self._ids[key] = sub.id
        self.subschemas.append(sub)
        return sub

    def _asserted(self, place: Place, contents: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a schema object says in its dialect: no keywords of other vocabularies, `nullable` as a type."""
        if place.dialect.without:
            contents = {name: value for name, value in contents.items() if name not in place.dialect.without}
        if self._nullable and contents.get("nullable") is True and "type" in contents:
            types = contents["type"]
            return {**contents, "type": [*types, "null"] if isinstance(types, list) else [types, "null"]}
        return contents


def _without_annotations(contents: Any) -> Any:
    """A schema object without the keywords that say nothing of values, at its own level alone."""
    return {k: v for k, v in contents.items() if k not in ANNOTATIONS} if isinstance(contents, Mapping) else contents


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
