"""Documents by URI: schema resources, their anchors, and where a reference leads.

Knows `$id`, anchors, JSON Pointers and `$schema`; knows nothing of dynamic scopes or of what assertions mean. Remote documents
come from the caller's registry; the metaschemas of all drafts are at hand; nothing else is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

import referencing.exceptions
from referencing import Registry

from constrained.errors import SchemaError, UnresolvableReferenceError, UnsupportedKeywordError
from constrained.grammar import dialects
from constrained.grammar.dialects import DRAFTS, Dialect


def escape(part: str) -> str:
    """One reference token of an RFC 6901 pointer."""
    return part.replace("~", "~0").replace("/", "~1")


class Place(NamedTuple):
    """A schema where it is written; `pointer` begins with the document's URI and `#` where that is not the main one."""

    pointer: str
    contents: Any
    base: str
    dialect: Dialect

    def below(self, *path: str | int, contents: Any) -> Place:
        """A place further down, in the same resource as far as is known."""
        pointer = self.pointer
        for part in path:
            pointer += "/" + (escape(part) if isinstance(part, str) else str(part))
        return Place(pointer, contents, self.base, self.dialect)


@dataclass(slots=True)
class Resource:
    """A schema with a URI of its own; `dynamic` are the anchors that dynamic references look for ("" is `$recursiveAnchor`)."""

    root: Place
    anchors: dict[str, Place] = field(default_factory=dict)
    dynamic: dict[str, Place] = field(default_factory=dict)


_DIALECTS = {draft: Dialect(draft) for draft in DRAFTS.values()}
_LATEST = _DIALECTS[dialects.LATEST]


def root_of(schema: Any) -> Place | None:
    """The root of a main document whose dialect is known, and whose URI, if it has one, needs no work; None for any other."""
    if type(schema) is not dict or "$ref" in schema:
        return None
    draft = dialects.draft_of(schema["$schema"]) if "$schema" in schema else dialects.LATEST
    if draft is None:
        return None
    dialect = _DIALECTS[draft]
    base = schema.get("id" if draft == 4 else "$id", "")
    return Place("", schema, base, dialect) if type(base) is str and "#" not in base else None


class Library:
    """The main document and those that it refers to; a document is searched for anchors and ids when one is first asked for."""

    def __init__(self, schema: Any, registry: Registry[Any]) -> None:
        self._registry = registry
        self._resources: dict[str, Resource] = {}
        self._unread: list[Place] = []
        self._added: set[str] = set()
        self._naming: set[str] = set()
        self.root = self._add(Place("", schema, "", _LATEST))

    def settle(self, place: Place) -> Place:
        """The same place with the dialect and the base URI that its own `$schema` and `$id` give it.

        Whether it is a resource of its own is for the dialect around it to tell: `id` is no id to a draft that has `$id`.
        """
        return self._settled_by(place, place.dialect.id_keyword)

    def _settled_by(self, place: Place, keyword: str | None) -> Place:
        """`settle` with the keyword of ids; None is the dialect's own."""
        contents = place.contents
        if not isinstance(contents, (dict, Mapping)):  # the first is the fast one
            return place
        if "$schema" in contents:
            place = Place(place.pointer, contents, place.base, self._dialect(place))
        keyword = keyword or place.dialect.id_keyword
        if keyword not in contents or (place.dialect.draft <= 7 and "$ref" in contents):
            return place
        name = contents[keyword]
        if not isinstance(name, str):
            raise SchemaError(f"{name!r} is not a URI", place.pointer, keyword)
        return Place(place.pointer, contents, urldefrag(urljoin(place.base, name)).url, place.dialect)

    def resource(self, base: str) -> Resource:
        """The resource whose URI is `base`, all its anchors read."""
        self._read()
        return self._resources[base]

    def dynamic(self, base: str) -> Mapping[str, Place]:
        """The dynamic anchors of a resource; none where `base` names a place that no reference may enter by its URI."""
        self._read()
        found = self._resources.get(base)
        return found.dynamic if found is not None else {}

    def enter(self, place: Place) -> None:
        """Take note of a resource that begins at `place`."""
        self._read()
        self._resources.setdefault(place.base, Resource(place))

    def find(self, origin: Place, keyword: str, ref: str) -> Place:
        """The place that the reference `ref`, written at `origin`, leads to, without regard to dynamic scopes."""
        uri, fragment = (origin.base, ref[1:]) if ref.startswith("#") else urldefrag(urljoin(origin.base, ref))
        missing = UnresolvableReferenceError(
            f"{ref!r} leads to nothing; remote documents are never fetched, hand them in by `registry`", origin.pointer, keyword
        )
        resource = self._resource(uri, origin.dialect)
        if resource is None:
            raise missing
        if fragment.startswith("/"):
            place = self._point(resource.root, unquote(fragment))
        elif fragment:
            self._read()
            place = resource.anchors.get(unquote(fragment))
        else:
            place = resource.root
        if place is None:
            raise missing
        return place

    def _dialect(self, place: Place) -> Dialect:
        given = place.contents["$schema"]
        draft = dialects.draft_of(given)
        if draft is not None:
            return _DIALECTS[draft]
        name = given.rstrip("#") if isinstance(given, str) else ""
        if name in self._naming:  # a metaschema that describes itself
            draft = dialects.draft_of_vocabularies(place.contents.get("$vocabulary"))
            if draft is not None:
                return Dialect(draft)
        metaschema = self._metaschema(name, place.dialect) if name else None
        if metaschema is None or not isinstance(metaschema.root.contents, Mapping):
            known = f"known: {', '.join(DRAFTS)}, and metaschemas handed in by `registry`"
            raise SchemaError(f"unknown dialect {given!r}; {known}", place.pointer, "$schema")
        return self._dialect_of(metaschema.root, place)

    def _metaschema(self, name: str, dialect: Dialect) -> Resource | None:
        """The metaschema of that name; None also for one that is of no known dialect itself, as draft 3's."""
        try:
            return self._resource(name, dialect)
        except SchemaError as error:
            if error.keyword != "$schema":
                raise
            return None

    def _dialect_of(self, metaschema: Place, place: Place) -> Dialect:
        """The dialect that a metaschema describes: its draft, without the keywords that its vocabularies do not bring."""
        draft, vocabularies = metaschema.dialect.draft, metaschema.contents.get("$vocabulary")
        if draft < 2019 or not isinstance(vocabularies, Mapping):
            return metaschema.dialect
        lacking, unknown = dialects.without(draft, vocabularies)
        if unknown:
            message = f"the dialect requires the vocabulary {unknown[0]!r}, which is not known"
            raise UnsupportedKeywordError(message, place.pointer, "$schema")
        return Dialect(draft, lacking)

    def _add(self, place: Place) -> Place:
        """A new document: its root is a resource by its own URI and by the one that it was found under."""
        found_under = place.base
        place = self._settled_by(place, None)
        resource = self._resources.get(place.base)
        if resource is None:
            resource = self._resources[place.base] = Resource(place)
        self._resources.setdefault(found_under, resource)
        self._unread.append(place)
        return place

    def _resource(self, uri: str, dialect: Dialect) -> Resource | None:
        if uri not in self._resources:
            self._read()
        if uri not in self._resources:
            self._look_outside(uri, dialect)
        return self._resources.get(uri)

    def _look_outside(self, uri: str, dialect: Dialect) -> None:
        """Take in the document at `uri`, or else every document that the caller gave: one may hold what is looked for."""
        contents = _document(self._registry, uri)
        if contents is None:
            self._take_all(dialect)
        if contents is None and uri not in self._resources:
            contents = _metaschema(uri) or _retrieved(self._registry, uri)
        if contents is not None:
            self._take(uri, contents, dialect)

    def _take_all(self, dialect: Dialect) -> None:
        for uri in self._registry:
            try:
                self._take(uri, self._registry[uri].contents, dialect)
            except SchemaError:
                continue  # its faults are told when it is what is looked for
        self._read()

    def _take(self, uri: str, contents: Any, dialect: Dialect) -> None:
        if uri in self._added:
            return
        self._added.add(uri)
        self._naming.add(uri)
        try:
            self._add(Place(f"{uri}#", contents, uri, dialect))
        finally:
            self._naming.discard(uri)

    def _read(self) -> None:
        """Search the documents that came in since the last time for resources and anchors."""
        while self._unread:
            document = self._unread.pop()
            pending = [document]
            while pending:
                place = pending.pop()
                if isinstance(place.contents, Mapping):
                    self._note(place)
                    below = list(place.dialect.subschemas(place.contents))
                    pending += self._settled([place.below(*path, contents=contents) for path, contents in reversed(below)])

    def _settled(self, places: list[Place]) -> list[Place]:
        """The places whose ids and dialects are right; the faults of others are told when something uses them."""
        found = []
        for place in places:
            try:
                found.append(self.settle(place))
            except SchemaError:
                continue
        return found

    def _note(self, place: Place) -> None:
        contents = place.contents
        resource = self._resources.setdefault(place.base, Resource(place))
        if place.dialect.draft <= 7:
            name = contents.get(place.dialect.id_keyword)
            if isinstance(name, str) and "$ref" not in contents and (anchor := urldefrag(name).fragment):
                resource.anchors.setdefault(anchor, place)
            return
        if isinstance(anchor := contents.get("$anchor"), str):
            resource.anchors.setdefault(anchor, place)
        if place.dialect.draft == 2019 and contents.get("$recursiveAnchor") is True and contents is resource.root.contents:
            resource.dynamic[""] = place
        if place.dialect.draft >= 2020 and isinstance(anchor := contents.get("$dynamicAnchor"), str):
            resource.anchors.setdefault(anchor, place)
            resource.dynamic.setdefault(anchor, place)

    def _point(self, start: Place, pointer: str) -> Place | None:
        """Follow a JSON Pointer; ids on the way count wherever a schema of the dialect stands."""
        place, kind = start, "schema"
        for position, part in enumerate(pointer.split("/")[1:]):
            if kind == "schema" and position:
                place = self.settle(place)
            step = _step(place.contents, part.replace("~1", "/").replace("~0", "~"))
            if step is None:
                return None
            below = place.below(step, contents=place.contents[step])
            kind = kind_below(kind, place.dialect, str(step), place.contents[step])
            place = below
        return self.settle(place)


def _step(contents: Any, part: str) -> str | int | None:
    """The key or index that a reference token means in `contents`."""
    if isinstance(contents, Mapping):
        return part if part in contents else None
    if not isinstance(contents, list) or not part.isascii() or not part.isdigit() or (part[0] == "0" and part != "0"):
        return None
    return int(part) if int(part) < len(contents) else None


def kind_below(kind: str, dialect: Dialect, step: str, contents: Any) -> str:
    """What stands one step further down: a "schema", a "holder" of schemas, or something "unknown"."""
    if kind != "schema":
        return "schema" if kind == "holder" else "unknown"
    return _KINDS[dialect.container(step, contents)]


_KINDS = {"one": "schema", "list": "holder", "map": "holder", None: "unknown"}


def _document(registry: Registry[Any], uri: str) -> Any:
    try:
        return registry[uri].contents
    except referencing.exceptions.NoSuchResource:
        return None


def _metaschema(uri: str) -> Any:
    """The metaschemas of all drafts; loaded when one is first needed, since it reads them all."""
    from jsonschema_specifications import REGISTRY

    return _document(REGISTRY, uri)


def _retrieved(registry: Registry[Any], uri: str) -> Any:
    """What the caller's own retriever gives."""
    try:
        return registry.get_or_retrieve(uri).value.contents
    except (referencing.exceptions.NoSuchResource, referencing.exceptions.Unretrievable):
        return None
    except (TypeError, AttributeError):
        return None  # `referencing` searches its documents first, and trips over boolean schemas of draft 4
