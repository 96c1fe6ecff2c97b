"""`Fold`: ops in, the document so far out. The protocol's reader, and the guard of its invariants.

Theory of operation. A document is written depth first, so at any moment the open paths form one chain from the root to the
innermost open value, and an op is legal only at its end: a container takes its next member or element, a string takes text,
and only the innermost value closes. That one rule gives the protocol's invariants 2 to 7; everything else is `FoldError`.
Every op costs what its own path and payload cost, whatever the document's size. Does no I/O and knows no schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from constrained.errors import FoldError
from constrained.stream.ops import Close, Field, Op, Open, Scalar, Set, Text, Variant
from constrained.stream.pointer import split, unescape
from constrained.stream.snapshot import Snapshot, Status, copy_json

_SURROGATE = re.compile("[\ud800-\udfff]")
_ROOT = ""
_SCALARS = frozenset({str, int, float, bool, type(None)})

Container = dict[str, Any] | list[Any]


@dataclass(slots=True)
class _Opened:
    """One open value: a container, or a string as the pieces that came so far and the place that they belong to."""

    path: str
    container: Container | None
    pieces: list[str]
    holder: Container
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

    # The ops as calls, for who has their fields and no objects.

    def announce(self, path: str) -> None:
        """`field`."""
        self._place(path)
        if self._next is not None:
            raise FoldError("a location is announced twice", path)
        self._next = path
        self._status[path] = "next"

    def decide(self, path: str) -> None:
        """`variant`."""
        if self._status.get(path) != "streaming":
            self._place(path)

    def open(self, path: str, kind: str) -> None:
        """`open`."""
        if kind not in ("object", "array", "string"):
            raise FoldError(f"an open value is an object, an array or a string, not {kind!r}", path)
        key = self._place(path)
        if kind == "string":
            self._chain.append(_Opened(path, None, [], self._attach(key, ""), key))
        else:
            container: Container = {} if kind == "object" else []
            self._attach(key, container)
            self._chain.append(_Opened(path, container, [], container))
        self._begin(path, "streaming")

    def text(self, path: str, add: str) -> None:
        """`text`."""
        opened = self._chain[-1] if self._chain else None
        if opened is None or opened.path != path:
            opened = self._innermost(path)
        if opened.container is not None:
            raise FoldError("text is for an open string; a container is open here", path)
        if not add.isascii() and _SURROGATE.search(add):
            raise FoldError("text must be whole Unicode scalar values; a surrogate was found", path)
        opened.pieces.append(add)

    def set(self, path: str, value: Scalar) -> None:
        """`set`."""
        if type(value) not in _SCALARS and not isinstance(value, str | int | float):
            raise FoldError(f"a scalar is set whole; {type(value).__name__} was found", path)
        key = self._place(path)
        self._attach(key, value)
        self._begin(path, "complete")

    def close(self, path: str) -> None:
        """`close`."""
        self._innermost(path)
        if self._next is not None:
            raise FoldError(f"{self._next!r} was announced and has no value", path)
        self._settle_text()
        self._chain.pop()
        self._status[path] = "complete"

    @property
    def _innermost_path(self) -> str | None:
        return self._chain[-1].path if self._chain else None

    def _innermost(self, path: str) -> _Opened:
        opened = self._chain[-1] if self._chain else None
        if opened is None or opened.path != path:
            raise FoldError(f"the innermost open path is {self._innermost_path!r}", path)
        return opened

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
        if type(container) is dict:
            key = token if "~" not in token else _unescaped(token, path)
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
        if not slash or not self._chain or parent != self._chain[-1].path:
            raise FoldError(f"the parent must be the innermost open path, {self._innermost_path!r}", path)
        return token

    def _attach(self, key: Any, value: Any) -> Container:
        """Puts `value` where `_place` said; returns what holds it now."""
        holder: Container | None = self._chain[-1].container if self._chain else self._document
        if type(holder) is dict:
            holder[key] = value
        else:
            assert type(holder) is list, "_place lets nothing begin inside a string"
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
            self._chain.append(_Opened(path, value, [], value))
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
    Field: lambda fold, op: fold.announce(op.path),
    Variant: lambda fold, op: fold.decide(op.path),
    Open: lambda fold, op: fold.open(op.path, op.type),
    Text: lambda fold, op: fold.text(op.path, op.add),
    Set: lambda fold, op: fold.set(op.path, op.value),
    Close: lambda fold, op: fold.close(op.path),
}
