"""What a format is: an exact set of strings, written as patterns and where they come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings that match every pattern of `all_of` and none of `none_of`; each pattern is for the whole string."""

    all_of: tuple[str, ...]
    none_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """The strings of a format, by the same rule as `Strings`; `source` is the section that defines them.

    They are valid for certain. Where `wider` is None, all others are invalid. Otherwise all outside of `wider` are invalid,
    and those between the two sets may be either, for the reason `why`: to stay right, assert the format by its own strings,
    and negate it by the complement of `wider`.
    """

    name: str
    source: str
    all_of: tuple[str, ...]
    none_of: tuple[str, ...] = ()
    wider: Strings | None = None
    why: str = ""
