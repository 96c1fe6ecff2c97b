"""The requests and answers of the OpenAI-compatible chat, and what it shares with the other endpoints of that API.

Every field that the official API knows is known here too. What this service cannot honour is typed `Any`, so that the
service can refuse it by name where it holds more than its neutral value (see `NEUTRAL`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from schemas.events import Wire
from schemas.requests import RequestWire
from schemas.sampling import SamplingFields
from schemas.tools import MOST_TOOLS, CalledFunction, FunctionTool, ToolCall, ToolCallDelta, ToolChoice

ChatFinishReason = Literal["stop", "length", "tool_calls"]
MOST_TOP_LOGPROBS = 20

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (None,),
    "function_call": (None, "none", "auto"),
    "functions": (None, []),
    "guided_decoding_backend": (None,),
    "guided_whitespace_pattern": (None,),
    "modalities": (None, ["text"]),
    "prediction": (None,),
    "reasoning_effort": (None, "none"),
    "store": (None, False),
    "verbosity": (None, "medium"),
    "web_search_options": (None,),
}
"""Fields that this version cannot honour, each with the values that ask for nothing."""


class TextPart(RequestWire):
    """One part of a message's content."""

    type: Literal["text"]
    text: str


class RefusalPart(RequestWire):
    type: Literal["refusal"]
    refusal: str

    @property
    def text(self) -> str:
        return self.refusal


class MessageWire(RequestWire):
    """Base of chat messages; fields that are null or empty may stand in them, as in an answer that is sent back."""

    name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if key in cls.model_fields or value not in (None, [])}


class InstructionMessage(MessageWire):
    role: Literal["system", "developer"]
    content: str | list[TextPart]


class UserMessage(MessageWire):
    role: Literal["user"]
    content: str | list[TextPart]


class PastCall(RequestWire):
    """A call that the model made in an earlier answer."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class AssistantTurn(MessageWire):
    role: Literal["assistant"]
    content: str | list[Annotated[TextPart | RefusalPart, Field(discriminator="type")]] | None = None
    tool_calls: list[PastCall] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> AssistantTurn:
        if self.content is None and not self.tool_calls:
            raise ValueError("an assistant's message holds content or tool_calls")
        return self


class ToolMessage(MessageWire):
    """What a called function gave."""

    role: Literal["tool"]
    content: str | list[TextPart]
    tool_call_id: str


ChatMessage = Annotated[InstructionMessage | UserMessage | AssistantTurn | ToolMessage, Field(discriminator="role")]


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


class ChatCompletionRequest(SamplingFields):
    """Body of `POST /v1/chat/completions`."""

    messages: list[ChatMessage] = Field(min_length=1)
    response_format: ResponseFormat | None = None
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_TOP_LOGPROBS)
    tools: list[FunctionTool] | None = Field(default=None, max_length=MOST_TOOLS)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None

    # These change nothing about the text that is generated.
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None

    audio: Any = None
    function_call: Any = None
    functions: Any = None
    modalities: Any = None
    prediction: Any = None
    reasoning_effort: Any = None
    store: Any = None
    verbosity: Any = None
    web_search_options: Any = None


class PromptTokensDetails(Wire):
    cached_tokens: int


class CompletionTokensDetails(Wire):
    """`forced_tokens` went through without a choice of the model."""

    reasoning_tokens: int = 0
    forced_tokens: int


class CompletionUsage(Wire):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class TopLogprob(Wire):
    """A token with the natural logarithm of its probability; `bytes` are those of the token, whole characters or not."""

    token: str
    logprob: float
    bytes: list[int]


class LogprobEntry(TopLogprob):
    top_logprobs: list[TopLogprob]


class Logprobs(Wire):
    content: list[LogprobEntry]
    refusal: None = None


class AssistantMessage(Wire):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[ToolCall] | None = None


class ChatChoice(Wire):
    index: int
    message: AssistantMessage
    logprobs: Logprobs | None = None
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
    tool_calls: list[ToolCallDelta] | None = None


class ChunkChoice(Wire):
    index: int
    delta: ChoiceDelta
    logprobs: Logprobs | None = None
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
