"""What the decoding engine takes and gives: one request's parameters in, chunks of accepted bytes out.

Knows nothing of HTTP, JSON or the model; the service and the command line speak to the engine in these terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal

from constrained.errors import RequestError

FinishReason = Literal["stop", "length", "cancelled", "error"]
MOST_TOP_LOGPROBS = 100


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one sequence is sampled, and when it ends. `temperature` 0 is greedy; `top_k` 0, `top_p` 1 and `min_p` 0 are off.

    `repetition_penalty` (1 is off) looks at prompt and output, as in transformers; `presence_penalty` and
    `frequency_penalty` (0 is off) look at the output, as in OpenAI's API. `logit_bias` adds to logits by token id.
    `stop` strings end free text and are cut off; a grammar knows its own end, so both together are refused.
    `stop_token_ids` end free text beside the model's own EOS. `min_tokens` holds EOS back: free text goes on, a document
    goes on where it may. `logprobs` asks for each token's log-probability and for that many of the likeliest beside it; they
    are those of the logits under the mask, before penalties, bias, temperature and truncation, and with
    `unmasked_logprobs` those of the logits as they are. Higher `priority` goes first. `time_limit_s` counts from
    the submission: then free text is cut and a document closed.

    Raises `RequestError` where a value is out of range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int = 1024
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    min_tokens: int = 0
    logprobs: int | None = None
    unmasked_logprobs: bool = False
    priority: int = 0
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        bounds = {
            "temperature": 0.0 <= self.temperature < inf,
            "top_p": 0.0 < self.top_p <= 1.0,
            "top_k": self.top_k >= 0,
            "min_p": 0.0 <= self.min_p <= 1.0,
            "max_tokens": self.max_tokens >= 1,
            "repetition_penalty": 0.0 < self.repetition_penalty < inf,
            "presence_penalty": isfinite(self.presence_penalty),
            "frequency_penalty": isfinite(self.frequency_penalty),
            "logit_bias": all(isfinite(bias) for bias in self.logit_bias.values()),
            "stop": all(self.stop),
            "min_tokens": 0 <= self.min_tokens <= self.max_tokens,
            "logprobs": self.logprobs is None or 0 <= self.logprobs <= MOST_TOP_LOGPROBS,
            "time_limit_s": self.time_limit_s is None or 0.0 < self.time_limit_s < inf,
        }
        for name, holds in bounds.items():
            if not holds:
                raise RequestError(f"{name} is {getattr(self, name)}, which is out of range", name)

    @property
    def shapes_logits(self) -> bool:
        """Whether penalties or biases change logits before the temperature does."""
        penalised = self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0
        return penalised or bool(self.logit_bias)


@dataclass(slots=True)
class Usage:
    """Token counts and times of one sequence.

    `cached_tokens` of the prompt were in the KV memory already. `forced_tokens` of the output went through without a choice
    of the model. `drafted_tokens` were proposed by speculation, `accepted_tokens` of them were right.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    cached_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    queue_ms: float = 0.0
    ttft_ms: float = 0.0
    total_ms: float = 0.0
    closed_by_budget: bool = False

    def so_far(self) -> Usage:
        """A copy, which stays as it is. (`copy.copy` takes ten times as long.)"""
        return Usage(
            self.prompt_tokens,
            self.completion_tokens,
            self.forced_tokens,
            self.cached_tokens,
            self.drafted_tokens,
            self.accepted_tokens,
            self.queue_ms,
            self.ttft_ms,
            self.total_ms,
            self.closed_by_budget,
        )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The natural logarithm of one token's probability; `top` are the likeliest tokens as (id, logprob), best first."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class Chunk:
    """What one or more decode steps added to one sequence.

    `data` holds the bytes of the accepted tokens (EOS adds none); with `stop` strings, bytes that may begin one are held
    back until that is known. `finish_reason` is set on the last chunk only; with "error", `error` is the exception that
    ended this sequence. `logprobs` has one entry per token where they were asked for. `stop_string` is the one that ended the
    text.
    """

    data: bytes
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    error: Exception | None = None
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[TokenLogprob, ...] = ()
    stop_string: str | None = None
