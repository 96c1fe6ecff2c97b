"""Threads that run the same compiled function at the same time and share its parts; see `shares`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Team:
    """`size` threads, of which the caller's is one."""

    def __init__(self, size: int) -> None:
        self._num_helpers = size - 1
        self._helpers = ThreadPoolExecutor(self._num_helpers, thread_name_prefix="constrained-team") if size > 1 else None

    def run(self, function: Callable[..., None], *args: object) -> None:
        """Call a function that gives the GIL up on every thread; returns when the caller's call does.

        A thread whose core another process has may be in it still, or come to it later: it must find nothing to do then.
        """
        helped = [self._helpers.submit(function, *args) for _ in range(self._num_helpers)] if self._helpers else []
        function(*args)
        for future in helped:
            future.cancel()

    def close(self) -> None:
        if self._helpers is not None:
            self._helpers.shutdown()
