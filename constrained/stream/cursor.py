"""`Cursor`: where in the document the parser stands, what the schema says of that place, and the ops that follow from both.

Knows no bytes: it is told that a value of some types begins, that a key or a scalar is known, that a container closes. What
the schema says comes through the `Location` protocol: types and enums for `field`, forced keys for an early `field`, and the
arms of unions for `variant`. Without a location these are left out. A document that its grammar could not have let through is
`InternalError`.
"""

from __future__ import annotations

from constrained.errors import InternalError
from constrained.guide import Location
from constrained.stream.enums import EnumCache, EnumIndex
from constrained.stream.fold import Fold
from constrained.stream.frame import Frame
from constrained.stream.ops import Close, Field, Op, Open, Scalar, Set, Text, Variant
from constrained.stream.pointer import join
from constrained.stream.unions import Fits, arms_of, child, child_fits, has_type, holds, narrow


class Cursor:
    """Moves depth first through one document; every op goes through its own fold, which guards the protocol."""

    def __init__(self, root: Location | None) -> None:
        self.fold = Fold()
        self._ops: list[Op] = []
        self._frames: list[Frame] = []
        self._enums = EnumCache()
        self._path = ""
        self._location = root
        self._kept: list[str] | None = None  # the open string, where a union wants to know it whole

    @property
    def frame(self) -> Frame | None:
        """The innermost open container."""
        return self._frames[-1] if self._frames else None

    @property
    def path(self) -> str:
        """Where the present value is."""
        return self._path

    @property
    def enum(self) -> EnumIndex | None:
        """What the present value may be, where that is finitely many scalars."""
        return self._enums.of(self._location)

    def drain(self) -> list[Op]:
        """The ops since the last drain."""
        ops, self._ops = self._ops, []
        return ops

    def begin(self, types: tuple[str, ...]) -> None:
        """The present value begins, and may be of `types`."""
        self._narrow(has_type(types))

    def open_container(self, *, is_object: bool) -> None:
        self._emit(Open(self._path, "object" if is_object else "array"))
        self._frames.append(Frame(self._path, is_object, self._location))
        self.foresee()

    def close_container(self) -> None:
        self._emit(Close(self._frames.pop().path))
        self.foresee()

    def next_item(self) -> None:
        """The innermost array has one more element."""
        frame = self._frames[-1]
        frame.next_item()
        self._enter_child(frame)

    def next_member(self, key: str) -> None:
        """The innermost object has one more member."""
        frame, foreseen = self._frames[-1], self._frames[-1].foreseen
        if not frame.add_key(key):
            raise InternalError(f"duplicate key {key!r} at {frame.path!r}")
        if foreseen is not None and foreseen != key:
            raise InternalError(f"key {key!r} at {frame.path!r}, where the grammar foretold {foreseen!r}")
        self._narrow_container(lambda location: True)
        if foreseen is None:
            self._enter_child(frame)

    def foresee(self) -> None:
        """Announces the next member of the innermost object, where only one can follow."""
        if self._frames and self._frames[-1].foresee():
            self._enter_child(self._frames[-1])

    def set(self, value: Scalar, raw: str | None) -> None:
        """The present value is this scalar."""
        self._narrow(holds(value, self._enums))
        self._emit(Set(self._path, value, raw))

    def open_string(self) -> None:
        self._emit(Open(self._path, "string"))
        around = self._frames[-1].location if self._frames else None
        self._kept = [] if arms_of(self._location) or arms_of(around) else None

    def text(self, add: str) -> None:
        self._ops += self.text_alone(add)

    def text_alone(self, add: str) -> list[Op]:
        """As `text` and then `drain`, where nothing waits: most tokens are no more than that."""
        if self._kept is not None:
            self._kept.append(add)
        self.fold.text(self._path, add)
        return [Text(self._path, add)]

    def close_string(self) -> None:
        if self._kept is not None:
            self._narrow(holds("".join(self._kept), self._enums))
            self._kept = None
        self._emit(Close(self._path))

    def _emit(self, op: Op) -> None:
        self.fold.apply(op)
        self._ops.append(op)

    def _enter_child(self, frame: Frame) -> None:
        """Moves to the frame's present child; a `field` op where the schema knows the place."""
        self._path = join(frame.path, frame.token)
        self._location = where = child(frame.location, frame.token)
        if where is not None:
            self._emit(Field(self._path, tuple(where.types), where.schema_pointer, where.enum))

    def _narrow(self, fits: Fits) -> None:
        """Drops the arms that do not fit from the unions of the present value and of the container around it."""
        self._narrow_container(fits)
        if self._location is not None:
            self._location, decided = narrow(self._location, fits)
            self._decide(self._path, decided)

    def _narrow_container(self, fits: Fits) -> None:
        """Drops the arms of the innermost container whose present child does not fit."""
        frame = self.frame
        if frame is None or frame.location is None or not arms_of(frame.location):
            return
        narrowed, decided = narrow(frame.location, child_fits(frame.token, fits))
        self._decide(frame.path, decided)
        if narrowed is not frame.location:
            frame.location = narrowed
            self._location = child(narrowed, frame.token)

    def _decide(self, path: str, pointers: list[str]) -> None:
        for pointer in pointers:
            self._emit(Variant(path, pointer))
