"""Dialects: the drafts, the vocabularies that a metaschema chooses, and where each draft keeps subschemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LATEST = 2020
DRAFTS: dict[str, int] = {
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}

# As schemas write them: over http or https, with or without an empty fragment; without a draft it is the latest.
_BY_NAME = {
    f"{protocol}://{uri.partition('://')[2]}{fragment}": draft
    for uri, draft in (*DRAFTS.items(), ("https://json-schema.org/schema", LATEST))
    for protocol in ("http", "https")
    for fragment in ("", "#")
}


def draft_of(uri: Any) -> int | None:
    """The draft that a `$schema` names; None where it names none."""
    return _BY_NAME.get(uri) if isinstance(uri, str) else None


# For each keyword that holds subschemas: the first and the last draft that know it.
_ONE = {
    "additionalProperties": (4, 9999),
    "additionalItems": (4, 2019),
    "items": (4, 9999),
    "not": (4, 9999),
    "propertyNames": (6, 9999),
    "contains": (6, 9999),
    "if": (7, 9999),
    "then": (7, 9999),
    "else": (7, 9999),
    "unevaluatedItems": (2019, 9999),
    "unevaluatedProperties": (2019, 9999),
    "contentSchema": (2019, 9999),
}
_LISTS = {
    "allOf": (4, 9999),
    "anyOf": (4, 9999),
    "oneOf": (4, 9999),
    "items": (4, 2019),
    "prefixItems": (2020, 9999),
}
_MAPS = {
    "properties": (4, 9999),
    "patternProperties": (4, 9999),
    "definitions": (4, 9999),
    "dependencies": (4, 9999),
    "$defs": (2019, 9999),
    "dependentSchemas": (2019, 9999),
}

_APPLICATOR = (
    "prefixItems items additionalItems contains additionalProperties properties patternProperties dependentSchemas "
    "propertyNames if then else allOf anyOf oneOf not"
)
_UNEVALUATED = "unevaluatedItems unevaluatedProperties"
_VALIDATION = (
    "type const enum multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems "
    "minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired"
)
# The vocabularies that decide about assertions, and all others that are known (annotations alone).
_VOCABULARIES: dict[int, dict[str, frozenset[str]]] = {
    2019: {
        "applicator": frozenset(f"{_APPLICATOR} {_UNEVALUATED}".split()),
        "validation": frozenset(_VALIDATION.split()),
        "format": frozenset(("format",)),
    },
    2020: {
        "applicator": frozenset(_APPLICATOR.split()),
        "unevaluated": frozenset(_UNEVALUATED.split()),
        "validation": frozenset(_VALIDATION.split()),
        "format-annotation": frozenset(("format",)),
        "format-assertion": frozenset(("format",)),
    },
}
_PREFIXES = {2019: "https://json-schema.org/draft/2019-09/vocab/", 2020: "https://json-schema.org/draft/2020-12/vocab/"}
_SILENT = frozenset(("core", "meta-data", "content"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """A draft, and the keywords of it that assert nothing because their vocabulary is not in use."""

    draft: int
    without: frozenset[str] = frozenset()

    @property
    def id_keyword(self) -> str:
        return "id" if self.draft == 4 else "$id"

    def container(self, keyword: str, value: Any) -> str | None:
        """How `keyword: value` holds subschemas: "one", "list", "map"; None where it holds none."""
        if isinstance(value, list):
            kinds = (("list", _LISTS),)
        elif keyword in _MAPS:
            kinds = (("map", _MAPS),)
        else:
            kinds = (("one", _ONE),)
        for kind, table in kinds:
            since, until = table.get(keyword, (9999, 0))
            if since <= self.draft <= until:
                return kind
        return None

    def subschemas(self, contents: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
        """The direct subschemas of a schema object, each with its path."""
        for keyword, value in contents.items():
            kind = self.container(keyword, value)
            found: list[tuple[tuple[str | int, ...], Any]] = []
            if kind == "one":
                found = [((keyword,), value)]
            elif kind == "list":
                found = [((keyword, index), member) for index, member in enumerate(value)]
            elif kind == "map" and isinstance(value, Mapping):
                found = [((keyword, name), member) for name, member in value.items()]
            yield from ((path, member) for path, member in found if isinstance(member, (Mapping, bool)))


def without(draft: int, vocabularies: Mapping[str, bool]) -> tuple[frozenset[str], list[str]]:
    """The keywords of `draft` that no vocabulary of a metaschema brings, and the required vocabularies that nobody knows."""
    known, prefix = _VOCABULARIES[draft], _PREFIXES[draft]
    chosen = {uri.removeprefix(prefix) for uri in vocabularies}
    unknown = [
        uri
        for uri, required in vocabularies.items()
        if required and not (uri.startswith(prefix) and (uri.removeprefix(prefix) in known.keys() | _SILENT))
    ]
    everything = frozenset[str]().union(*known.values())
    return everything - frozenset[str]().union(*(known[name] for name in known if name in chosen)), unknown


def draft_of_vocabularies(vocabularies: Any) -> int | None:
    """The draft that the vocabularies of a metaschema belong to."""
    if not isinstance(vocabularies, Mapping):
        return None
    return next((draft for draft, prefix in _PREFIXES.items() if any(uri.startswith(prefix) for uri in vocabularies)), None)
