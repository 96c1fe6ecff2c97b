"""`Snapshot`: what a fold holds at one moment, apart from it; and the copy that makes it so.

Nothing here recurses: a document may nest deeper than the interpreter's stack.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from constrained.stream.numbers import finite

Status = Literal["next", "streaming", "complete"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The value so far (None before it begins), the open paths from the root inwards, and each path's status."""

    value: Any = None
    open: tuple[str, ...] = ()
    status: Mapping[str, Status] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """The fields of the protocol's `snapshot` event; numbers beyond the doubles are held within them."""
        return {"value": copy_json(self.value, wire=True), "open": list(self.open), "status": dict(self.status)}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Snapshot:
        """Reads those fields, and no others, from `wire`."""
        return cls(wire["value"], tuple(wire["open"]), dict(wire["status"]))

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        """Reads them from the JSON of the event's data."""
        return cls.from_wire(json.loads(text))


def copy_json(value: Any, *, wire: bool = False) -> Any:
    """A deep copy of a JSON value; with `wire`, numbers beyond the doubles become the nearest finite one."""
    holder: list[Any] = [value]
    pending: list[dict[Any, Any] | list[Any]] = [holder]
    while pending:
        container = pending.pop()
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(item, dict | list):
                container[key] = item.copy()
                pending.append(container[key])
            elif wire and isinstance(item, int | float) and not isinstance(item, bool):
                container[key] = finite(item)
    return holder[0]
