"""Which strings a format holds, by Python's `re`: an engine that shares nothing with the project's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from constrained.grammar.formats import FORMATS, Format, Strings


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern in Python's syntax, for the few constructs that the formats use."""
    translated = re.sub(r"\\u\{([0-9A-F]+)\}", lambda match: f"\\U{int(match[1], 16):08x}", pattern)
    return re.compile(translated.replace("[^]", r"[\s\S]"), re.ASCII)


def holds(strings: Strings | Format, text: str) -> bool:
    return all(_compiled(pattern).fullmatch(text) for pattern in strings.all_of) and not any(
        _compiled(pattern).fullmatch(text) for pattern in strings.none_of
    )


def decide(form: Format, text: str) -> bool | None:
    """Whether the string is valid; None where the format leaves that open."""
    if holds(form, text):
        return True
    return None if form.wider is not None and holds(form.wider, text) else False


def check(name: str, *, accepts: Sequence[str] = (), rejects: Sequence[str] = ()) -> None:
    for text in accepts:
        assert decide(FORMATS[name], text) is True, f"{name} should accept {text!r}"
    for text in rejects:
        assert decide(FORMATS[name], text) is False, f"{name} should reject {text!r}"
