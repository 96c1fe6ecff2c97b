"""What the engine counts about itself, for the service's metrics and the benchmarks."""

from __future__ import annotations

import time
from dataclasses import dataclass

PARTS = ("schedule_ms", "forward_ms", "mask_wait_ms", "sample_ms", "advance_ms", "step_ms")


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot; counts and times are sums since the start.

    `mask_ms` is the helper thread's work, most of it beside the forward pass; `mask_wait_ms` is what the step waited
    for it afterwards. `sat_out` counts the times that a sequence's mask was so late that the step went on without it.
    `cached_tokens` of the prompts were found in the KV memory.
    """

    running: int = 0
    waiting: int = 0
    paused: int = 0
    free_blocks: int = 0
    total_blocks: int = 0
    steps: int = 0
    tokens: int = 0
    prefill_tokens: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    sat_out: int = 0
    row_uploads: int = 0
    mask_ms: float = 0.0
    mask_wait_ms: float = 0.0
    forward_ms: float = 0.0
    sample_ms: float = 0.0
    schedule_ms: float = 0.0
    advance_ms: float = 0.0
    step_ms: float = 0.0


class StepClock:
    """Sums of the parts of all steps, in milliseconds; `lap(name)` closes the part that ran since the last lap."""

    def __init__(self) -> None:
        self.sums = dict.fromkeys(PARTS, 0.0)
        self._began = self._last = time.perf_counter()

    def start(self) -> None:
        self._began = self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.sums[name] += (now - self._last) * 1e3
        self._last = now

    def stop(self) -> None:
        self.sums["step_ms"] += (time.perf_counter() - self._began) * 1e3
