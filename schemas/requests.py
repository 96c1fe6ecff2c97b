"""The requests and answers of the native endpoints, and the one error body of all endpoints."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from schemas.events import FinishReason, Timings, UsageInfo, Wire

MOST_WHITESPACE = 65_536
MOST_FORMATS = 64
Role = Literal["system", "user", "assistant"]


class RequestWire(Wire):
    """Base of all bodies that callers send: no value is converted, so that a wrong type is an error and never a surprise."""

    model_config = ConfigDict(strict=True)


class Message(RequestWire):
    """One chat message."""

    role: Role
    content: str


class CompileFields(RequestWire):
    """How a JSON Schema becomes a grammar (`constrained.options.CompileOptions`); an operator's limits are not among it.

    `spelling`: "permissive" takes every spelling that RFC 8259 allows. `formats`: "annotate" asserts none; `custom_formats` are
    regular expressions by name. `nullable`: OpenAPI 3.0's `nullable: true` takes null too.
    """

    whitespace: Literal["flexible", "compact", "indented"] = "flexible"
    max_whitespace: int | None = Field(default=None, ge=0, le=MOST_WHITESPACE)
    property_order: Literal["schema", "any"] = "schema"
    spelling: Literal["default", "permissive"] = "default"
    formats: Literal["assert", "annotate"] = "assert"
    custom_formats: dict[str, str] = Field(default_factory=dict, max_length=MOST_FORMATS)
    unknown_formats: Literal["annotate", "refuse"] = "annotate"
    nullable: bool = False


class StructuredRequest(CompileFields):
    """Body of `POST /v1/structured` and `/v1/structured/stream`.

    Exactly one of `schema` (a JSON Schema, or a boolean), `regex`, `choice`, `grammar`; exactly one of `messages`, `prompt`.
    """

    schema_: dict[str, Any] | bool | None = Field(default=None, alias="schema")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    messages: list[Message] | None = Field(default=None, min_length=1)
    prompt: str | None = None
    model: str | None = None
    max_tokens: int = Field(default=1024, ge=1)
    temperature: float = Field(default=1.0, ge=0.0, le=10.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    n: int = Field(default=1, ge=1, le=16)
    resumable: bool = False
    schema_in_prompt: bool = True
    coalesce_ms: int = Field(default=16, ge=0, le=1000)

    @model_validator(mode="after")
    def _one_of_each(self) -> StructuredRequest:
        constraints = [name for name in ("schema_", "regex", "choice", "grammar") if getattr(self, name) is not None]
        if len(constraints) != 1:
            raise ValueError("exactly one of schema, regex, choice, grammar is needed")
        if (self.messages is None) == (self.prompt is None):
            raise ValueError("exactly one of messages, prompt is needed")
        return self


class StructuredChoice(Wire):
    """One finished document: its text as generated and its value (None where the text is cut)."""

    index: int
    text: str
    value: Any = None
    finish_reason: FinishReason
    valid: bool


class StructuredResponse(Wire):
    """Answer of `POST /v1/structured`."""

    run: str
    model: str
    schema_hash: str
    choices: list[StructuredChoice]
    usage: UsageInfo
    timings: Timings


class CancelResponse(Wire):
    """Answer of `POST /v1/structured/{run}/cancel`: "cancelled" where the run was still going, else "finished"."""

    run: str
    status: Literal["cancelled", "finished"]


class SteerRequest(RequestWire):
    """Body of `POST /v1/structured/{run}/steer`: `text` joins the conversation as a user turn.

    It reaches every choice that goes on, or `choice` alone.
    """

    text: str = Field(min_length=1)
    choice: int | None = Field(default=None, ge=0)


class EditRequest(RequestWire):
    """Body of `POST /v1/structured/{run}/edit`: the closed value at `path` becomes `value`, which its subschema must allow."""

    path: str
    value: Any
    choice: int = Field(default=0, ge=0)


class SteerResponse(Wire):
    """Answer to both: `seq` is the last operation before the new course; after an edit, the edit itself."""

    run: str
    seq: int


class CheckRequest(CompileFields):
    """Body of `POST /v1/schemas/check`."""

    schema_: Any = Field(alias="schema")


class KeywordReport(Wire):
    """What becomes of one keyword of a schema; `pointer` leads to it."""

    pointer: str
    keyword: str
    status: Literal["enforced", "annotation", "refused"]
    reason: str | None = None


class CheckResponse(Wire):
    """Whether a schema compiles, per keyword, with the generation order of its properties."""

    supported: bool
    schema_hash: str | None = None
    keywords: list[KeywordReport]
    order: list[str]
    min_bytes: int | None = None
    error: ErrorInfo | None = None


class ErrorInfo(Wire):
    """`param` is the JSON Pointer or the field at fault; `code` is stable."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(Wire):
    """The body of every answer that is not 2xx."""

    error: ErrorInfo


CheckResponse.model_rebuild()
