"""Places inside one frame, without what lies below it on the stack: what may come next in a value, an object or an array."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.grammar.shapes import ArrayShape, NodeKey

Keys = frozenset[str]
NO_KEYS: Keys = frozenset()


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
    """A key comes next, or is being read; the properties before `position` are past.

    `seen` are the keys of classes that are there already; `tag` is the class of the key that is being read, else 0.
    """

    plan: int
    position: int
    depth: int
    seen: Keys = NO_KEYS
    tag: int = 0


@dataclass(frozen=True, slots=True)
class ObjectColon:
    """The colon after the key `tag` comes next."""

    plan: int
    tag: int
    depth: int
    seen: Keys = NO_KEYS


@dataclass(frozen=True, slots=True)
class ObjectNext:
    """After a member: a comma or the closing brace."""

    plan: int
    position: int
    depth: int
    seen: Keys = NO_KEYS


@dataclass(frozen=True, slots=True)
class ArrayOpen:
    """Just after the opening bracket."""

    shape: ArrayShape
    depth: int


@dataclass(frozen=True, slots=True)
class ArrayItem:
    """The item at `index` comes next."""

    shape: ArrayShape
    index: int
    depth: int


@dataclass(frozen=True, slots=True)
class ArrayNext:
    """After `index` items: a comma or the closing bracket."""

    shape: ArrayShape
    index: int
    depth: int


@dataclass(frozen=True, slots=True)
class Close:
    """Only the closing bracket `byte` comes next (indented layout)."""

    byte: int
    depth: int


Local = Done | Value | ObjectOpen | ObjectKey | ObjectColon | ObjectNext | ArrayOpen | ArrayItem | ArrayNext | Close
