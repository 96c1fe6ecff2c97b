"""A form in the terminal that fills itself: ops of the delta protocol in, a rich renderable out.

Knows nothing of models, HTTP or where the ops come from. All fields that the schema knows are drawn before the first op;
each then goes from pending to next, streaming and complete, or is left absent or interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.table import Table
from rich.text import Text as Styled

from constrained.stream import Close, Field, Op, Open, Set, Text
from constrained.stream.pointer import split

State = Literal["pending", "next", "streaming", "complete", "absent", "interrupted"]

MARKS: dict[State, tuple[str, str]] = {
    "pending": ("·", "dim"),
    "next": ("›", "cyan"),
    "streaming": ("▸", "cyan"),
    "complete": ("✓", "green"),
    "absent": ("–", "dim"),
    "interrupted": ("✗", "red"),
}
_PLACEHOLDER = "········"
_ANY_ELEMENT = "*"
_SHOWN_WHILE_LIVE = 400
# What a model writes must not steer the terminal: control characters become pictures, bidirectional overrides vanish.
_VISIBLE: dict[int, int | None] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x0A: 0x23CE,
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
}


@dataclass(slots=True)
class Node:
    """One location of the form; `known` holds the members that the schema announces, "*" standing for any element."""

    token: str = ""
    state: State = "pending"
    kind: str = ""
    pieces: list[str] = field(default_factory=list)
    shown: str = ""
    hint: str = ""
    known: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)

    def child(self, token: str) -> Node:
        """The member or element `token`, which the form gains where it lacks it."""
        if token not in self.children:
            known = self.known.get(token, self.known.get(_ANY_ELEMENT, {}))
            self.children[token] = _skeleton(token, known)
        return self.children[token]

    def text(self, limit: int | None) -> str:
        """The string so far; of a long one only the end where `limit` says so."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        whole = self.pieces[0] if self.pieces else ""
        return whole if limit is None or len(whole) <= limit else f"…{whole[-limit:]}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the form."""

    depth: int
    node: Node
    in_array: bool = False

    @property
    def label(self) -> str:
        name = f"[{self.node.token}]" if self.in_array else _visible(self.node.token)
        return "  " * self.depth + name

    def below(self) -> list[Row]:
        """The lines of its members or elements, last first."""
        return [Row(self.depth + 1, child, self.node.kind == "array") for child in reversed(self.node.children.values())]


class Form:
    """The form of one document. `order`: JSON Pointers of the known fields in generation order, `*` for any element."""

    def __init__(self, order: Iterable[str] = (), title: str = "") -> None:
        self.title = title
        self.root = _skeleton("", _known(order))
        self._active = self.root

    def apply(self, op: Op) -> None:
        """Take the next op of the document."""
        node = self._at(op.path)
        self._active = node
        match op:
            case Field(types=types, enum=enum):
                node.state = "next"
                node.hint = " | ".join(map(_scalar, enum)) if enum else " | ".join(types)
            case Open(type=kind):
                node.state, node.kind = "streaming", kind
            case Text(add=add):
                node.pieces.append(add)
            case Set(value=value, raw=raw):
                node.state, node.shown = "complete", raw or _scalar(value)
            case Close():
                node.state = "complete"
                _settle(node.children.values(), {"pending": "absent", "next": "absent"})

    def interrupt(self) -> None:
        """The run ended before the document did: what is complete stays, what is open is marked."""
        _settle([self.root], {"streaming": "interrupted", "next": "interrupted"})

    def render(self, max_rows: int | None = None) -> Table:
        """The form as it stands; with `max_rows` only the lines around the one that is being written."""
        rows = list(_rows(self.root))
        if max_rows is not None and len(rows) > max_rows:
            active = next((i for i, row in enumerate(rows) if row.node is self._active), len(rows))
            first = min(max(0, active - 2 * max_rows // 3), len(rows) - max_rows)
            rows = rows[first : first + max_rows]
        table = Table.grid(padding=(0, 1))
        table.title, table.title_justify, table.title_style = self.title or None, "left", "bold"
        table.add_column(width=1)
        table.add_column(no_wrap=True, max_width=40)
        table.add_column(overflow="fold")
        for row in rows:
            mark, style = MARKS[row.node.state]
            table.add_row(
                Styled(mark, style), Styled(row.label, "bold"), _value(row.node, _SHOWN_WHILE_LIVE if max_rows else None)
            )
        return table

    def _at(self, path: str) -> Node:
        node = self.root
        for token in split(path):
            node = node.child(token)
        return node


def _known(order: Iterable[str]) -> dict[str, Any]:
    """The pointers as nested dictionaries, in their order."""
    known: dict[str, Any] = {}
    for pointer in order:
        level = known
        for token in split(pointer):
            level = level.setdefault(token, {})
    return known


def _skeleton(token: str, known: dict[str, Any]) -> Node:
    members = {name: _skeleton(name, below) for name, below in known.items() if name != _ANY_ELEMENT}
    return Node(token, known=known, children=members)


def _settle(nodes: Iterable[Node], change: dict[State, State]) -> None:
    """Moves every node below, and these, to the state that `change` gives for theirs."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        node.state = change.get(node.state, node.state)
        pending.extend(node.children.values())


def _rows(root: Node) -> Iterator[Row]:
    """All lines in document order; a root that is a container has no line of its own."""
    is_container = bool(root.children) or root.kind in ("object", "array")
    pending = Row(-1, root).below() if is_container else [Row(0, root)]
    while pending:
        row = pending.pop()
        yield row
        pending.extend(row.below())


def _value(node: Node, limit: int | None) -> Styled:
    if node.state == "absent":
        return Styled("")
    if node.kind == "string":
        text = Styled(_visible(node.text(limit)))
        return text.append("▌", "cyan") if node.state == "streaming" else text
    if node.kind == "array" and not node.children:
        return Styled("[ ]", "dim")
    if node.kind == "object" and not node.children:
        return Styled("{ }", "dim")
    if node.kind or node.children:
        return Styled("")
    if node.state == "complete":
        return Styled(_visible(node.shown), "yellow")
    return Styled(_visible(node.hint) or _PLACEHOLDER, "dim")


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _visible(text: str) -> str:
    return text.translate(_VISIBLE)
