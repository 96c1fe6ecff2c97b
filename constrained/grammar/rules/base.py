"""What every rule has: the context that it may ask, and readers of a keyword's value that name the place of a fault.

A rule turns one subschema into a list of `Arm`s, of which a value must meet at least one; a complement gives the arms of
all other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Protocol

from constrained.errors import SchemaError
from constrained.grammar.evaluated import Tracking
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import Arm, NodeKey
from constrained.grammar.string_sets import UNBOUNDED


class Context(Protocol):
    """What a rule may ask of the compile that it is part of."""

    formats: FormatChoice
    tracking: Tracking

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""

    def children(self, sub: Subschema, keyword: str, members: Mapping[str, Any]) -> dict[str, NodeKey]:
        """The obligations to meet each of the subschemas that `keyword` gives by name."""

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, or not to."""

    def negated(self, key: NodeKey) -> NodeKey:
        """The obligation not to meet what `key`, one obligation or none, asks."""

    def either(self, sub: Subschema, keyword: str, keys: tuple[NodeKey, ...]) -> NodeKey:
        """The obligation to meet at least one of the nodes."""

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> list[Arm]:
        """The arms of a subschema that applies to the same value, or of its complement."""

    def arms_of_reference(self, sub: Subschema, keyword: str, meets: bool = True) -> list[Arm]:
        """The arms of the subschema that the reference `keyword` of `sub` leads to, or of its complement."""

    def product(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part."""

    def alternatives(self, sub: Subschema, arms: list[Arm]) -> list[Arm]:
        """The arms, if they are not too many."""

    def are_disjoint(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets both, of those that have the members that what stands beside requires."""

    def in_turn(self, parts: Sequence[tuple[int, Callable[[], list[Arm]]]]) -> list[list[Arm]]:
        """The arms of parts that a value meets together, found in the order of their numbers."""

    def minds_names(self, sub: Subschema, *path: str | int, contents: Any) -> bool:
        """Whether the arms of a subschema may be fewer where it is known which members every object has."""


Rule = Callable[[Context, Subschema], list[Arm]]
LastRule = Callable[[Context, Subschema, list[Arm]], list[Arm]]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword's rule, the rule of its complement, and the drafts that know it (first and last).

    `turn`: rules with a higher one go by what those before them require.
    """

    rule: Rule
    complement: Rule
    since: int = 4
    until: int = 9999
    turn: int = 0


@dataclass(frozen=True, slots=True)
class LastKeyword:
    """A keyword that goes by the arms of all others beside it: its rule and that of its complement."""

    rule: LastRule
    complement: LastRule
    since: int = 4
    until: int = 9999


def exact(value: Any, sub: Subschema, keyword: str) -> Fraction:
    """The exact value of a JSON number; floats stand for their shortest decimal."""
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if not is_number or not (value.is_finite() if isinstance(value, Decimal) else isfinite(value)):
        raise SchemaError(f"{value!r} is not a number", sub.pointer, keyword)
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)


def count(sub: Subschema, keyword: str, default: int) -> int:
    if keyword not in sub.contents:
        return default
    value = exact(sub.contents[keyword], sub, keyword)
    if value < 0 or value.denominator != 1:
        raise SchemaError(f"{sub.contents[keyword]!r} is not a non-negative whole number", sub.pointer, keyword)
    return min(int(value), UNBOUNDED)


def expect(sub: Subschema, keyword: str, kind: type | tuple[type, ...], what: str) -> Any:
    value = sub.contents[keyword]
    if not isinstance(value, kind):
        raise SchemaError(f"{value!r} is not {what}", sub.pointer, keyword)
    return value


def expect_text(text: str, sub: Subschema, keyword: str) -> str:
    """A string or a key that JSON texts can say."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise SchemaError(f"{text!r} holds a lone surrogate, which no valid JSON text can say", sub.pointer, keyword)
    return text
