"""Subschemas and references: each place of a schema document gets an id, resolved by the `referencing` library.

Knows which dialect a document speaks and where each subschema lies; knows nothing of what keywords mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import referencing
import referencing.exceptions
import referencing.jsonschema
from referencing import Registry, Specification

from constrained.errors import SchemaError, UnresolvableReferenceError

DRAFT_2020 = referencing.jsonschema.DRAFT202012
DIALECTS: dict[str, tuple[int, Specification[Any]]] = {
    "http://json-schema.org/draft-04/schema": (4, referencing.jsonschema.DRAFT4),
    "http://json-schema.org/draft-06/schema": (6, referencing.jsonschema.DRAFT6),
    "http://json-schema.org/draft-07/schema": (7, referencing.jsonschema.DRAFT7),
    "https://json-schema.org/draft/2019-09/schema": (2019, referencing.jsonschema.DRAFT201909),
    "https://json-schema.org/draft/2020-12/schema": (2020, DRAFT_2020),
}


def escape(part: str) -> str:
    """One reference token of an RFC 6901 pointer."""
    return part.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True, slots=True)
class Subschema:
    """One schema object or boolean: where it lies, what it says, and what its references are relative to."""

    id: int
    pointer: str
    contents: Any
    draft: int
    resolver: Any


class SchemaDocument:
    """A schema with the documents that it may refer to; hands out `Subschema`s by place.

    Raises `SchemaError` where something that should be a schema is none, `UnresolvableReferenceError` for references
    that lead nowhere. Nothing is ever fetched.
    """

    def __init__(self, schema: Any, registry: Registry[Any] | None = None) -> None:
        self.subschemas: list[Subschema] = []
        self._ids: dict[tuple[str, int], int] = {}
        self._alive: list[Any] = []
        draft, specification = self._dialect(schema, 2020, DRAFT_2020)
        resource = specification.create_resource(schema)
        base = registry if registry is not None else Registry()
        uri = resource.id() or "" if isinstance(schema, Mapping) else ""
        resolver = base.with_resource(uri, resource).resolver(uri)
        self.root = self._add("", schema, draft, resolver)

    def _dialect(self, schema: Any, draft: int, specification: Any) -> tuple[int, Any]:
        if not isinstance(schema, Mapping) or "$schema" not in schema:
            return draft, specification
        name = schema["$schema"]
        found = DIALECTS.get(name.rstrip("#")) if isinstance(name, str) else None
        if found is None:
            raise SchemaError(f"unknown dialect {name!r}; known: {', '.join(DIALECTS)}", "", "$schema")
        return found

    def _add(self, pointer: str, contents: Any, draft: int, resolver: Any) -> Subschema:
        key = (pointer, id(contents))
        if key in self._ids:
            return self.subschemas[self._ids[key]]
        if not isinstance(contents, (Mapping, bool)):
            raise SchemaError(f"a schema is an object or a boolean, not {_type_name(contents)}", pointer)
        if isinstance(contents, Mapping) and not all(isinstance(name, str) for name in contents):
            raise SchemaError("the names of a schema object are strings", pointer)
        sub = Subschema(len(self.subschemas), pointer, contents, draft, resolver)
        self._ids[key] = sub.id
        self._alive.append(contents)
        self.subschemas.append(sub)
        return sub

    def child(self, parent: Subschema, *path: str | int, contents: Any) -> Subschema:
        """The subschema `contents` at `path` below `parent`."""
        pointer = parent.pointer + "".join(f"/{escape(str(part))}" for part in path)
        resolver, draft = parent.resolver, parent.draft
        if isinstance(contents, Mapping) and ("$id" in contents or "id" in contents or "$schema" in contents):
            draft, specification = self._dialect(contents, draft, _specification(draft))
            resolver = resolver.in_subresource(specification.create_resource(contents))
        return self._add(pointer, contents, draft, resolver)

    def refer(self, sub: Subschema, ref: Any) -> Subschema:
        """The subschema that `$ref: ref` in `sub` leads to."""
        if not isinstance(ref, str):
            raise SchemaError(f"a reference is a string, not {_type_name(ref)}", sub.pointer, "$ref")
        try:
            resolved = sub.resolver.lookup(ref)
        except referencing.exceptions.Unresolvable as error:
            raise UnresolvableReferenceError(
                f"{ref!r} leads to nothing; remote documents are never fetched, hand them in by `registry`", sub.pointer, "$ref"
            ) from error
        except (ValueError, TypeError, LookupError) as error:
            raise UnresolvableReferenceError(f"{ref!r} is not a usable reference: {error}", sub.pointer, "$ref") from error
        draft, _ = self._dialect(resolved.contents, sub.draft, None)
        pointer = ref[1:] if ref.startswith("#") else ref
        return self._add(pointer, resolved.contents, draft, resolved.resolver)


def _specification(draft: int) -> Any:
    return next(specification for number, specification in DIALECTS.values() if number == draft)


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
