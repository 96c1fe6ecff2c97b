"""What the decoding engine takes and gives: one request's parameters in, chunks of accepted bytes out.

Knows nothing of HTTP, JSON or the model; the service and the command line speak to the engine in these terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from constrained.errors import RequestError

FinishReason = Literal["stop", "length", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one sequence is sampled. `temperature` 0 is greedy; `top_k` 0, `top_p` 1 and `min_p` 0 are off.

    Raises `RequestError` where a value is out of range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        bounds = {
            "temperature": 0.0 <= self.temperature < float("inf"),
            "top_p": 0.0 < self.top_p <= 1.0,
            "top_k": self.top_k >= 0,
            "min_p": 0.0 <= self.min_p <= 1.0,
            "max_tokens": self.max_tokens >= 1,
        }
        for name, holds in bounds.items():
            if not holds:
                raise RequestError(f"{name} is {getattr(self, name)}, which is out of range", name)


@dataclass(slots=True)
class Usage:
    """Token counts and times of one sequence; `forced_tokens` went through without a choice of the model."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    cached_tokens: int = 0
    queue_ms: float = 0.0
    ttft_ms: float = 0.0
    total_ms: float = 0.0
    closed_by_budget: bool = False


@dataclass(slots=True)
class Chunk:
    """What one or more decode steps added to one sequence.

    `data` holds the bytes of the accepted tokens (EOS adds none). `finish_reason` is set on the last chunk only;
    with "error", `error` is the exception that ended this sequence.
    """

    data: bytes
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    error: Exception | None = None
    usage: Usage = field(default_factory=Usage)
