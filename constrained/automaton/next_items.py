"""Tokens that end an item of an array and at most begin the next one.

Where items must differ, what follows a comma depends on the value before it, so tokens that hold a comma are asked one by one.
These need not be where the next item may be so many values that the array cannot hold all of them: what is begun can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

_GAP = rb"[ \t\n\r]*"
# How an item ends, seen from inside a string (outside an escape) and from elsewhere; one that is an object ends with a brace.
_IN_STRING, _ELSEWHERE = rb'(?:[^"\\]|\\.)*"', rb'[^"\[\]{},]*'
_BRACE, _COMMA = _GAP + rb"\}", _GAP + rb"," + _GAP


class Opening(Enum):
    """What a token may begin behind the comma."""

    NOTHING = b""
    STRING = rb'(?:"(?:[^"\\]|\\.)*\\?)?'
    OBJECT = rb"(?:\{" + _GAP + rb'"?)?'


class NextItems:
    """The tokens of a vocabulary, as booleans by token."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._token_bytes = token_bytes
        self._with_comma = [index for index, token in enumerate(token_bytes) if b"," in token]
        self._found: dict[tuple[bool, bool, Opening], NDArray[np.bool_]] = {}

    def of(self, opening: Opening, *, in_string: bool, in_object: bool = False) -> NDArray[np.bool_]:
        """Which tokens they are, from inside a string or from elsewhere, of an item or of an object that is the item."""
        place = (in_string, in_object, opening)
        found = self._found.get(place)
        if found is None:
            ending = (_IN_STRING if in_string else _ELSEWHERE) + (_BRACE if in_object else b"")
            pattern = re.compile(ending + _COMMA + opening.value, re.DOTALL)
            found = np.zeros(len(self._token_bytes), np.bool_)
            found[[index for index in self._with_comma if pattern.fullmatch(self._token_bytes[index])]] = True
            self._found[place] = found
        return found
