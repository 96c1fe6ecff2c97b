"""Uniform numbers of one sequence: counter-based, so that they depend on the seed and the position alone.

SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
"""

from __future__ import annotations

import secrets

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class SeededStream:
    """`uniform(i)` in [0, 1) for the i-th token; None draws a fresh seed."""

    def __init__(self, seed: int | None) -> None:
        self._state = _mix((secrets.randbits(64) if seed is None else seed) + _GOLDEN)

    def uniform(self, index: int) -> float:
        return float(_mix(self._state + (index + 1) * _GOLDEN) >> 11) * 2.0**-53


def _mix(z: int) -> int:
    z &= _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
