"""Leaves: plain subschemas that say nothing of members and items, shared by all grammars.

What is written there is all there is to them, wherever it stands: most strings, numbers and literals of most schemas are
written alike. Knows nothing of what is legal: whoever asks knows that a subschema is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.node import node_of
from constrained.grammar.plain_checks import asserts_only
from constrained.grammar.shapes import ANY, Arm

MAX_LEAVES = 4096

# `type` comes first: it alone may be a list.
_ORDER = (
    "type",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
)
_NAMES, _TYPE_ALONE = frozenset(_ORDER), ("type",)

Saying = tuple[object, ...]


class Leaf:
    """What a subschema may be: its arms, and the node that is their union, without a key. Hashed by identity."""

    __slots__ = ("arms", "node")

    def __init__(self, arms: list[Arm]) -> None:
        self.arms = arms
        self.node = node_of((), arms)


ANY_LEAF = Leaf([ANY])
_leaves: dict[Saying, Leaf] = {}
known = _leaves.get  # the leaf that says something, where there is one yet


@lru_cache(maxsize=4096)  # schemas use few sets of keywords
def asserted(names: tuple[str, ...], draft: int) -> tuple[str, ...] | None:
    """Those of the names in a subschema that assert something; None where one of them is about members, items or others."""
    return tuple(name for name in _ORDER if name in names) if asserts_only(names, draft, _NAMES) else None


def saying(contents: dict[str, Any], names: tuple[str, ...], draft: int, formats: FormatChoice) -> Saying:
    """What a plain subschema says of which `names` are asserted; equal wherever the same is said."""
    if names == _TYPE_ALONE:
        kind = contents["type"]
        return (draft, kind) if type(kind) is str else (draft, *kind)
    said = [contents[name] for name in names]
    if said and type(said[0]) is list:
        said[0] = tuple(said[0])
    if "format" in names:
        said[names.index("format")] = formats.find(contents["format"], draft)
    return (names, draft, *said)


def kept(said: Saying, arms: list[Arm]) -> Leaf:
    """The leaf that says this, which comes to these arms."""
    if len(_leaves) >= MAX_LEAVES:
        _leaves.clear()
    return _leaves.setdefault(said, Leaf(arms))
