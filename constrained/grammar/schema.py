"""Subschemas: each place of a schema document under each dynamic scope gets an id.

Knows dynamic scopes and what a dialect leaves of a schema object; where references lead is `resources`' matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from referencing import Registry

from constrained.errors import SchemaError
from constrained.grammar.dialects import Dialect
from constrained.grammar.resources import Library, Place, escape, root_of
from constrained.grammar.shapes import NodeKey

__all__ = ["SchemaDocument", "Scope", "Subschema", "escape"]

ANNOTATIONS = frozenset(("title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"))

_NO_DOCUMENTS: Registry[Any] = Registry()

# For each dynamic anchor, the outermost resource beneath the main one that has it. Whatever the main resource has comes before.
Scope = tuple[tuple[str, str], ...]


Below = tuple["Subschema", tuple[str | int, ...], Any]  # a subschema to be: what it is below of, the path, its contents


class Subschema:
    """One schema object or boolean: what it asserts in its dialect, and where it is written.

    `place` and `pointer` are made when they are first asked for, where the subschema was given as `path` below `parent`.
    """

    __slots__ = ("_parent", "_path", "_place", "contents", "draft", "id", "scope")

    def __init__(
        self,
        number: int,
        contents: Any,
        draft: int,
        scope: Scope,
        place: Place | None,
        parent: Subschema | None = None,
        path: tuple[str | int, ...] = (),
    ) -> None:
        self.id = number
        self.contents = contents
        self.draft = draft
        self.scope = scope
        self._place = place
        self._parent = parent
        self._path = path

    @property
    def place(self) -> Place:
        """Where it is written."""
        below: list[Subschema] = []
        here = self
        while here._place is None:
            assert here._parent is not None
            below.append(here)
            here = here._parent
        place = here._place
        for sub in reversed(below):
            place = sub._place = place.below(*sub._path, contents=sub.contents)
        return place

    @property
    def pointer(self) -> str:
        """JSON Pointer of its place."""
        return self.place.pointer


class SchemaDocument:
    """A schema with the documents that it may refer to; hands out `Subschema`s by place and scope.

    Raises `SchemaError` where something that should be a schema is none, `UnresolvableReferenceError` for references
    that lead nowhere.
    """

    def __init__(self, schema: Any, registry: Registry[Any] | None = None, *, nullable: bool = False) -> None:
        self._subschemas: list[Subschema | Below] = []
        self._nullable = nullable
        self._ids: dict[tuple[str, int, Scope], int] = {}
        self._references: dict[tuple[int, str], Subschema] = {}
        self._found: dict[tuple[str, str], Place] = {}
        self._meanings: dict[int, int] = {}
        self._spoken: dict[tuple[str, str, Dialect, Scope], int] = {}
        self._given = schema, registry if registry is not None else _NO_DOCUMENTS
        self.root = self._add(root_of(schema) or self._library.root, ())

    @cached_property
    def _library(self) -> Library:
        """The documents; most schemas never ask for more than the root."""
        return Library(*self._given)

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

    def subschema(self, number: int) -> Subschema:
        """The subschema with an id."""
        found = self._subschemas[number]
        if type(found) is tuple:
            parent, path, contents = found
            found = self._subschemas[number] = Subschema(number, contents, parent.draft, parent.scope, None, parent, path)
        return found  # type: ignore[return-value]

    def contents(self, number: int) -> Any:
        """The contents of the subschema with an id."""
        found = self._subschemas[number]
        return found[2] if type(found) is tuple else found.contents  # type: ignore[union-attr]

    def below(self, parent: Subschema, *path: str | int, contents: Any) -> int:
        """The id of a legal subschema below `parent` without a name or a dialect of its own, asked for once alone."""
        self._subschemas.append((parent, path, contents))
        return len(self._subschemas) - 1

    def below_each(self, parent: Subschema, keyword: str, members: Mapping[str, Any]) -> dict[str, NodeKey]:
        """The obligations to meet each of the legal subschemas that `keyword` gives by name; see `below`."""
        subschemas = self._subschemas
        keys: dict[str, NodeKey] = {}
        for name, contents in members.items():
            subschemas.append((parent, (keyword, name), contents))
            keys[name] = (len(subschemas),) if contents is not True and contents else ()
        return keys

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
        return self.subschema(abs(signed) - 1), signed > 0

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
        place = self._find(sub.place, keyword, ref)
        if keyword != "$ref":
            name = "" if keyword == "$recursiveRef" else ref.partition("#")[2] or None
            place = self._outermost(sub.scope, place, name)
        scope = sub.scope if place.base == sub.place.base else self._entered(sub.scope, place.base)
        return self._add(place, scope)

    def _find(self, origin: Place, keyword: str, ref: str) -> Place:
        """Where a reference leads to; looked up once for each resource where it stays in that."""
        if not ref.startswith("#"):
            return self._library.find(origin, keyword, ref)
        name = (origin.base, ref)
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._library.find(origin, keyword, ref)
        return known

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
            return self.subschema(known)
        if isinstance(contents, (dict, Mapping)):  # the first is the fast one
            for name in contents:
                if not isinstance(name, str):
                    raise SchemaError("the names of a schema object are strings", place.pointer)
            if place.dialect.without or self._nullable:
                contents = self._asserted(place, contents)
        elif not isinstance(contents, bool):
            raise SchemaError(f"a schema is an object or a boolean, not {_type_name(contents)}", place.pointer)
        sub = Subschema(len(self._subschemas), contents, place.dialect.draft, scope, place)
        self._ids[key] = sub.id
        self._subschemas.append(sub)
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
