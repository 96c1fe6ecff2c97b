"""`CompileOptions`: what a caller may choose about how a schema becomes a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from constrained.errors import OptionError

if TYPE_CHECKING:
    from referencing import Registry

Whitespace = Literal["flexible", "compact", "indented"]
PropertyOrder = Literal["schema", "any"]
Spelling = Literal["default", "permissive"]
Formats = Literal["assert", "annotate"]
UnknownFormats = Literal["annotate", "refuse"]

MOST_WHITESPACE = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """Fuel of one compile; running out is a `FuelError` that names the place.

    `timeout_s` is wall-clock time. `max_digits`: the longest run of digits that a number may have before its point, and behind
    it. `max_exponent_digits`: the longest run in its exponent, leading zeros included. So no number runs away; a schema that
    only longer numbers meet is one that nothing meets.

    `max_states` and `max_memory_bytes` bound what a grammar remembers of its generations: past either, new matchers begin
    with nothing remembered, while those that run go on as they are, and free what they share when the last of them goes.
    """

    max_nodes: int = 50_000
    max_alternatives: int = 1_000
    max_schema_depth: int = 500
    max_key_classes: int = 64
    max_states: int = 200_000
    max_memory_bytes: int = 256 << 20
    timeout_s: float = 10.0
    max_digits: int = 64
    max_exponent_digits: int = 3

    def __post_init__(self) -> None:
        for name, most in (("max_digits", 1000), ("max_exponent_digits", 6)):
            if not 1 <= getattr(self, name) <= most:
                raise OptionError(f"{getattr(self, name)!r} is not between 1 and {most}", f"limits.{name}")


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Choices of one compile; every value that is not built yet is refused by name (`OptionError`).

    `whitespace`: "flexible" allows at each gap at most one newline (LF or CR LF) and some blanks, in the permissive
    spelling any whitespace; "compact" allows none; "indented" is the layout of `json.dumps(value, indent=2)`.
    `max_whitespace`: how many blanks a gap may hold (None: 32), in the permissive spelling how many characters (None: 256).
    `property_order`: "schema" is the declared order, then additional keys.
    `spelling`: "default" takes the spellings that JSON encoders produce; "permissive" every one that RFC 8259 allows.
    `formats`: "annotate" asserts no format. `custom_formats`: further formats, or others for known names: a regular expression
    (ECMA-262) for the whole string. `unknown_formats`: "refuse" takes no schema with a name that neither knows.
    `nullable`: OpenAPI 3.0's `nullable: true` beside a `type` takes null too.
    `registry`: documents that `$ref` may reach; nothing is ever fetched.
    """

    whitespace: Whitespace = "flexible"
    max_whitespace: int | None = None
    property_order: PropertyOrder = "schema"
    spelling: Spelling = "default"
    formats: Formats = "assert"
    custom_formats: Mapping[str, str] = field(default_factory=dict)
    unknown_formats: UnknownFormats = "annotate"
    nullable: bool = False
    registry: Registry[Any] | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        known = {
            "whitespace": Whitespace,
            "property_order": PropertyOrder,
            "spelling": Spelling,
            "formats": Formats,
            "unknown_formats": UnknownFormats,
        }
        for name, choices in known.items():
            value = getattr(self, name)
            if value not in get_args(choices):
                raise OptionError(f"{value!r} is not one of {', '.join(map(repr, get_args(choices)))}", name)
        if self.max_whitespace is not None and not 0 <= self.max_whitespace <= MOST_WHITESPACE:
            raise OptionError(f"{self.max_whitespace} is not between 0 and {MOST_WHITESPACE}", "max_whitespace")
