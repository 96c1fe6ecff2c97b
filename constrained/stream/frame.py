"""One open container of the parser: where it is, what the schema says of it, and which child is present."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrained.guide import Location
from constrained.stream.unions import child

# So many keys in a row that nothing foretold: what follows are free keys, and asking costs the number of keys so far.
_PATIENCE = 64


@dataclass(slots=True)
class Frame:
    """`token` is the key or index of the present child; `foreseen` the key that was announced and is not yet read."""

    path: str
    is_object: bool
    location: Location | None
    token: str | int = -1
    keys: dict[str, None] = field(default_factory=dict)
    foreseen: str | None = None
    unforeseen: int = 0

    @property
    def kind(self) -> str:
        return "object" if self.is_object else "array"

    def next_item(self) -> None:
        """Moves to the next element."""
        assert isinstance(self.token, int), "an array counts its elements"
        self.token += 1

    def add_key(self, key: str) -> bool:
        """Moves to the member `key`; False where there is one already."""
        if key in self.keys:
            return False
        self.keys[key] = None
        self.token = key
        self.unforeseen = 0 if self.foreseen is not None else self.unforeseen + 1
        self.foreseen = None
        return True

    def foresee(self) -> bool:
        """Moves to the next member before its key is read, where the schema leaves one and knows its location."""
        if not self.is_object or self.location is None or self.unforeseen >= _PATIENCE:
            return False
        key = self.location.forced_key(tuple(self.keys))
        if key is None or child(self.location, key) is None:
            return False
        self.foreseen = self.token = key
        return True
