"""Fields that chat and text completions share: sampling, constraints by vLLM's names, and how the answer is sent."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from schemas.requests import CompileFields, RequestWire

MOST_CHOICES = 16
MOST_STOPS = 16


class StructuredOutputs(RequestWire):
    """The constraint as vLLM spells it: exactly one of these. `options` (ours) hold for a `response_format` too."""

    json_: dict[str, Any] | bool | str | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    choices: list[str] | None = None
    grammar: str | None = None
    options: CompileFields | None = None


class StreamOptions(RequestWire):
    """`include_obfuscation` is taken and changes nothing: chunks carry no padding."""

    include_usage: bool = False
    include_obfuscation: bool = False


class SamplingFields(RequestWire):
    """What every text endpoint takes.

    `top_k`, `min_p`, `repetition_penalty`, `min_tokens`, `stop_token_ids`, `priority`, `schema_in_prompt`, `structured_outputs`
    and `guided_*` are extensions.
    """

    model: str | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, ge=1, le=MOST_CHOICES)
    max_tokens: int | None = Field(default=None, ge=1)
    min_tokens: int | None = Field(default=None, ge=0)
    temperature: float | None = Field(default=None, ge=0.0, le=10.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_k: int | None = Field(default=None, ge=-1)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    repetition_penalty: float | None = Field(default=None, gt=0.0, le=10.0)
    logit_bias: dict[str, float] | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    priority: int | None = None

    structured_outputs: StructuredOutputs | None = None
    guided_json: dict[str, Any] | bool | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    guided_decoding_backend: Any = None
    guided_whitespace_pattern: Any = None
    schema_in_prompt: bool = True

    # This changes nothing about the text that is generated.
    user: str | None = None
