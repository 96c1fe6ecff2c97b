"""The events of a run and the operations inside a delta, as they go over the wire (protocol version 1).

`Op` and `Event` are discriminated unions; `EVENT` validates one event's data by its SSE name. Paths are RFC 6901 JSON
Pointers from the document's root, whole, with numeric indices; the root itself is "".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

PROTOCOL_VERSION = 1

TypeName = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
FinishReason = Literal["stop", "length", "cancelled", "error"]


class Wire(BaseModel):
    """Base of all wire models: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class FieldOp(Wire):
    """Type-ahead: this location is next; its value has not begun."""

    op: Literal["field"] = "field"
    path: str
    types: list[TypeName]
    schema_pointer: str | None = None
    enum: list[Any] | None = None


class VariantOp(Wire):
    """A union at `path` is decided: `schema_pointer` is the arm that holds."""

    op: Literal["variant"] = "variant"
    path: str
    schema_pointer: str


class OpenOp(Wire):
    """A container or a string begins."""

    op: Literal["open"] = "open"
    path: str
    type: Literal["object", "array", "string"]


class TextOp(Wire):
    """Decoded text to append to the open string at `path`; whole Unicode scalar values."""

    op: Literal["text"] = "text"
    path: str
    add: str


class SetOp(Wire):
    """A scalar, whole and final; `raw` is the lexeme where a double would lose it. No `close` follows a `set`."""

    op: Literal["set"] = "set"
    path: str
    value: Any
    raw: str | None = None


class CloseOp(Wire):
    """The opened value at `path` is final."""

    op: Literal["close"] = "close"
    path: str


Op = Annotated[FieldOp | VariantOp | OpenOp | TextOp | SetOp | CloseOp, Field(discriminator="op")]


class StartEvent(Wire):
    """First event of every stream."""

    run: str
    protocol: int = PROTOCOL_VERSION
    model: str
    schema_: Any = Field(alias="schema")
    schema_hash: str
    order: list[str]
    choices: int = 1


class DeltaEvent(Wire):
    """Ops of one choice; `seq` numbers the last op of the frame."""

    seq: int
    choice: int = 0
    ops: list[Op]


PathStatus = Literal["next", "streaming", "complete"]


class SnapshotEvent(Wire):
    """The fold of every op up to `seq`: sent where a reader joins late or fell behind, and after an edit.

    `edited` is then the path that was corrected: the one way in which a closed value ever changes.
    """

    seq: int
    choice: int = 0
    value: Any
    open: list[str]
    status: dict[str, PathStatus]
    edited: str | None = None


class ErrorEvent(Wire):
    """Terminal: the run failed. `path` names the open location, if any."""

    seq: int
    code: str
    message: str
    path: str | None = None
    retriable: bool = False


class UsageInfo(Wire):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    forced_tokens: int = 0
    cached_tokens: int = 0


class Timings(Wire):
    queue_ms: float
    ttft_ms: float
    total_ms: float
    tokens_per_s: float


class DoneEvent(Wire):
    """Terminal: the run ended. `valid` is the verdict of a JSON Schema validator on the finished document."""

    seq: int
    finish_reason: FinishReason
    finish_reasons: list[FinishReason]
    status: Literal["complete", "incomplete"]
    valid: bool
    closed_by_budget: bool = False
    usage: UsageInfo
    timings: Timings


EventName = Literal["start", "delta", "snapshot", "error", "done"]
EVENTS: dict[str, type[Wire]] = {
    "start": StartEvent,
    "delta": DeltaEvent,
    "snapshot": SnapshotEvent,
    "error": ErrorEvent,
    "done": DoneEvent,
}
Event = StartEvent | DeltaEvent | SnapshotEvent | ErrorEvent | DoneEvent
OP: TypeAdapter[Any] = TypeAdapter(Op)
