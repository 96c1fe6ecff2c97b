"""How much prefill a step may take beside decoding, so that running streams keep their rhythm.

Learned from how long steps took: with decoding alone, by how many sequences decode, and what each prefilled token added.
Knows no clock and no sequences: it is told.
"""

from __future__ import annotations

from math import inf

_NEW = 0.25  # the weight of a new time in its running mean
_BURST_S = 0.1  # the most that a step takes from those who decode, where more wait
_IDLE_S = 0.5  # a step of prefill alone; who comes meanwhile waits for it, who leaves is noticed after it
_IDLE_START = 512  # tokens of such a step while their cost is unknown
_STEADY = 256  # prefilled tokens that weigh as much as all that is known of their cost
_OUTLIER = 3.0  # a time counts as this many means at most: a first call may compile, another process may get in the way


class Pace:
    """`most` prefill tokens a step, or so few that it takes `stretch` times as long as without them, but never under `least`.

    An infinite `stretch` leaves `most`, whatever the clock says.
    """

    def __init__(self, most: int, stretch: float, least: int = 8) -> None:
        self._most = most
        self._stretch = stretch
        self._least = min(least, most)
        self._quiet: dict[int, float] = {}
        self._token: float | None = None

    def budget(self, num_decoding: int) -> int:
        """Prefill tokens for a step in which so many sequences decode; half of the most while nothing is known."""
        if self._stretch == inf:
            return self._most
        quiet = self._quiet_s(num_decoding)
        if quiet is None or self._token is None:
            return max(self._least, self._most // 2)
        return max(self._least, min(self._most, int((self._stretch - 1) * quiet / self._token)))

    def idle_budget(self, most: int) -> int:
        """Prefill tokens for a step in which nothing decodes: at most `most`, fewer where they would take half a second."""
        return most if self._stretch == inf else min(most, self._tokens_in(_IDLE_S))

    def burst_budget(self, most: int) -> int:
        """Prefill tokens for a step while many come in together: at most `most`, or a tenth of a second.

        Spread over many steps the same work would slow those who decode down by as much, and keep the others waiting longer.
        """
        return self._most if self._stretch == inf else min(most, self._tokens_in(_BURST_S))

    def note(self, num_decoding: int, num_prefill: float, step_s: float) -> None:
        """Learn from a step: its prefill tokens (weighted as the budget is) and its seconds.

        Beside decoding the few tokens of a small chunk say little: what else a step took would count as theirs.
        """
        if not num_prefill:
            size = num_decoding.bit_length()
            self._quiet[size] = _mean(self._quiet.get(size), step_s)
            return
        quiet = self._quiet_s(num_decoding) if num_decoding else 0.0
        if quiet is not None:
            weight = num_prefill / (num_prefill + _STEADY)
            self._token = _mean(self._token, max(step_s - quiet, 0.05 * step_s) / num_prefill, weight)

    def _tokens_in(self, seconds: float) -> int:
        return _IDLE_START if self._token is None else max(self._least, int(seconds / self._token))

    def _quiet_s(self, num_decoding: int) -> float | None:
        """Seconds of a step of decoding alone, by the nearest number of sequences that was seen."""
        size = num_decoding.bit_length()
        nearest = min(self._quiet, key=lambda known: abs(known - size), default=None)
        return None if nearest is None else self._quiet[nearest]


def _mean(known: float | None, new: float, weight: float = _NEW) -> float:
    return new if known is None else (1 - weight) * known + weight * min(new, _OUTLIER * known)
