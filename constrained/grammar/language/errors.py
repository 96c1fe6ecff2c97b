"""What can go wrong with a string language: the pattern's fault, or fuel that ran out.

They know no schema; whoever holds the JSON Pointer turns them into the errors of `constrained.errors`.
"""

from __future__ import annotations


class PatternError(Exception):
    """A pattern with bad syntax, or with a construct that is refused; `position` counts code points from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} (at position {position})")
        self.message = message
        self.position = position


class LanguageFuelError(Exception):
    """A question about a language needed more than `limit` states."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the string language needs more than {limit} states")
        self.limit = limit


class LanguageTimeError(Exception):
    """The time limit ran out."""
