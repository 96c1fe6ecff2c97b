"""The typed client of the service: schemas or pydantic models go in, deltas, elements and instances come out.

Needs httpx and pydantic, and for WebSockets `websockets`; loads no torch, numba or fastapi. `formats`, `websocket`, `run`,
`session`, `gauge` and `cursors` do no I/O; `sync` and `aio` with their channels and streams are thin shells around them. See
docs/client.md.
"""

from __future__ import annotations

from constrained.client.aio import AsyncClient
from constrained.client.aio_stream import AsyncStream
from constrained.client.answer import Answer
from constrained.client.errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    BufferingWarning,
    ClientError,
    DisconnectedError,
    EditRefusedError,
    EventIdError,
    GoneError,
    IncompleteError,
    InvalidAnswerError,
    InvalidValueError,
    NotFoundError,
    OpenPathError,
    ProtocolError,
    RateLimitError,
    RunEndedError,
    RunFailedError,
    SchemaRefusedError,
    ServerError,
    StreamTimeoutError,
    TransportError,
    TransportTimeoutError,
    UnavailableError,
    UnknownPathError,
)
from constrained.client.partial import Partial, PartialMapping, PartialSequence, unwrap
from constrained.client.replay import replay
from constrained.client.sync import Client
from constrained.client.sync_stream import Stream
from constrained.client.target import Choice, Grammar, Regex
from constrained.client.timeouts import Resume, Timeouts
from constrained.client.unset import UNSET, Unset

__all__ = [
    "UNSET",
    "Answer",
    "ApiError",
    "AsyncClient",
    "AsyncStream",
    "AuthenticationError",
    "BadRequestError",
    "BufferingWarning",
    "Choice",
    "Client",
    "ClientError",
    "DisconnectedError",
    "EditRefusedError",
    "EventIdError",
    "GoneError",
    "Grammar",
    "IncompleteError",
    "InvalidAnswerError",
    "InvalidValueError",
    "NotFoundError",
    "OpenPathError",
    "Partial",
    "PartialMapping",
    "PartialSequence",
    "ProtocolError",
    "RateLimitError",
    "Regex",
    "Resume",
    "RunEndedError",
    "RunFailedError",
    "SchemaRefusedError",
    "ServerError",
    "Stream",
    "StreamTimeoutError",
    "Timeouts",
    "TransportError",
    "TransportTimeoutError",
    "UnavailableError",
    "UnknownPathError",
    "Unset",
    "replay",
    "unwrap",
]
