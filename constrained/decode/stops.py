"""Stop strings in a stream of bytes: the text is cut before the first one, wherever token borders lie."""

from __future__ import annotations

from collections.abc import Sequence as Seq


class StopText:
    """`feed` gives the bytes that are certain; what may begin a stop string is held back until the next bytes tell.

    The string that ends first wins, of two that end together the longer one, so that how the bytes are cut does not matter.
    """

    def __init__(self, stops: Seq[str]) -> None:
        self._stops = {stop.encode(): stop for stop in stops}
        self._longest = max(map(len, self._stops), default=0)
        self._held = b""
        self.found: str | None = None

    def feed(self, data: bytes) -> bytes:
        """The bytes that are certain now. Once `found` is set, everything up to it has been given."""
        text = self._held + data
        hits = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if hits:
            _, at, stop = min(hits)
            self.found, self._held = self._stops[stop], b""
            return text[:at]
        certain = len(text) - self._num_held(text)
        self._held = text[certain:]
        return text[:certain]

    def flush(self) -> bytes:
        """What was held back; for when no more bytes come."""
        held, self._held = self._held, b""
        return held

    def _num_held(self, text: bytes) -> int:
        """The length of the longest end of `text` that begins a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0
