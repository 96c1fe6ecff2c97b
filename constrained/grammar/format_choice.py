"""Which strings a `format` name stands for, as the caller chose: the known formats, the caller's own, or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from constrained.errors import OptionError
from constrained.grammar.formats import FORMATS, INEXACT, OLDER_FORMATS, Format, Strings
from constrained.grammar.language import ANYTHING, Language, PatternError, from_pattern
from constrained.options import CompileOptions


@dataclass(frozen=True, slots=True)
class FormatLanguages:
    """The strings that are valid for certain, and those beside which all are invalid."""

    sure: Language
    possible: Language


class FormatChoice:
    """Format names of one compile. Raises `OptionError` for a custom format that is no regular expression."""

    def __init__(self, options: CompileOptions) -> None:
        self._asserts = options.formats == "assert"
        self._refuses_unknown = options.unknown_formats == "refuse"
        self.custom: dict[str, FormatLanguages] = {}
        if options.custom_formats:
            self.custom = {name: _custom(name, source) for name, source in options.custom_formats.items()}

    def find(self, name: Any, draft: int) -> FormatLanguages | None:
        """The strings of a format; None where it asserts nothing."""
        if not self._asserts or not isinstance(name, str):
            return None
        if name in self.custom:
            return self.custom[name]
        form = OLDER_FORMATS.get(f"draft{draft}", FORMATS).get(name, FORMATS.get(name))
        return _known(form) if form is not None else None

    def refusal(self, name: Any) -> str | None:
        """Why a format cannot be asserted; None where it can, or asserts nothing."""
        if not self._asserts or not isinstance(name, str) or name in self.custom:
            return None
        if name in INEXACT:
            return f"format {name!r} cannot be asserted exactly: {INEXACT[name]}"
        if self._refuses_unknown and name not in FORMATS:
            return f"unknown format {name!r} (unknown_formats='refuse'; custom_formats may define it)"
        return None

    def silence(self, name: Any, draft: int) -> str | None:
        """Why a format asserts nothing; None where it does."""
        if not self._asserts:
            return "formats='annotate'"
        return None if self.find(name, draft) is not None else f"no format {name!r} is known"


def _custom(name: str, source: str) -> FormatLanguages:
    try:
        language = from_pattern(source, anchored=True)
    except PatternError as error:
        raise OptionError(f"{name!r}: {source!r}: {error}", "custom_formats") from error
    return FormatLanguages(language, language)


@cache
def _known(form: Format) -> FormatLanguages:
    sure = _strings(form)
    return FormatLanguages(sure, _strings(form.wider) if form.wider is not None else sure)


def _strings(form: Format | Strings) -> Language:
    language = ANYTHING
    for source in form.all_of:
        language &= from_pattern(source, anchored=True)
    for source in form.none_of:
        language &= ~from_pattern(source, anchored=True)
    return language
