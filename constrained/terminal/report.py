"""A `SchemaReport` as the terminal shows it: keyword by keyword, and the verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from constrained.compiled import SchemaReport

Status = Literal["enforced", "annotation", "refused"]
STYLES: dict[Status, str] = {"enforced": "green", "annotation": "dim", "refused": "red"}


def rendered(report: SchemaReport) -> RenderableType:
    """The keywords as a table, and the verdict below it."""
    columns = (Column(name, overflow="fold") for name in ("status", "keyword", "why"))
    table = Table(*columns, box=None, header_style="bold")
    for finding in report.keywords:
        status = Text(finding.status, STYLES[finding.status])
        table.add_row(status, Text(finding.pointer), Text(finding.reason or ""))
    return Group(table, _verdict(report)) if report.keywords else _verdict(report)


def _verdict(report: SchemaReport) -> Text:
    if report.error is not None:
        return Text(f"refused: {report.error}", "red")
    counts = Counter(finding.status for finding in report.keywords)
    told = ", ".join(f"{counts[status]} {status}" for status in STYLES if counts[status])
    return Text(f"supported{f': {told}' if told else ''}; the shortest document has {report.min_bytes} bytes", "green")
