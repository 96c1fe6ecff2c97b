"""What goes over HTTP, as values: bodies of requests, and answers read or turned into errors. Does no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from constrained.client.errors import ProtocolError, TransportError, TransportTimeoutError, api_error_class
from constrained.client.target import Target
from schemas.requests import ErrorInfo, Message

STREAM_PATH = "/v1/structured/stream"
STRUCTURED_PATH = "/v1/structured"
CHECK_PATH = "/v1/schemas/check"
MODELS_PATH = "/v1/models"
EVENT_STREAM = "text/event-stream"
STREAM_HEADERS = {"accept": EVENT_STREAM, "accept-encoding": "identity", "cache-control": "no-store"}

DEFAULT_BASE_URL = "http://127.0.0.1:8000"
DEFAULT_TIMEOUT = httpx.Timeout(10.0, read=600.0)

RETRIABLE_STATUS = frozenset({429, 503})

Messages = Sequence[Message | Mapping[str, str]]
Timeout = float | httpx.Timeout
W = TypeVar("W", bound=BaseModel)


class CheckOptions(TypedDict, total=False):
    """Options of a compile; None is the same as not given. `timeout` is for this call instead of the client's."""

    timeout: Timeout | None
    whitespace: Literal["flexible", "compact", "indented"] | None
    property_order: Literal["schema", "any"] | None


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


def run_body(target: Target[Any], messages: Messages | None, prompt: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The body that starts a run."""
    said = None if messages is None else [_message(message) for message in messages]
    return {"schema": target.schema, **_given(messages=said, prompt=prompt), **_given(**options)}


def check_body(target: Target[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The body that has a schema checked."""
    return {"schema": target.schema, **_given(**options)}


def cancel_path(run: str) -> str:
    return f"{STRUCTURED_PATH}/{run}/cancel"


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
    raise kind(response.status_code, info, response.headers.get("x-request-id"), retriable)


def expect_events(response: httpx.Response) -> None:
    """`ProtocolError` unless a successful answer is an event stream."""
    content_type = response.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != EVENT_STREAM:
        raise ProtocolError(f"the answer is {content_type or 'of no type'}, not {EVENT_STREAM}")


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
    except httpx.TimeoutException as error:
        raise TransportTimeoutError(f"no answer in time: {error!r}") from error
    except httpx.RequestError as error:
        raise TransportError(f"no answer: {error!r}") from error


def _message(message: Message | Mapping[str, str]) -> dict[str, str]:
    return message.model_dump() if isinstance(message, Message) else dict(message)


def _given(**fields: Any) -> dict[str, Any]:
    """The fields of a body that have a value; a timeout is the transport's business."""
    return {name: value for name, value in fields.items() if value is not None and name != "timeout"}


def _error_info(response: httpx.Response) -> ErrorInfo:
    """The error that the body tells, read leniently: a proxy's answer need not be the service's."""
    fallback = response.text[:200].strip() or response.reason_phrase or "no explanation"
    try:
        error = json.loads(response.content)["error"]
        told = {name: str(error[name]) for name in ("message", "type", "param", "code") if error.get(name) is not None}
    except (ValueError, KeyError, TypeError, AttributeError):
        told = {}
    return ErrorInfo(**{"message": fallback, "type": "http_error", **told})
