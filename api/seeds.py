"""Seeds made from a caller's seed."""

from __future__ import annotations

SEED_SPACE = 2**63


def varied(seed: int | None, by: int) -> int | None:
    """The seed of variation `by`, the caller's own for 0; None stays None."""
    return None if seed is None else (seed + by) % SEED_SPACE
