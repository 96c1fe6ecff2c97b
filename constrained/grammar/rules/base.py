"""What every rule has: the context that it may ask, and readers of a keyword's value that name the place of a fault.

A rule turns one subschema into a list of `Arm`s, of which a value must meet at least one; a complement gives the arms of
all other values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Protocol

from constrained.errors import SchemaError, UnsupportedKeywordError
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import Arm, NodeKey
from constrained.grammar.string_sets import UNBOUNDED


class Context(Protocol):
    """What a rule may ask of the compile that it is part of."""

    asserts_formats: bool

    def child(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> NodeKey:
        """The obligation to meet the subschema at `path` below `sub`, or not to."""

    def constant(self, sub: Subschema, keyword: str, value: Any, meets: bool = True) -> NodeKey:
        """The obligation to equal `value`, or not to."""

    def negated(self, key: NodeKey) -> NodeKey:
        """The obligation not to meet what `key`, one obligation or none, asks."""

    def arms_of(self, sub: Subschema, *path: str | int, contents: Any, meets: bool = True) -> list[Arm]:
        """The arms of a subschema that applies to the same value, or of its complement."""

    def arms_of_reference(self, sub: Subschema, ref: Any, meets: bool = True) -> list[Arm]:
        """The arms of the subschema that a reference leads to, or of its complement."""

    def product(self, sub: Subschema, parts: list[list[Arm]]) -> list[Arm]:
        """The arms that meet one arm of every part."""

    def are_disjoint(self, some: list[Arm], others: list[Arm]) -> bool:
        """Whether it is plain that no value meets both."""


Rule = Callable[[Context, Subschema], list[Arm]]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword's rule, the rule of its complement, and the drafts that know it (first and last)."""

    rule: Rule
    complement: Rule
    since: int = 4
    until: int = 9999


def negation_refusal(sub: Subschema, keyword: str) -> UnsupportedKeywordError:
    """The error for an assertion whose complement is not built yet."""
    return UnsupportedKeywordError("this assertion cannot be negated yet (by not, oneOf or if)", sub.pointer, keyword)


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
