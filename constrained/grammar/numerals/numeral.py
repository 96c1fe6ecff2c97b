"""`Numeral`: a place inside a JSON number that is read byte by byte."""

from __future__ import annotations

from abc import ABC, abstractmethod

DIGITS = b"0123456789"


class Numeral(ABC):
    """Hashable, and equal to places that the same can follow, as far as that was seen."""

    __slots__ = ()

    @property
    @abstractmethod
    def accepts(self) -> bool:
        """Whether the number may end here."""

    @property
    @abstractmethod
    def steps(self) -> dict[int, Numeral]:
        """The bytes that lead on from here, each to a place from which the number can be ended."""

    @property
    @abstractmethod
    def closing(self) -> bytes | None:
        """The shortest way to end the number from here, the first in byte order among those; None where there is none.

        It has no sign, letter or zero that it can do without.
        """


def by_length(text: bytes) -> tuple[int, bytes]:
    """Sorts shorter texts first, those of one length by their bytes."""
    return len(text), text
