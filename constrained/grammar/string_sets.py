"""Sets of strings that one alternative of a node allows, and their intersections."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, from_values, of_length

UNBOUNDED = 1 << 30


@dataclass(frozen=True, slots=True)
class StringSet:
    """Strings of `min_len` to `max_len` code points, none of `excluded`, all of `language` where there is one.

    One of `values` only where that is not None. Beside a language, lengths and exclusions are part of it; exclusions beside an
    upper length are always a language.
    """

    min_len: int = 0
    max_len: int = UNBOUNDED
    values: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    language: Language | None = None

    def __contains__(self, text: str) -> bool:
        fits = self.min_len <= len(text) <= self.max_len and text not in self.excluded
        inside = self.language is None or self.language.contains(text)
        return fits and inside and (self.values is None or text in self.values)

    def meet(self, other: StringSet) -> StringSet:
        """The intersection; finite sets are filtered at once."""
        if other is ALL_STRINGS or self is ALL_STRINGS:
            return self if other is ALL_STRINGS else other
        if self.values is not None or other.values is not None:
            candidates = self.values if self.values is not None else other.values
            assert candidates is not None
            return StringSet(values=frozenset(v for v in candidates if v in self and v in other))
        if self.language is not None or other.language is not None:
            return StringSet(language=self.as_language() & other.as_language())
        least, most = max(self.min_len, other.min_len), min(self.max_len, other.max_len)
        excluded = frozenset(v for v in self.excluded | other.excluded if least <= len(v) <= most)
        both = StringSet(least, most, excluded=excluded)
        # With no room left to differ, half a character may already lead to nothing: only an automaton sees that.
        return StringSet(language=both.as_language()) if excluded and most < UNBOUNDED else both

    def as_language(self) -> Language:
        """The same set as one language."""
        if self.values is not None:
            return from_values(self.values)
        language = self.language if self.language is not None else ANY_STRING
        if self.min_len > 0 or self.max_len < UNBOUNDED:
            language &= of_length(self.min_len, self.max_len if self.max_len < UNBOUNDED else None)
        return language & ~from_values(self.excluded) if self.excluded else language


ALL_STRINGS = StringSet()
