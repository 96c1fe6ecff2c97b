"""Tokens of a vocabulary that end an item of an array whose items must differ, and what they hold behind its comma.

Where items must differ, what follows a comma depends on the value before it, so tokens that hold a comma are asked one by one.
These need not be where the next item may be so many values that the array cannot hold all of them: what is begun can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.grammar import texts

_GAP = rb"[ \t\n\r]*"
_STRING, _NUMBER = rb'"(?:[^"\\]|\\.)*"', rb"-?[0-9][0-9.eE+-]*"
_WHOLE = rb"(?:" + _STRING + rb"|" + _NUMBER + rb"|true|false|null|\[" + _GAP + rb"\]|\{" + _GAP + rb"\})"
_BRACE, _COMMA = _GAP + rb"\}", _GAP + rb","
_BEGUN_STRING, _BEGUN_OBJECT = rb'"(?:[^"\\]|\\.)*\\?', rb"\{" + _GAP + rb'"?'


class Ending(Enum):
    """How a token ends an item, by where it begins: inside a string (outside an escape), elsewhere in the item, before it."""

    IN_STRING = rb'(?:[^"\\]|\\.)*"'
    ELSEWHERE = rb'[^"\[\]{},]*'
    BEFORE = _GAP + _WHOLE


class Opening(Enum):
    """What a token may begin behind the comma."""

    NOTHING = b""
    QUOTE = rb'"?'
    STRING = rb"(?:" + _BEGUN_STRING + rb")?"
    NUMBER = rb"-?"
    OBJECT = rb"(?:" + _BEGUN_OBJECT + rb")?"
    ANYTHING = rb"(?:" + _BEGUN_STRING + rb"|-|" + _BEGUN_OBJECT + rb"|\[" + _GAP + rb'"?)?'


class Further(NamedTuple):
    """What a token holds behind the comma of an item: items that are scalars or empty, in canonical spelling, and the rest."""

    items: tuple[str, ...]
    rest: bytes


class NextItems:
    """The tokens of a vocabulary, as booleans by token."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._token_bytes = token_bytes
        self._with_comma = [index for index, token in enumerate(token_bytes) if b"," in token]
        self._found: dict[tuple[Ending, bool, Opening], NDArray[np.bool_]] = {}
        self._further: dict[bytes, Further] = {}

    def of(self, opening: Opening, ending: Ending, *, in_object: bool = False) -> NDArray[np.bool_]:
        """Which tokens they are, of an item or of an object that is the item."""
        place = (ending, in_object, opening)
        found = self._found.get(place)
        if found is None:
            pattern = re.compile(ending.value + (_BRACE if in_object else b"") + _COMMA + _GAP + opening.value, re.DOTALL)
            found = np.zeros(len(self._token_bytes), np.bool_)
            found[[index for index in self._with_comma if pattern.fullmatch(self._token_bytes[index])]] = True
            self._found[place] = found
        return found

    def split(self, token: int, ending: Ending) -> tuple[bytes, bytes] | None:
        """What comes up to the comma that ends the item, and what behind it; None for a token that does not end it so."""
        data = self._token_bytes[token]
        found = _ENDINGS[ending].match(data)
        return None if found is None else (data[: found.end()], data[found.end() :])

    def further(self, tail: bytes) -> Further:
        """What there is behind a comma."""
        known = self._further.get(tail)
        if known is None:
            known = self._further[tail] = _read(tail)
        return known


_ENDINGS = {ending: re.compile(ending.value + _COMMA, re.DOTALL) for ending in Ending}
_ITEM = re.compile(_WHOLE + rb"(?:" + _COMMA + _GAP + rb"|(?<![0-9.eE+-])" + _GAP + rb"\Z)", re.DOTALL)  # a number may go on


def _read(tail: bytes) -> Further:
    at, items = len(tail) - len(tail.lstrip(b" \t\n\r")), []
    try:
        while found := _ITEM.match(tail, at):
            items.append(texts.canonical(texts.parsed(found[0].decode().rstrip(" \t\n\r,"))))
            at = found.end()
    except ValueError:  # no UTF-8, or what only looks like a number
        pass
    return Further(tuple(items), tail[at:])
