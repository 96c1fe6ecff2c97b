"""The terms of string languages: immutable, interned, each with what is known of it without exploring.

A term denotes a set of Unicode strings. Terms are made by `normal` and `boolean` only, which keep them in normal form;
here is their shape, not their meaning under a step. A *contextual* term also depends on what was read before it (see
`context`): then `nullable` is unknown and False, and `min_len` and `max_len` hold whatever was read.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, TypeVar
from weakref import ReferenceType, WeakValueDictionary

from constrained.grammar.language.charsets import Ranges

Moves = tuple[tuple[int, int, "Term"], ...]


class Run(NamedTuple):
    """Any of `characters`, up to `max_len` of them, begin a string of a term; `missing` more, where that is seen, end one then.

    Of an exact term `missing` is not looked for: see `outlook.most_missing`. A run is `tight` if one more of its characters
    never leads on.
    """

    characters: Ranges
    max_len: float
    missing: float
    tight: bool = False


_L = TypeVar("_L")
_lock = threading.RLock()


class Term:
    """Base of all terms; two terms with the same normal form are one object.

    `nullable`: "" is in it. `exact`: not empty, and `min_len` and `max_len` are attained; else they are bounds.
    The other slots are memos of `derive`, `explore` and `outlook`.
    """

    __slots__ = (
        "__weakref__",
        "characters",
        "contextual",
        "exact",
        "first",
        "is_empty",
        "language",
        "max_len",
        "min_len",
        "most_missing",
        "moves",
        "nullable",
        "run",
        "shifts",
        "shortest_len",
        "uid",
    )

    uid: int
    nullable: bool
    contextual: bool
    exact: bool
    min_len: float
    max_len: float

    def __init__(self, *, nullable: bool, min_len: float, max_len: float, exact: bool = True, contextual: bool = False) -> None:
        self.nullable = nullable and not contextual
        self.contextual = contextual
        self.exact = exact and not contextual
        self.min_len = min_len
        self.max_len = max_len
        self.moves: Moves | None = None
        self.shifts: Moves | None = None
        self.is_empty: bool | None = None
        self.shortest_len: int | None = None
        self.run: Run | None = None
        self.first: Ranges | None = None
        self.characters: Ranges | None = None
        self.most_missing: int | None = None
        self.language: Any = None

    def claim(self, language: _L) -> _L:
        """`language`, or the one that another thread set before."""
        with _lock:
            if self.language is None:
                self.language = language
            owner: _L = self.language
        return owner


class Chars(Term):
    """One character out of two or more."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Ranges) -> None:
        super().__init__(nullable=False, min_len=1, max_len=1)
        self.ranges = ranges


class Values(Term):
    """Finitely many strings, sorted; no string at all is the empty language."""

    __slots__ = ("strings",)

    def __init__(self, strings: tuple[str, ...]) -> None:
        super().__init__(
            nullable="" in strings[:1],
            min_len=min(map(len, strings), default=inf),
            max_len=max(map(len, strings), default=0),
            exact=bool(strings),
        )
        self.strings = strings


class Concat(Term):
    """`head`, which is no Concat and not contextual, then `tail`."""

    __slots__ = ("head", "tail")

    def __init__(self, head: Term, tail: Term) -> None:
        super().__init__(
            nullable=head.nullable and tail.nullable,
            min_len=head.min_len + tail.min_len,
            max_len=head.max_len + tail.max_len,
            exact=head.exact and tail.exact,
            contextual=tail.contextual,
        )
        self.head = head
        self.tail = tail


class Repeat(Term):
    """`body` from `low` to `high` times; `low` is 0 where `body` is nullable."""

    __slots__ = ("body", "high", "low")

    def __init__(self, body: Term, low: int, high: float) -> None:
        super().__init__(
            nullable=low == 0,
            min_len=low and low * body.min_len,
            max_len=body.max_len and high * body.max_len,
            exact=body.exact,
        )
        self.body = body
        self.low = low
        self.high = high


class Or(Term):
    """The union of two or more terms, sorted by uid."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[Term, ...]) -> None:
        super().__init__(
            nullable=any(member.nullable for member in members),
            min_len=min(member.min_len for member in members),
            max_len=max(member.max_len for member in members),
            exact=all(member.exact for member in members),
            contextual=any(member.contextual for member in members),
        )
        self.members = members


class And(Term):
    """The intersection of two or more terms, sorted by uid."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[Term, ...]) -> None:
        super().__init__(
            nullable=all(member.nullable for member in members),
            min_len=max(member.min_len for member in members),
            max_len=min(member.max_len for member in members),
            exact=False,
            contextual=any(member.contextual for member in members),
        )
        self.members = members


class Not(Term):
    """The complement of a term that is neither a union nor an intersection."""

    __slots__ = ("body",)

    def __init__(self, body: Term) -> None:
        nullable = not body.nullable
        super().__init__(
            nullable=nullable,
            min_len=0 if nullable or body.contextual else 1,
            max_len=inf,
            exact=False,
            contextual=body.contextual,
        )
        self.body = body


_T = TypeVar("_T", bound=Term)
_table: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
# The weak references that the table holds: to ask them takes half the time of asking the table.
_terms: dict[tuple[Any, ...], ReferenceType[Any]] = vars(_table)["data"]
_uids = itertools.count()


def interned(kind: Callable[..., _T], key: tuple[Any, ...], *fields: Any) -> _T:
    """The one term of this kind and key, made of `fields` where it is new.

    Keys name other terms by their uid, never by reference: the table must not keep terms alive.
    """
    full_key = (kind, *key)
    known = _terms.get(full_key)
    found: _T | None = None if known is None else known()
    if found is None:
        with _lock:
            found = _table.get(full_key)
            if found is None:
                found = kind(*fields)
                found.uid = next(_uids)
                _table[full_key] = found
    return found
