"""What goes over the WebSocket: messages of the client, and the service's replies. Events go as in JSON Lines.

Every message may carry an `id` of the client's choice, which the reply repeats. `run` may be left out where the connection
has one run that was started or joined last.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from schemas.events import DeltaEvent, DoneEvent, ErrorEvent, EventName, SnapshotEvent, StartEvent, Wire
from schemas.requests import EditRequest, ErrorInfo, RequestWire, SteerRequest, StructuredRequest

MessageOp = Literal["start", "join", "cancel", "steer", "edit"]


class StartMessage(RequestWire):
    """Start a run; its events follow the reply."""

    op: Literal["start"]
    id: str | None = None
    request: StructuredRequest


class JoinMessage(RequestWire):
    """Join or resume a run; `after` is the number of the last event that the client has."""

    op: Literal["join"]
    id: str | None = None
    run: str
    after: int | None = Field(default=None, ge=0)


class CancelMessage(RequestWire):
    """Stop a run."""

    op: Literal["cancel"]
    id: str | None = None
    run: str | None = None


class SteerMessage(SteerRequest):
    """Say something more to a run."""

    op: Literal["steer"]
    id: str | None = None
    run: str | None = None


class EditMessage(EditRequest):
    """Correct a closed value of a run."""

    op: Literal["edit"]
    id: str | None = None
    run: str | None = None


ClientMessage = Annotated[StartMessage | JoinMessage | CancelMessage | SteerMessage | EditMessage, Field(discriminator="op")]
CLIENT_MESSAGE: TypeAdapter[Any] = TypeAdapter(ClientMessage)


class Reply(Wire):
    """What became of one message: `error` says why it was refused, and the connection and its runs go on.

    `reply` and `id` are None where the message could not be read so far. `status` answers a cancel, `seq` a steer or an edit.
    """

    reply: MessageOp | None
    id: str | None = None
    run: str | None = None
    seq: int | None = None
    status: Literal["cancelled", "finished"] | None = None
    error: ErrorInfo | None = None


class EventLine(Wire):
    """One event as a line of JSON, and as a message of the WebSocket."""

    event: EventName
    id: str
    data: Any


class StartLine(EventLine):
    """`start`."""

    event: Literal["start"]
    data: StartEvent


class DeltaLine(EventLine):
    """`delta`."""

    event: Literal["delta"]
    data: DeltaEvent


class SnapshotLine(EventLine):
    """`snapshot`."""

    event: Literal["snapshot"]
    data: SnapshotEvent


class ErrorLine(EventLine):
    """`error`."""

    event: Literal["error"]
    data: ErrorEvent


class DoneLine(EventLine):
    """`done`."""

    event: Literal["done"]
    data: DoneEvent


Line = Annotated[StartLine | DeltaLine | SnapshotLine | ErrorLine | DoneLine, Field(discriminator="event")]
LINE: TypeAdapter[Any] = TypeAdapter(Line)
