"""Tokens that end an item of an array and at most begin the next one, a string, without ending that too.

Where items must differ, what follows a comma depends on the value before it, so tokens that hold a comma are asked one by one.
These need not be where the next item may be any string: however many values it must not equal, what is begun can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_REST = rb'[ \t\n\r]*,[ \t\n\r]*(?:"(?:[^"\\]|\\.)*\\?)?'
_IN_STRING = re.compile(rb'(?:[^"\\]|\\.)*"' + _REST, re.DOTALL)
_BEHIND = re.compile(rb'[^"\[\]{},]*' + _REST, re.DOTALL)


class NextItems:
    """The tokens of a vocabulary seen from inside a string (outside an escape) and from elsewhere, as booleans by token."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        with_comma = [index for index, token in enumerate(token_bytes) if b"," in token]
        self._in_string, self._behind = (
            _among(len(token_bytes), [index for index in with_comma if pattern.fullmatch(token_bytes[index])])
            for pattern in (_IN_STRING, _BEHIND)
        )

    def of(self, *, in_string: bool) -> NDArray[np.bool_]:
        """Which tokens they are."""
        return self._in_string if in_string else self._behind


def _among(size: int, indexes: list[int]) -> NDArray[np.bool_]:
    found = np.zeros(size, np.bool_)
    found[indexes] = True
    return found
