"""`Language`: a set of Unicode strings as a lazily derived automaton.

The states of the automaton are languages again. Nothing is built before it is asked for; what was built is shared by
all languages that meet in the same normal form. It knows nothing of JSON: how a string is spelled is not its matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import inf
from typing import final

from constrained.grammar.language import boolean, derive, explore, normal, outlook
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.terms import Run, Term, Values

Steps = tuple[tuple[int, int, "Language"], ...]


@final
class Language:
    """A set of strings of Unicode scalar values; immutable, and one object per normal form, so `is` and `==` agree.

    (Two objects may still hold the same strings: the normal form is no minimal automaton.)
    """

    __slots__ = ("__weakref__", "_steps", "_term")

    _term: Term
    _steps: Steps | None

    def __new__(cls, term: Term) -> Language:
        known: Language | None = term.language
        if known is None:
            known = object.__new__(cls)
            known._term = term
            known._steps = None
            # Two threads may come here at once: the first one's object is the language.
            known = term.claim(known)
        return known

    def __and__(self, other: Language) -> Language:
        for left, right in ((self._term, other._term), (other._term, self._term)):
            if isinstance(left, Values):
                return Language(normal.values(text for text in left.strings if derive.contains(right, text)))
        return Language(boolean.intersection((self._term, other._term)))

    def __or__(self, other: Language) -> Language:
        return Language(boolean.union((self._term, other._term)))

    def __invert__(self) -> Language:
        return Language(boolean.complement(self._term))

    def __add__(self, other: Language) -> Language:
        return Language(normal.concat(self._term, other._term))

    def without_empty(self) -> Language:
        """The same strings but for the empty one."""
        return self & of_length(1, None) if self.accepts_empty else self

    def within(self, characters: Ranges) -> Language:
        """The strings of some characters only."""
        return self & from_ranges(characters).repeat(0, inf)

    def repeat(self, low: int, high: float) -> Language:
        """Its strings one after the other, from `low` to `high` of them; `high` may be infinite."""
        return Language(normal.repeat(self._term, low, high))

    @property
    def accepts_empty(self) -> bool:
        return derive.accepts_empty(self._term)

    @property
    def is_empty(self) -> bool:
        """Whether no string is in it; exact. Raises `LanguageFuelError`."""
        return explore.is_empty(self._term)

    def steps(self) -> Steps:
        """`(low, high, language)`: after a character from `low` to `high`, `language` is what may follow.

        Ascending and disjoint, no surrogates; characters that lead to no string are left out. Raises `LanguageFuelError`.
        """
        if self._steps is None:
            live = explore.live_moves(self._term)
            known = {after: Language(after) for after in dict.fromkeys([after for _, _, after in live])}
            self._steps = tuple([(low, high, known[after]) for low, high, after in live])
        return self._steps

    def contains(self, text: str) -> bool:
        return derive.contains(self._term, text)

    def shortest(self) -> str | None:
        """A shortest string, of letters and digits where they are as short as others; None where there is no string."""
        return explore.shortest(self._term)

    def shortest_len(self) -> int | None:
        """The number of code points of a shortest string."""
        return explore.shortest_len(self._term)

    def apart_from_length(self) -> tuple[Language, int] | None:
        """`(core, most)` where these are the strings of `core` of at most `most` code points.

        None where no such parts are seen, or where it might take a long search to tell how short the strings of `core` are.
        """
        found = boolean.apart_from_length(self._term)
        return None if found is None else (Language(found[0]), found[1])

    def apart_from_strings(self) -> tuple[Language, tuple[str, ...]] | None:
        """`(core, out)` where these are the strings of `core` but for those of `out`, which begin nothing that ends with them.

        That is, wherever one stands in a string of `core`, there are strings without end to go on with. None where no such
        parts are seen.
        """
        found = boolean.apart_from_strings(self._term)
        return (Language(found[0]), found[1]) if found is not None and outlook.never_ends(found[0]) else None

    @property
    def is_exact(self) -> bool:
        """Whether it takes no search to tell `shortest_len`, here and wherever its steps lead to."""
        return self._term.exact

    @property
    def run(self) -> Run:
        """`(characters, max_len, missing)`: any of these characters, up to so many of them, begin one of its strings.

        Then `missing` characters more are enough to end one. What is seen without a search; often `max_len` is 0, or `missing`
        infinite.
        """
        return outlook.run(self._term)

    @property
    def characters(self) -> Ranges:
        """Characters among which are all that its strings hold."""
        return outlook.characters(self._term)

    @property
    def max_len(self) -> float:
        """No string of it has more characters; infinite where no such number is seen."""
        return self._term.max_len

    @property
    def most_missing(self) -> int | None:
        """How many characters are enough to end a string, wherever one stands in it; None where that is not seen."""
        return outlook.most_missing(self._term)

    @property
    def missing_inside(self) -> int | None:
        """The same wherever one stands behind a first character."""
        return outlook.missing_inside(self._term)

    @property
    def is_finite(self) -> bool:
        return explore.is_finite(self._term)

    def values(self, limit: int) -> tuple[str, ...] | None:
        """All strings in code point order, or None if they are more than `limit`."""
        if not self.is_finite:
            return None
        found = tuple(islice(explore.strings(self._term), limit + 1))
        return None if len(found) > limit else found

    def __repr__(self) -> str:
        return f"<Language {type(self._term).__name__} {self._term.uid}>"


NOTHING = Language(normal.NOTHING)
ANYTHING = Language(normal.ANYTHING)
EMPTY = Language(normal.EMPTY)


def from_values(texts: Iterable[str]) -> Language:
    """Exactly these strings; one that holds a lone surrogate is no Unicode string, so it is left out."""
    return Language(normal.values(text for text in texts if not any("\ud800" <= char <= "\udfff" for char in text)))


def of_length(minimum: int, maximum: int | None) -> Language:
    """Every string of `minimum` to `maximum` code points (None: without end)."""
    high = inf if maximum is None else maximum
    return Language(normal.repeat(normal.ANY_CHAR, minimum, high) if minimum <= high else normal.NOTHING)


def from_ranges(ranges: Ranges) -> Language:
    """One character out of `ranges` (normalised)."""
    return Language(normal.chars(ranges))
