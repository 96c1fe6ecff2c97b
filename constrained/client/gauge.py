"""Whether something between the service and the client holds a stream back, told by comparing two clocks.

The service says how long the run was in the making (`done.timings`); the client sees over how long it came. Made over seconds
and come in one burst: then it was buffered. Time in which the caller did not read at all says nothing, and is counted as if
events had come in it. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrained.client.formats import Item, Received

MIN_MADE_S = 0.5
MAX_SHARE = 0.25
"""A stream that came within this share of the time that it was made in is a burst."""


class BufferingGauge:
    """Watches the reads of one stream; `verdict` is a sentence once it has come in a burst. Times are of one clock."""

    def __init__(self) -> None:
        self.verdict: str | None = None
        self._left_at: float | None = None
        self._away_s = 0.0
        self._first_at: float | None = None
        self._is_off = False

    def switch_off(self) -> None:
        """What comes from now on may be a replay, which comes at once by right."""
        self._is_off = True

    def begin_read(self, now: float) -> None:
        """The caller waits for events."""
        if self._first_at is None and self._left_at is not None:
            self._away_s += now - self._left_at

    def end_read(self, now: float, items: Iterable[Item]) -> None:
        """These have come."""
        self._left_at = now
        for item in items:
            if isinstance(item, Received):
                self._see(item, now)

    def _see(self, item: Received, now: float) -> None:
        if item.name in ("delta", "snapshot") and self._first_at is None:
            self._first_at = now
        elif item.name == "done" and self._first_at is not None and not self._is_off:
            self._judge(_made_s(item.data), now - self._first_at + self._away_s)

    def _judge(self, made_s: float, came_s: float) -> None:
        if made_s >= MIN_MADE_S and came_s < MAX_SHARE * made_s:
            self.verdict = (
                f"what was generated over {made_s:.1f} s came within {came_s:.2f} s: something between the service and this"
                " client, probably a proxy, buffers the stream; switch that off (nginx: `proxy_buffering off`)"
            )


def _made_s(done: Any) -> float:
    """How long the run took from its first token to its end, by the service's own clock."""
    try:
        timings = done["timings"]
        return (float(timings["total_ms"]) - float(timings["ttft_ms"])) / 1000
    except (KeyError, TypeError, ValueError):
        return 0.0
