"""Places inside one frame, without what lies below it on the stack: what may come next in a value, an object or an array."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.grammar.items import Standing
from constrained.grammar.progress import Progress
from constrained.grammar.shapes import NodeKey


@dataclass(frozen=True, slots=True)
class Done:
    """The document is complete."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that meets `node` comes next, then `after`."""

    node: NodeKey
    after: int
    depth: int


@dataclass(frozen=True, slots=True)
class ObjectOpen:
    """Just after the opening brace."""

    plan: int
    depth: int


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """A key comes next, or is being read; `tag` is the class of the key that is being read, else 0."""

    plan: int
    progress: Progress
    depth: int
    tag: int = 0


@dataclass(frozen=True, slots=True)
class ObjectColon:
    """The colon after the key `tag` comes next; `progress` is that before the key (but for the keys seen)."""

    plan: int
    tag: int
    progress: Progress
    depth: int


@dataclass(frozen=True, slots=True)
class ObjectNext:
    """After a member: a comma or the closing brace."""

    plan: int
    progress: Progress
    depth: int


@dataclass(frozen=True, slots=True)
class ArrayOpen:
    """Just after the opening bracket."""

    plan: int
    depth: int


@dataclass(frozen=True, slots=True)
class ArrayItem:
    """The next item comes."""

    plan: int
    standing: Standing
    depth: int


@dataclass(frozen=True, slots=True)
class ArrayNext:
    """After an item, whose own value `standing` may not know yet: a comma or the closing bracket."""

    plan: int
    standing: Standing
    depth: int


@dataclass(frozen=True, slots=True)
class Close:
    """Only the closing bracket `byte` comes next (indented layout)."""

    byte: int
    depth: int


@dataclass(frozen=True, slots=True)
class Either:
    """Behind a value that was read in several ways: one of the local states with these indices, ascending."""

    places: tuple[int, ...]


Local = Done | Value | ObjectOpen | ObjectKey | ObjectColon | ObjectNext | ArrayOpen | ArrayItem | ArrayNext | Close | Either
