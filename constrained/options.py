"""`CompileOptions`: what a caller may choose about how a schema becomes a grammar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from constrained.errors import OptionError

if TYPE_CHECKING:
    from referencing import Registry

Whitespace = Literal["flexible", "compact", "indented"]
PropertyOrder = Literal["schema", "any"]
Spelling = Literal["default", "permissive"]
Formats = Literal["assert", "annotate"]

MOST_WHITESPACE = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """Fuel of one compile; running out is a `FuelError` that names the place."""

    max_nodes: int = 50_000
    max_alternatives: int = 1_000
    max_schema_depth: int = 500
    max_key_classes: int = 64


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Choices of one compile; every value that is not built yet is refused by name (`OptionError`).

    `whitespace`: "flexible" allows at each gap at most one newline (LF or CR LF) and some blanks, in the permissive
    spelling any whitespace; "compact" allows none; "indented" is the layout of `json.dumps(value, indent=2)`.
    `max_whitespace`: how many blanks a gap may hold (None: 32), in the permissive spelling how many characters (None: 256).
    `property_order`: "schema" is the declared order, then additional keys.
    `spelling`: "default" takes the spellings that JSON encoders produce; "permissive" every one that RFC 8259 allows.
    `registry`: documents that `$ref` may reach; nothing is ever fetched.
    """

    whitespace: Whitespace = "flexible"
    max_whitespace: int | None = None
    property_order: PropertyOrder = "schema"
    spelling: Spelling = "default"
    formats: Formats = "assert"
    registry: Registry[Any] | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        known = {"whitespace": Whitespace, "property_order": PropertyOrder, "spelling": Spelling, "formats": Formats}
        for name, choices in known.items():
            value = getattr(self, name)
            if value not in get_args(choices):
                raise OptionError(f"{value!r} is not one of {', '.join(map(repr, get_args(choices)))}", name)
        if self.max_whitespace is not None and not 0 <= self.max_whitespace <= MOST_WHITESPACE:
            raise OptionError(f"{self.max_whitespace} is not between 0 and {MOST_WHITESPACE}", "max_whitespace")
