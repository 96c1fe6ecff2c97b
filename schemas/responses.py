"""The requests and answers of `/v1/responses`.

As in `schemas.openai`, every field that the official API knows is known; what cannot be honoured is refused by name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from schemas.events import Op, Wire
from schemas.openai import MOST_TOP_LOGPROBS, JsonObjectFormat, LogprobEntry, MessageWire, RefusalPart, TextFormat
from schemas.requests import RequestWire
from schemas.sampling import StructuredOutputs
from schemas.tools import FUNCTION_NAME, MOST_TOOLS, ToolMode

Status = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]
LOGPROBS = "message.output_text.logprobs"
INCLUDABLE = frozenset(
    {
        LOGPROBS,
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
"""What `include` may name; all but the log-probabilities speak of output that this service never has."""

RESPONSES_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "context_management": (None, []),
    "conversation": (None,),
    "max_tool_calls": (None,),
    "moderation": (None,),
    "prompt": (None,),
    "reasoning": (None, {}, {"effort": None}, {"effort": "none"}, {"effort": None, "summary": None}),
    "truncation": (None, "disabled"),
}
"""Fields that this version cannot honour, each with the values that ask for nothing."""


class InputText(RequestWire):
    type: Literal["input_text"]
    text: str


class GivenOutputText(MessageWire):
    """A part of an earlier answer that is sent back."""

    type: Literal["output_text"]
    text: str
    annotations: Any = None
    logprobs: Any = None


InputPart = Annotated[InputText | GivenOutputText | RefusalPart, Field(discriminator="type")]


class InputMessage(MessageWire):
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputPart]
    id: str | None = None
    status: ItemStatus | None = None


class InputCall(MessageWire):
    """A call that the model made in an earlier response."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: ItemStatus | None = None


class InputCallOutput(MessageWire):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[InputText]
    id: str | None = None
    status: ItemStatus | None = None


class ItemReference(MessageWire):
    """An item of an earlier response that is kept here."""

    type: Literal["item_reference"] = "item_reference"
    id: str


def _item_type(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return str(kind or "message")


InputItem = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[InputCall, Tag("function_call")]
    | Annotated[InputCallOutput, Tag("function_call_output")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(_item_type),
]


class SchemaFormat(RequestWire):
    """A schema with its name; enforced exactly, whatever `strict` says."""

    type: Literal["json_schema"]
    name: str
    schema_: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextConfig(RequestWire):
    format: Annotated[TextFormat | JsonObjectFormat | SchemaFormat, Field(discriminator="type")] | None = None
    verbosity: Literal["medium"] | None = None


class ResponseFunction(RequestWire):
    """A function that the model may call; its parameters are enforced exactly, whatever `strict` says."""

    type: Literal["function"]
    name: str = Field(pattern=FUNCTION_NAME)
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChosenFunction(RequestWire):
    type: Literal["function"]
    name: str


class AllowedFunctions(RequestWire):
    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[ChosenFunction] = Field(min_length=1)


class ResponseStreamOptions(RequestWire):
    """Taken, and changes nothing: events carry no padding."""

    include_obfuscation: bool = False


class ResponsesRequest(RequestWire):
    """Body of `POST /v1/responses`.

    `typed_deltas`, `structured_outputs`, `schema_in_prompt`, `seed`, `top_k`, `min_p` and the penalties are extensions.
    """

    model: str | None = None
    input: str | list[InputItem]
    instructions: str | None = None
    text: TextConfig | None = None
    tools: list[ResponseFunction] | None = Field(default=None, max_length=MOST_TOOLS)
    tool_choice: ToolMode | Annotated[ChosenFunction | AllowedFunctions, Field(discriminator="type")] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0.0, le=10.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_TOP_LOGPROBS)
    include: list[str] | None = None
    stream: bool | None = False
    stream_options: ResponseStreamOptions | None = None
    background: bool | None = False
    store: bool | None = True
    previous_response_id: str | None = None
    metadata: dict[str, str] | None = None

    typed_deltas: bool = False
    structured_outputs: StructuredOutputs | None = None
    schema_in_prompt: bool = True
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    top_k: int | None = Field(default=None, ge=-1)
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    repetition_penalty: float | None = Field(default=None, gt=0.0, le=10.0)

    # These change nothing about the text that is generated.
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None

    context_management: Any = None
    conversation: Any = None
    max_tool_calls: Any = None
    moderation: Any = None
    prompt: Any = None
    reasoning: Any = None
    truncation: Any = None


class OutputText(Wire):
    type: Literal["output_text"] = "output_text"
    text: str = ""
    annotations: list[Any] = Field(default_factory=list)
    logprobs: list[LogprobEntry] = Field(default_factory=list)


class OutputMessage(Wire):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: ItemStatus = "in_progress"
    content: list[OutputText] = Field(default_factory=list)


class OutputCall(Wire):
    """`arguments` is JSON text, valid against the function's parameters."""

    id: str
    type: Literal["function_call"] = "function_call"
    status: ItemStatus = "in_progress"
    call_id: str
    name: str
    arguments: str = ""


OutputItem = Annotated[OutputMessage | OutputCall, Field(discriminator="type")]


class InputTokensDetails(Wire):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokensDetails(Wire):
    """`forced_tokens` went through without a choice of the model."""

    reasoning_tokens: int = 0
    forced_tokens: int


class ResponseUsage(Wire):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseFault(Wire):
    code: str
    message: str


class IncompleteDetails(Wire):
    reason: Literal["max_output_tokens"]


class NoReasoning(Wire):
    effort: None = None
    summary: None = None


class ResponseObject(Wire):
    """A response as it stands: the answer of `POST`, of `GET`, and what most events carry."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Status = "in_progress"
    background: bool = False
    error: ResponseFault | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    model: str
    output: list[OutputItem] = Field(default_factory=list)
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    reasoning: NoReasoning = Field(default_factory=NoReasoning)
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool = True
    temperature: float
    text: dict[str, Any]
    tool_choice: Any
    tools: list[dict[str, Any]]
    top_logprobs: int = 0
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None


class DeletedResponse(Wire):
    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class InputItemList(Wire):
    """What a response was asked, newest first unless `order` says otherwise."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class TypedStartEvent(Wire):
    """Extension: what the document will look like; comes before its typed deltas."""

    type: Literal["constrained.start"] = "constrained.start"
    sequence_number: int
    schema_: Any = Field(alias="schema")
    schema_hash: str
    order: list[str]


class TypedDeltaEvent(Wire):
    """Extension: the operations of the native protocol, beside the text that they come from."""

    type: Literal["constrained.delta"] = "constrained.delta"
    sequence_number: int
    output_index: int
    content_index: int
    item_id: str
    ops: list[Op]
