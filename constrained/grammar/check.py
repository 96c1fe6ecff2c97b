"""What becomes of each keyword of a schema: enforced, an annotation, or refused and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from constrained.errors import SchemaError
from constrained.grammar import keywords
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.nodes import Nodes
from constrained.grammar.order import property_order
from constrained.grammar.reading import Text, read
from constrained.grammar.schema import SchemaDocument, Subschema, escape
from constrained.options import CompileOptions

Status = Literal["enforced", "annotation", "refused"]


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


def check_schema(schema: Any, options: CompileOptions) -> SchemaReport:
    """Report on every keyword, and try the compile of the grammar."""
    reports: list[KeywordReport] = []
    try:
        schema = read(schema) if isinstance(schema, Text) else schema
        formats = FormatChoice(options)
        document = SchemaDocument(schema, options.registry, nullable=options.nullable)
        for sub in _subschemas(document, document.root):
            reports += _keywords(sub, formats, options.nullable)
        nodes = Nodes(schema, options)
    except SchemaError as error:
        return SchemaReport(False, tuple(_with_error(report, error) for report in reports), error=error)
    return SchemaReport(True, tuple(reports), property_order(nodes), nodes.min_len(nodes.root))


def _with_error(report: KeywordReport, error: SchemaError) -> KeywordReport:
    """The report, with what the compile says of its keyword."""
    is_at_fault = error.keyword is not None and report.pointer == f"{error.pointer}/{escape(error.keyword)}"
    return replace(report, status="refused", reason=error.message) if is_at_fault else report


def _subschemas(document: SchemaDocument, root: Subschema) -> Iterator[Subschema]:
    pending = [root]
    while pending:
        sub = pending.pop()
        yield sub
        children = list(sub.place.dialect.subschemas(sub.place.contents)) if isinstance(sub.contents, Mapping) else []
        pending += [document.child(sub, *path, contents=contents) for path, contents in reversed(children)]


def _keywords(sub: Subschema, formats: FormatChoice, nullable: bool) -> Iterator[KeywordReport]:
    if not isinstance(sub.contents, Mapping):
        return
    for name in sub.place.contents:
        status, reason = _fate(sub, name, formats, nullable)
        yield KeywordReport(keywords.describe(sub, name), name, status, reason)


def _fate(sub: Subschema, name: str, formats: FormatChoice, nullable: bool) -> tuple[Status, str | None]:
    """What becomes of the keyword `name`, and why."""
    if name not in sub.contents:
        return "annotation", "the dialect does without the vocabulary of this keyword"
    if keywords.ref_stands_alone(sub) and name != "$ref":
        return "annotation", "up to draft 7 a $ref stands alone" if keywords.applies(sub, name) else None
    refusal = keywords.refusal(formats, sub)
    if refusal is not None and name == refusal.keyword:
        return "refused", refusal.message
    if name == "format" and (silence := formats.silence(sub.contents[name], sub.draft)) is not None:
        return "annotation", silence
    if name == "nullable" and nullable:
        return ("enforced", None) if "type" in sub.contents else ("annotation", "there is no type that it could widen")
    return ("enforced" if keywords.applies(sub, name) else "annotation"), None
