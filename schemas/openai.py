"""The requests and answers of the OpenAI-compatible endpoints.

Every field that the official API knows is known here too. What this service cannot honour is typed `Any`, so that the
service can refuse it by name where it holds more than its neutral value (see `NEUTRAL`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from schemas.events import Wire
from schemas.requests import RequestWire

ChatFinishReason = Literal["stop", "length"]

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (None,),
    "frequency_penalty": (None, 0),
    "function_call": (None, "none", "auto"),
    "functions": (None, []),
    "logit_bias": (None, {}),
    "logprobs": (None, False),
    "modalities": (None, ["text"]),
    "prediction": (None,),
    "presence_penalty": (None, 0),
    "reasoning_effort": (None,),
    "stop": (None, [], ""),
    "store": (None, False),
    "tool_choice": (None, "none", "auto"),
    "tools": (None, []),
    "top_logprobs": (None, 0),
    "verbosity": (None,),
    "web_search_options": (None,),
    "guided_regex": (None,),
    "guided_choice": (None,),
    "guided_grammar": (None,),
    "guided_decoding_backend": (None,),
    "guided_whitespace_pattern": (None,),
}
"""Fields that this version cannot honour, each with the values that ask for nothing."""


class TextPart(RequestWire):
    """One part of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(RequestWire):
    """One chat message; fields that are null or empty may stand in it, as in an answer that is sent back."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if key in cls.model_fields or value not in (None, [])}

    @property
    def text(self) -> str:
        """The content as one string."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class TextFormat(RequestWire):
    type: Literal["text"]


class JsonObjectFormat(RequestWire):
    type: Literal["json_object"]


class NamedSchema(RequestWire):
    """A schema with its name. The schema is always enforced exactly, whatever `strict` says."""

    name: str
    schema_: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class JsonSchemaFormat(RequestWire):
    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


class StructuredOutputs(RequestWire):
    """The constraint as vLLM spells it: exactly one of these."""

    json_: dict[str, Any] | bool | str | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None


class StreamOptions(RequestWire):
    include_usage: bool = False
    include_obfuscation: bool = False


class ChatCompletionRequest(RequestWire):
    """Body of `POST /v1/chat/completions`.

    `schema_in_prompt`, `top_k`, `min_p`, `structured_outputs` and `guided_*` are extensions.
    """

    model: str | None = None
    messages: list[ChatMessage] = Field(min_length=1)
    response_format: ResponseFormat | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0.0, le=10.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_k: int | None = Field(default=None, ge=-1)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    n: int | None = Field(default=None, ge=1, le=16)
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    structured_outputs: StructuredOutputs | None = None
    guided_json: dict[str, Any] | bool | str | None = None
    schema_in_prompt: bool = True

    # These change nothing about the text that is generated.
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None

    audio: Any = None
    frequency_penalty: Any = None
    function_call: Any = None
    functions: Any = None
    guided_choice: Any = None
    guided_decoding_backend: Any = None
    guided_grammar: Any = None
    guided_regex: Any = None
    guided_whitespace_pattern: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    modalities: Any = None
    prediction: Any = None
    presence_penalty: Any = None
    reasoning_effort: Any = None
    stop: Any = None
    store: Any = None
    tool_choice: Any = None
    tools: Any = None
    top_logprobs: Any = None
    verbosity: Any = None
    web_search_options: Any = None


class PromptTokensDetails(Wire):
    cached_tokens: int


class CompletionUsage(Wire):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class AssistantMessage(Wire):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(Wire):
    index: int
    message: AssistantMessage
    logprobs: None = None
    finish_reason: ChatFinishReason


class ChatCompletion(Wire):
    """Answer of `POST /v1/chat/completions` without `stream`."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: CompletionUsage


class ChoiceDelta(Wire):
    """What a chunk adds; a field that is not set is not sent."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(Wire):
    index: int
    delta: ChoiceDelta
    logprobs: None = None
    finish_reason: ChatFinishReason | None


class ChatCompletionChunk(Wire):
    """One `data:` line of a chat stream; `usage` is sent only where `stream_options.include_usage` asks for it."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: CompletionUsage | None = None


class ModelCard(Wire):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    context_len: int


class ModelList(Wire):
    """Answer of `GET /v1/models`."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
