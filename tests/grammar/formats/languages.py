"""The two sets of a format as languages of the project's own engine."""

from __future__ import annotations

from constrained.grammar.formats import Format, Strings
from constrained.grammar.language import ANYTHING, Language, from_pattern


def _language(strings: Strings | Format) -> Language:
    language = ANYTHING
    for pattern in strings.all_of:
        language &= from_pattern(pattern, anchored=True)
    for pattern in strings.none_of:
        language &= ~from_pattern(pattern, anchored=True)
    return language


def certain(form: Format) -> Language:
    """The strings that are valid for certain."""
    return _language(form)


def possible(form: Format) -> Language:
    """The strings that may be valid; all others are invalid."""
    return _language(form.wider or form)
