"""From errors to answers: the one place where an error becomes a status code and the one error body.

Every answer that is not 2xx holds `{"error": {message, type, param, code}}`; `x-should-retry: false` stands on what would
only fail again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from constrained import errors
from schemas.requests import ErrorBody, ErrorInfo

STATUS: dict[type[Exception], int] = {
    errors.UnknownModelError: 404,
    errors.UnknownRunError: 404,
    errors.UnknownResponseError: 404,
    errors.ExpiredRunError: 410,
    errors.EndedRunError: 409,
    errors.BodyTooLargeError: 413,
    errors.UnauthorizedError: 401,
    errors.CallerError: 400,
    errors.RateLimitError: 429,
    errors.OverloadedError: 503,
    errors.RunLostError: 503,
    errors.ConstrainedError: 500,
}
HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
FRIENDLIER = {"extra_forbidden": "This field is unknown", "missing": "This field is needed"}
RETRIABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504})
INTERNAL_MESSAGE = "The service failed on this request; the fault is ours."


def status_of(error: Exception) -> int:
    """The status code of an error: that of its nearest listed class, else 500."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def error_info(error: Exception) -> ErrorInfo:
    """The error body's inside; of an error of ours nothing is told but that it is ours."""
    status = status_of(error)
    if not isinstance(error, errors.ConstrainedError) or status == 500:
        return ErrorInfo(message=INTERNAL_MESSAGE, type=type_of(500), param=None, code=errors.InternalError.code)
    return ErrorInfo(message=str(error), type=type_of(status), param=place_of(error), code=error.code)


def as_ours(error: Exception) -> errors.ConstrainedError:
    """The error of a run, as one of the project's tree."""
    return error if isinstance(error, errors.ConstrainedError) else errors.InternalError(f"a run failed: {error!r}")


def place_of(error: errors.ConstrainedError) -> str | None:
    """The field or JSON Pointer at fault; a schema's own root, whose pointer is empty, is called `schema`."""
    if isinstance(error, errors.SchemaError):
        return error.place or "schema"
    return error.place


def type_of(status: int) -> str:
    """The error type that the official clients know for a status."""
    if status == 503:
        return "overloaded_error"
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def error_answer(status: int, info: ErrorInfo, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer for one error."""
    answer = JSONResponse(ErrorBody(error=info).model_dump(), status, dict(headers or {}))
    answer.headers["cache-control"] = "no-store"
    if status not in RETRIABLE_STATUS:
        answer.headers["x-should-retry"] = "false"
    if status == 503:
        answer.headers["retry-after"] = "1"
    return answer


def answer_of(error: Exception) -> JSONResponse:
    """The answer for an exception."""
    return error_answer(status_of(error), error_info(error), headers_of(error))


def headers_of(error: Exception) -> dict[str, str]:
    """What an error adds to the head of its answer."""
    if isinstance(error, errors.RateLimitError):
        return {"retry-after": str(ceil(error.retry_after_s))}
    if isinstance(error, errors.UnauthorizedError):
        return {"www-authenticate": "Bearer"}
    return {}


def validation_info(error: RequestValidationError) -> ErrorInfo:
    """The deepest fault that pydantic found (of a union, that of the arm that went furthest) and all it said of that place."""
    faults: dict[tuple[str | int, ...], list[str]] = {}
    for fault in error.errors():
        message = FRIENDLIER.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
        faults.setdefault(_place(fault, error.body), []).append(message)
    place = max(faults, key=len)
    message = "; or: ".join(dict.fromkeys(faults[place]))
    if not isinstance(error.body, dict):
        message = "The body must be a JSON object, sent with content-type application/json"
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    where = f"{param}: " if param else ""
    return ErrorInfo(message=where + message, type=type_of(400), param=param or None, code="invalid_request")


def _place(fault: Mapping[str, Any], body: Any) -> tuple[str | int, ...]:
    """The place of a fault in the body, without the names that pydantic gives to the arms of a union."""
    parts = [part for part in fault["loc"] if part != "body"]
    place: list[str | int] = []
    value = body
    for index, part in enumerate(parts):
        missing = fault["type"] == "missing" and index == len(parts) - 1
        if isinstance(value, dict) and (part in value or missing):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            continue
        place.append(part)
    return tuple(place)


def http_info(error: HTTPException) -> ErrorInfo:
    """The body for what the framework itself refuses: no such route, no such method, a body that cannot be read."""
    code = HTTP_CODES.get(error.status_code, "invalid_request")
    return ErrorInfo(message=str(error.detail), type=type_of(error.status_code), param=None, code=code)


def install(app: FastAPI) -> None:
    """Make every error that a route of `app` raises answer with the one body, and count it."""

    async def on_error(request: Request, error: Exception) -> JSONResponse:
        status, info, headers = _describe(error)
        app.state.metrics.refusals.labels(code=info.code or "").inc()
        return error_answer(status, info, headers)

    for kind in (errors.ConstrainedError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, on_error)


def _describe(error: Exception) -> tuple[int, ErrorInfo, Mapping[str, str] | None]:
    if isinstance(error, RequestValidationError):
        return 400, validation_info(error), None
    if isinstance(error, HTTPException):
        return error.status_code, http_info(error), error.headers
    return status_of(error), error_info(error), headers_of(error)
