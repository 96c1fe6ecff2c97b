"""The requests and answers of `/v1/completions`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from schemas.events import Wire
from schemas.openai import MOST_TOP_LOGPROBS, CompletionUsage
from schemas.sampling import SamplingFields

MOST_PROMPTS = 64

COMPLETIONS_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "guided_decoding_backend": (None,),
    "guided_whitespace_pattern": (None,),
    "suffix": (None, ""),
}
"""Fields that this version cannot honour, each with the values that ask for nothing."""


class CompletionRequest(SamplingFields):
    """Body of `POST /v1/completions`. Several prompts give several choices, those of the first prompt first."""

    prompt: Any = None
    echo: bool | None = False
    logprobs: int | None = Field(default=None, ge=0, le=MOST_TOP_LOGPROBS)
    best_of: int | None = Field(default=None, ge=1)
    suffix: Any = None


class TextLogprobs(Wire):
    """Token by token; `text_offset` counts characters from the beginning of the text."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(Wire):
    index: int
    text: str
    logprobs: TextLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None


class Completion(Wire):
    """Answer of `POST /v1/completions`, and what each of its chunks is."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: CompletionUsage | None = None
