"""`UNSET`: what a place reads as that has no value yet; neither None nor a default."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal


class Unset(Enum):
    """The type of `UNSET`: one value, false in a condition, the same object after copy and pickle.

    Test with `is UNSET`: `0`, `""`, `False`, `[]` and `None` are values, and are as false as it is.
    """

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"

    __str__ = __repr__


UNSET: Final = Unset.UNSET
