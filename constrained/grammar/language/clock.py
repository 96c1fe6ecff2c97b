"""The time that work on languages may take, for whoever sets a limit; without one it is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from constrained.grammar.language.errors import LanguageTimeError

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within it, `check_time` raises once `seconds` have passed."""
    reset = _deadline.set(monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(reset)


def check_time() -> None:
    """Raises `LanguageTimeError` past the deadline."""
    deadline = _deadline.get()
    if deadline is not inf and monotonic() > deadline:
        raise LanguageTimeError
