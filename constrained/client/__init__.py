"""The typed client of the service: schemas or pydantic models go in, deltas, elements and instances come out.

Needs httpx and pydantic; loads no torch, numba or fastapi. `run`, `cursors` and `sse` do no I/O; `sync` and `aio` are thin
shells around them. See docs/client.md.
"""

from __future__ import annotations

from constrained.client.aio import AsyncClient, AsyncStream
from constrained.client.answer import Answer
from constrained.client.errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    ClientError,
    DisconnectedError,
    GoneError,
    IncompleteError,
    InvalidAnswerError,
    NotFoundError,
    ProtocolError,
    RateLimitError,
    RunFailedError,
    SchemaRefusedError,
    ServerError,
    TransportError,
    TransportTimeoutError,
    UnavailableError,
)
from constrained.client.partial import Partial, PartialMapping, PartialSequence, unwrap
from constrained.client.sync import Client, Stream
from constrained.client.unset import UNSET, Unset

__all__ = [
    "UNSET",
    "Answer",
    "ApiError",
    "AsyncClient",
    "AsyncStream",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ClientError",
    "DisconnectedError",
    "GoneError",
    "IncompleteError",
    "InvalidAnswerError",
    "NotFoundError",
    "Partial",
    "PartialMapping",
    "PartialSequence",
    "ProtocolError",
    "RateLimitError",
    "RunFailedError",
    "SchemaRefusedError",
    "ServerError",
    "Stream",
    "TransportError",
    "TransportTimeoutError",
    "UnavailableError",
    "Unset",
    "unwrap",
]
