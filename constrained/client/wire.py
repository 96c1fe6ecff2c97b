"""What goes over HTTP, as values: bodies of requests, and answers read or turned into errors. Does no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from constrained.client.errors import (
    RETRIABLE_STATUS,
    ApiError,
    EventIdError,
    ProtocolError,
    RunEndedError,
    TransportError,
    TransportTimeoutError,
    api_error_class,
)
from constrained.client.formats import EventStreamFormat, LinesFormat
from constrained.client.target import Target
from constrained.client.timeouts import Timeouts
from schemas.requests import ErrorInfo, Message

STREAM_PATH = "/v1/structured/stream"
STRUCTURED_PATH = "/v1/structured"
SOCKET_PATH = "/v1/structured/ws"
CHECK_PATH = "/v1/schemas/check"
MODELS_PATH = "/v1/models"

Via = Literal["sse", "lines", "websocket"]
"""How the events of a stream travel."""
MEDIA_TYPES: dict[Via, str] = {"sse": "text/event-stream", "lines": "application/x-ndjson"}
FORMATS: dict[Via, type[EventStreamFormat | LinesFormat]] = {"sse": EventStreamFormat, "lines": LinesFormat}

DEFAULT_BASE_URL = "http://127.0.0.1:8000"
DEFAULT_VIA: Via = "sse"
DEFAULT_TIMEOUTS = Timeouts()
CANCEL_TIMEOUTS = Timeouts(connect_s=5.0, first_event_s=5.0)
"""A caller who leaves does not wait long for a service that does not answer."""
NUM_READ_RETRIES = 2

Messages = Sequence[Message | Mapping[str, str]]
Timeout = float | httpx.Timeout | Timeouts
W = TypeVar("W", bound=BaseModel)


class CheckOptions(TypedDict, total=False):
    """Options of a compile, as `schemas.requests.CompileFields` explains them; None is the same as not given.

    `timeout` is for this call instead of the client's.
    """

    timeout: Timeout | None
    whitespace: Literal["flexible", "compact", "indented"] | None
    max_whitespace: int | None
    property_order: Literal["schema", "any"] | None
    spelling: Literal["default", "permissive"] | None
    formats: Literal["assert", "annotate"] | None
    custom_formats: Mapping[str, str] | None
    unknown_formats: Literal["annotate", "refuse"] | None
    nullable: bool | None


class Options(CheckOptions, total=False):
    """Options of a run, as `schemas.requests.StructuredRequest` explains them; the service judges them."""

    model: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    seed: int | None
    n: int | None
    resumable: bool | None
    schema_in_prompt: bool | None
    coalesce_ms: int | None


class StreamOptions(Options, total=False):
    """Options of a stream; `via` is for this one instead of the client's."""

    via: Via | None


class JoinOptions(TypedDict, total=False):
    """Options of a stream that joins a run; in the place of the client's."""

    timeout: Timeout | None
    via: Via | None


@dataclass(frozen=True, slots=True)
class Opening:
    """What opens a stream: a request, and over a WebSocket the first message."""

    via: Via
    method: str
    path: str
    body: dict[str, Any] | None = None
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    message: dict[str, Any] | None = None


def start_opening(via: Via, body: dict[str, Any]) -> Opening:
    """Start a run and read it."""
    if via == "websocket":
        return Opening(via, "GET", SOCKET_PATH, message={"op": "start", "request": body})
    return Opening(via, "POST", STREAM_PATH, body, headers=_reading(via))


def join_opening(via: Via, run: str, after: str | int | None) -> Opening:
    """Read a run that is there, behind the event `after` (an id, or its number alone)."""
    if via == "websocket":
        place = {} if after is None else {"after": _number(run, after)}
        return Opening(via, "GET", SOCKET_PATH, message={"op": "join", "run": run, **place})
    headers = _reading(via)
    params = None
    if after is not None and via == "sse":
        headers["last-event-id"] = after if isinstance(after, str) else f"{run}:{after}"
    elif after is not None:
        params = {"after": str(after)}
    return Opening(via, "GET", run_path(run, "events"), params=params, headers=headers)


def _reading(via: Via) -> dict[str, str]:
    return {"accept": MEDIA_TYPES[via], "accept-encoding": "identity", "cache-control": "no-store"}


def _number(run: str, after: str | int) -> int:
    """The number of an event; `EventIdError` where the id is another run's, which a WebSocket has no way to say."""
    owner, colon, number = str(after).rpartition(":")
    if (colon and owner != run) or not (number.isascii() and number.isdecimal()):
        message = f"after is {after!r}; the id of an event of this run is {run}:<number>"
        raise EventIdError(
            400, ErrorInfo(message=message, type="invalid_request_error", param="after", code="invalid_event_id")
        )
    return int(number)


def run_body(target: Target[Any], messages: Messages | None, prompt: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The body that starts a run."""
    said = None if messages is None else [_message(message) for message in messages]
    return {**target.constraint, **_given(messages=said, prompt=prompt), **_given(**options)}


def check_body(target: Target[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The body that has a schema checked."""
    if target.is_text:
        raise TypeError("only schemas are checked; a regex, a choice or a grammar is compiled by the request that uses it")
    return {**target.constraint, **_given(**options)}


def run_path(run: str, action: Literal["events", "cancel", "steer", "edit"]) -> str:
    return f"{STRUCTURED_PATH}/{quote(run, safe='')}/{action}"


def steer_body(text: str, choice: int | None) -> dict[str, Any]:
    return {"text": text, **_given(choice=choice)}


def edit_body(path: str, value: Any, choice: int) -> dict[str, Any]:
    return {"path": path, "value": value, "choice": choice}


def headers(api_key: str | None, more: Mapping[str, str] | None) -> dict[str, str]:
    """Headers of every request; `more` wins."""
    key = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    return {**key, **(more or {})}


def expect_success(response: httpx.Response) -> None:
    """Raises the `ApiError` of an answer that is not 2xx; its body must have been read."""
    if response.is_success:
        return
    info = _error_info(response)
    retriable = response.status_code in RETRIABLE_STATUS and response.headers.get("x-should-retry") != "false"
    kind = api_error_class(response.status_code, info.code)
    wait_s = _seconds(response.headers.get("retry-after"))
    raise kind(response.status_code, info, response.headers.get("x-request-id"), retriable, wait_s)


def expect_events(response: httpx.Response, via: Via) -> None:
    """`ProtocolError` unless a successful answer is a stream of events as they were asked for.

    `RunEndedError` where the run has told everything, and the caller has it.
    """
    if response.status_code == 204:
        info = ErrorInfo(message="the run has ended, and nothing follows that event", type="no_content", code="run_ended")
        raise RunEndedError(204, info)
    content_type = response.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != MEDIA_TYPES[via]:
        raise ProtocolError(f"the answer is {content_type or 'of no type'}, not {MEDIA_TYPES[via]}")


def may_try_again(method: str, num_failures: int, error: Exception) -> bool:
    """Whether a request that failed is sent once more: one that only reads, and whose failure may pass."""
    if method != "GET" or num_failures > NUM_READ_RETRIES:
        return False
    return not isinstance(error, ApiError) or error.retriable


def read_answer(response: httpx.Response, model: type[W]) -> W:
    """The body of an answer as `model`; raises an `ApiError` or a `ProtocolError`."""
    expect_success(response)
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        raise ProtocolError(f"the answer is not a {model.__name__}: {error}") from error


@contextmanager
def transport_errors() -> Iterator[None]:
    """Turns what httpx raises before an answer into errors of this client."""
    try:
        yield
    except (httpx.TimeoutException, TimeoutError) as error:
        raise TransportTimeoutError(f"no answer in time: {error!r}") from error
    except httpx.RequestError as error:
        raise TransportError(f"no answer: {error!r}") from error


def _message(message: Message | Mapping[str, str]) -> dict[str, str]:
    return message.model_dump() if isinstance(message, Message) else dict(message)


def _given(**fields: Any) -> dict[str, Any]:
    """The fields of a body that have a value; how long to wait and how to carry it is the transport's business."""
    return {name: value for name, value in fields.items() if value is not None and name not in ("timeout", "via")}


def _seconds(retry_after: str | None) -> float | None:
    """A `Retry-After` in seconds; its other form, a date, is not the service's."""
    return float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdecimal() else None


def _error_info(response: httpx.Response) -> ErrorInfo:
    """The error that the body tells, read leniently: a proxy's answer need not be the service's."""
    fallback = response.text[:200].strip() or response.reason_phrase or "no explanation"
    try:
        error = json.loads(response.content)["error"]
        told = {name: str(error[name]) for name in ("message", "type", "param", "code") if error.get(name) is not None}
    except (ValueError, KeyError, TypeError, AttributeError):
        told = {}
    return ErrorInfo(**{"message": fallback, "type": "http_error", **told})
