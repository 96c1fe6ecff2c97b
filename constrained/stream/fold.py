"""`Fold`: ops in, the document so far out. The protocol's reader, and the guard of its invariants.

Theory of operation. A document is written depth first, so at any moment the open paths form one chain from the root to the
innermost open value, and an op is legal only at its end: a container takes its next member or element, a string takes text,
and only the innermost value closes. That one rule gives the protocol's invariants 2 to 7; everything else is `FoldError`.
Every op costs what its own path and payload cost, whatever the document's size. Does no I/O and knows no schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from constrained.errors import FoldError
from constrained.stream.ops import Close, Field, Op, Open, Set, Text, Variant
from constrained.stream.pointer import split, unescape
from constrained.stream.snapshot import Snapshot, Status, copy_json

_SURROGATE = re.compile("[\ud800-\udfff]")
_ROOT = ""

Container = dict[str, Any] | list[Any]


@dataclass(slots=True)
class _Opened:
    """One open value: a container, or a string as the pieces that came so far and the place that they belong to."""

    path: str
    container: Container | None = None
    pieces: list[str] = field(default_factory=list)
    holder: Container = field(default_factory=list)
    key: Any = None


class Fold:
    """Applies ops one by one. One per document; not thread-safe."""

    def __init__(self) -> None:
        self._document: list[Any] = []
        self._chain: list[_Opened] = []
        self._status: dict[str, Status] = {}
        self._next: str | None = None

    @classmethod
    def restore(cls, snapshot: Snapshot) -> Fold:
        """The fold that goes on from `snapshot`, which it copies; `FoldError` where value and open paths disagree."""
        fold = cls()
        fold._status = dict(snapshot.status)
        fold._next = next((path for path, status in snapshot.status.items() if status == "next"), None)
        if _ROOT in snapshot.status and fold._next != _ROOT:
            fold._document.append(copy_json(snapshot.value))
        for path in snapshot.open:
            fold._reopen(path)
        return fold

    @property
    def started(self) -> bool:
        """Whether the root value has begun."""
        return bool(self._document)

    @property
    def is_complete(self) -> bool:
        """Whether the root value is final."""
        return self.started and not self._chain

    @property
    def value(self) -> Any:
        """The document so far, None before it begins. It is live: later ops change it (`snapshot()` gives a copy)."""
        self._settle_text()
        return self._document[0] if self._document else None

    @property
    def open_paths(self) -> tuple[str, ...]:
        """The paths that are open, from the root inwards."""
        return tuple(opened.path for opened in self._chain)

    @property
    def status(self) -> Mapping[str, Status]:
        """Every path met so far and where it stands; a live, read-only view."""
        return MappingProxyType(self._status)

    def snapshot(self) -> Snapshot:
        """What the fold holds now, as a copy. Costs what the document costs."""
        return Snapshot(copy_json(self.value), self.open_paths, dict(self._status))

    def at(self, path: str) -> Any:
        """The value at `path` so far (live); `KeyError` where there is none yet."""
        try:
            return self._walk(path)
        except (IndexError, KeyError, TypeError, ValueError):
            raise KeyError(path) from None

    def apply(self, op: Op) -> None:
        """Takes the next op; `FoldError` where the protocol does not allow it here, and then nothing has changed."""
        _APPLY[type(op)](self, op)

    def _announce(self, op: Field) -> None:
        self._place(op.path)
        if self._next is not None:
            raise FoldError("a location is announced twice", op.path)
        self._next = op.path
        self._status[op.path] = "next"

    def _decide(self, op: Variant) -> None:
        if self._status.get(op.path) != "streaming":
            self._place(op.path)

    def _open(self, op: Open) -> None:
        if op.type not in ("object", "array", "string"):
            raise FoldError(f"an open value is an object, an array or a string, not {op.type!r}", op.path)
        key = self._place(op.path)
        opened = _Opened(op.path)
        if op.type == "string":
            opened.holder, opened.key = self._attach(key, ""), key
        else:
            opened.container = {} if op.type == "object" else []
            self._attach(key, opened.container)
        self._chain.append(opened)
        self._begin(op.path, "streaming")

    def _text(self, op: Text) -> None:
        opened = self._innermost(op.path)
        if opened.container is not None:
            raise FoldError("text is for an open string; a container is open here", op.path)
        if not op.add.isascii() and _SURROGATE.search(op.add):
            raise FoldError("text must be whole Unicode scalar values; a surrogate was found", op.path)
        opened.pieces.append(op.add)

    def _set(self, op: Set) -> None:
        if op.value is not None and not isinstance(op.value, str | int | float):
            raise FoldError(f"a scalar is set whole; {type(op.value).__name__} was found", op.path)
        key = self._place(op.path)
        self._attach(key, op.value)
        self._begin(op.path, "complete")

    def _close(self, op: Close) -> None:
        self._innermost(op.path)
        if self._next is not None:
            raise FoldError(f"{self._next!r} was announced and has no value", op.path)
        self._settle_text()
        self._chain.pop()
        self._status[op.path] = "complete"

    @property
    def _innermost_path(self) -> str | None:
        return self._chain[-1].path if self._chain else None

    def _innermost(self, path: str) -> _Opened:
        if self._innermost_path != path:
            raise FoldError(f"the innermost open path is {self._innermost_path!r}", path)
        return self._chain[-1]

    def _place(self, path: str) -> str | int:
        """The key or index under which `path` is the next value of the innermost open container."""
        if self._next is not None and self._next != path:
            raise FoldError(f"{self._next!r} was announced as the next location", path)
        if path == _ROOT:
            if self.started:
                raise FoldError("the root has begun already", path)
            return 0
        token = self._token(path)
        container = self._chain[-1].container
        if isinstance(container, dict):
            key = _unescaped(token, path)
            if key in container:
                raise FoldError("this member has begun already", path)
            return key
        if container is None or token != str(len(container)):
            expected = "a string is open" if container is None else f"the next element is {len(container)}"
            raise FoldError(f"no value may begin here: {expected}", path)
        return len(container)

    def _token(self, path: str) -> str:
        """The last token of `path`, whose parent must be the innermost open path."""
        parent, slash, token = path.rpartition("/")
        if not slash or parent != self._innermost_path:
            raise FoldError(f"the parent must be the innermost open path, {self._innermost_path!r}", path)
        return token

    def _attach(self, key: Any, value: Any) -> Container:
        """Puts `value` where `_place` said; returns what holds it now."""
        holder: Container | None = self._chain[-1].container if self._chain else self._document
        if isinstance(holder, dict):
            holder[key] = value
        else:
            assert holder is not None, "_place lets nothing begin inside a string"
            holder.append(value)
        return holder

    def _begin(self, path: str, status: Status) -> None:
        self._next = None
        self._status[path] = status

    def _settle_text(self) -> None:
        """Joins the innermost string's pieces, so that the document shows them."""
        opened = self._chain[-1] if self._chain else None
        if opened is not None and opened.container is None and opened.pieces:
            opened.pieces = ["".join(opened.pieces)]
            opened.holder[opened.key] = opened.pieces[0]

    def _walk(self, path: str) -> Any:
        self._settle_text()
        value: Any = self._document[0]
        for token in split(path):
            value = value[int(token)] if isinstance(value, list) else value[token]
        return value

    def _reopen(self, path: str) -> None:
        """Opens the last value of the innermost container again, which a snapshot holds at `path`."""
        holder = self._chain[-1].container if self._chain else self._document
        token = self._token(path) if path else "0"
        key: Any = token if isinstance(holder, list) else _unescaped(token, path)
        if not holder or key != (str(len(holder) - 1) if isinstance(holder, list) else next(reversed(holder))):
            raise FoldError("a snapshot's open path does not lead to the last value written", path)
        key = int(key) if isinstance(holder, list) else key
        value = holder[key]
        if isinstance(value, dict | list):
            self._chain.append(_Opened(path, value))
        elif isinstance(value, str):
            self._chain.append(_Opened(path, None, [value] if value else [], holder, key))
        else:
            raise FoldError(f"a snapshot's open path holds a scalar, {value!r}", path)


def _unescaped(token: str, path: str) -> str:
    try:
        return unescape(token)
    except ValueError as error:
        raise FoldError(str(error), path) from error


_APPLY: dict[type[Any], Callable[[Fold, Any], None]] = {
    Field: Fold._announce,
    Variant: Fold._decide,
    Open: Fold._open,
    Text: Fold._text,
    Set: Fold._set,
    Close: Fold._close,
}
