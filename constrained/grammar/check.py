"""What becomes of each keyword of a schema: enforced, an annotation, or refused and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from constrained.errors import SchemaError
from constrained.grammar import keywords
from constrained.grammar.nodes import Nodes
from constrained.grammar.order import property_order
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.options import CompileOptions

Status = Literal["enforced", "annotation", "refused"]

_ONE = ("additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if", "then", "else")
_ONE_MORE = ("unevaluatedItems", "unevaluatedProperties", "contentSchema")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")


@dataclass(frozen=True, slots=True)
class KeywordReport:
    """What becomes of one keyword; `pointer` leads to the keyword itself."""

    pointer: str
    keyword: str
    status: Status
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """Whether a schema compiles, and what becomes of each keyword; `error` is what a compile raises."""

    supported: bool
    keywords: tuple[KeywordReport, ...]
    order: tuple[str, ...] = ()
    min_bytes: int | None = None
    error: SchemaError | None = None


class _Formats:
    """The part of a compile that decides about `format`."""

    def __init__(self, options: CompileOptions) -> None:
        self.asserts_formats = options.formats == "assert"


def check_schema(schema: Any, options: CompileOptions) -> SchemaReport:
    """Report on every keyword, and try the compile of the grammar."""
    reports: list[KeywordReport] = []
    try:
        document = SchemaDocument(schema, options.registry)
        for sub in _subschemas(document, document.root):
            reports += _keywords(sub, options)
        nodes = Nodes(schema, options)
    except SchemaError as error:
        return SchemaReport(False, tuple(reports), error=error)
    return SchemaReport(True, tuple(reports), property_order(nodes), nodes[nodes.root].min_len)


def _subschemas(document: SchemaDocument, root: Subschema) -> Iterator[Subschema]:
    pending = [root]
    while pending:
        sub = pending.pop()
        yield sub
        children = list(_children(sub)) if isinstance(sub.contents, Mapping) else []
        pending += [document.child(sub, *path, contents=contents) for path, contents in reversed(children)]


def _children(sub: Subschema) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    contents = sub.contents
    for name in (*_ONE, *_ONE_MORE):
        if isinstance(contents.get(name), (Mapping, bool)):
            yield (name,), contents[name]
    items = contents.get("items")
    if isinstance(items, (Mapping, bool)):
        yield ("items",), items
    for name in (*_LISTS, "items"):
        if isinstance(contents.get(name), list):
            for index, value in enumerate(contents[name]):
                if isinstance(value, (Mapping, bool)):
                    yield (name, index), value
    for name in _MAPS:
        if isinstance(contents.get(name), Mapping):
            for key, value in contents[name].items():
                if isinstance(value, (Mapping, bool)):
                    yield (name, key), value


def _keywords(sub: Subschema, options: CompileOptions) -> Iterator[KeywordReport]:
    if not isinstance(sub.contents, Mapping):
        return
    alone = keywords.ref_stands_alone(sub)
    for name in sub.contents:
        pointer = keywords.describe(sub, name)
        refusal = None if alone else keywords.refusal(_Formats(options), sub, name)
        if refusal is not None:
            yield KeywordReport(pointer, name, "refused", refusal.message)
        elif alone and name != "$ref" and name in keywords.RULES:
            yield KeywordReport(pointer, name, "annotation", "up to draft 7 a $ref stands alone")
        elif name in keywords.RULES and keywords.applies(sub, name):
            yield KeywordReport(pointer, name, "enforced")
        else:
            yield KeywordReport(pointer, name, "annotation")
