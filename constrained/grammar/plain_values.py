"""What checks of plain subschemas have in common: the way to a subschema, names of types, kinds of scalars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrained.grammar.schema import Subschema

# A subschema on the way down: its contents, the one that it was come from, and the path from there; where the way begins,
# None and the subschema itself.
Step = tuple[Any, "Step | None", "tuple[str | int, ...] | Subschema"]

LARGEST = 10**15  # whole numbers up to here have a plain numeral

KINDS: dict[str, str] = {
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "string",
    "array": "array",
    "object": "object",
}
_NAMES = {str}


def are_names(values: list[Any]) -> bool:
    """Whether all values are strings."""
    return not values or set(map(type, values)) == _NAMES


def can_be_said(texts: Iterable[str]) -> bool:
    """Whether it is plain that JSON can say all these: that no surrogate is alone."""
    text = "".join(texts)
    return text.isascii() or text.isprintable()


def kind_of(value: Any) -> str | None:
    """The kind of a scalar; None for any other value, and for what may have no spelling."""
    if type(value) is str:
        return "string" if can_be_said((value,)) else None
    if type(value) is int:
        return "number" if -LARGEST < value < LARGEST else None
    return "null" if value is None else "boolean" if type(value) is bool else None
