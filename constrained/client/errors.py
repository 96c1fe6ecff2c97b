"""The errors of the client, in one tree under `constrained.errors.ConstrainedError`.

::

    ClientError
    +-- ApiError                   the service refused the call: `status`, `code`, `param`, `request_id`, `retriable`
    |   +-- BadRequestError        4xx without a class of its own: something in the request
    |   |   +-- SchemaRefusedError the schema; `param` is a JSON Pointer into it, with the keyword at its end
    |   +-- AuthenticationError    401, 403
    |   +-- NotFoundError          404: unknown model or run
    |   +-- GoneError              410: the run has expired
    |   +-- RateLimitError         429
    |   +-- ServerError            5xx: the service's fault
    |       +-- UnavailableError   503: full or starting; the caller may try again
    +-- TransportError             no answer: the connection failed
    |   +-- TransportTimeoutError
    +-- IncompleteError            the document is not finished: `partial`, `value`, `finish_reason`
    |   +-- RunFailedError         the run sent an error event: `code`, `path`, `retriable`
    |   +-- DisconnectedError      the stream broke off; also a TransportError
    +-- InvalidAnswerError         the document is finished, and does not validate: `value`
    +-- ProtocolError              the answer is not what the protocol says

An error before the first byte of an answer is an `ApiError` or a `TransportError`; after it, one of the others. The client
never sends a request twice, whatever `retriable` says: whether to try again is the caller's choice.
"""

from __future__ import annotations

from typing import Any

from constrained.errors import ConstrainedError
from schemas.events import ErrorEvent
from schemas.requests import ErrorInfo, StructuredResponse

SCHEMA_CODES = frozenset(
    {"invalid_schema", "unsupported_keyword", "unsatisfiable_schema", "unresolvable_reference", "schema_too_complex"}
)


class ClientError(ConstrainedError):
    """Base of all errors that the client raises."""

    code = "client_error"


class ApiError(ClientError):
    """The service answered with an error. `param` is the JSON Pointer or the field at fault, where the service names one."""

    def __init__(self, status: int, error: ErrorInfo, request_id: str | None = None, retriable: bool = False) -> None:
        where = f" (param {error.param!r})" if error.param is not None and error.param not in error.message else ""
        super().__init__(f"{status} {error.code or error.type}: {error.message}{where}")
        self.status = status
        self.message = error.message
        self.type = error.type
        self.code = error.code or error.type
        self.param = error.param
        self.request_id = request_id
        self.retriable = retriable

    @property
    def place(self) -> str | None:
        return self.param


class BadRequestError(ApiError):
    """Something in the request is wrong; `param` names it."""


class SchemaRefusedError(BadRequestError):
    """The schema is not a schema, uses a keyword that is not built, or admits no value; `param` leads to the place."""


class AuthenticationError(ApiError):
    """The key is missing or not allowed to do this."""


class NotFoundError(ApiError):
    """No such model, run or address."""


class GoneError(ApiError):
    """The run was there, and has expired."""


class RateLimitError(ApiError):
    """Too many requests for now."""


class ServerError(ApiError):
    """The service failed; the request may be right."""


class UnavailableError(ServerError):
    """The service is full, or not ready yet."""


class TransportError(ClientError):
    """The connection failed before an answer began."""

    code = "transport_error"


class TransportTimeoutError(TransportError):
    """The answer did not begin in time."""

    code = "timeout"


class IncompleteError(ClientError):
    """The document is not finished.

    `partial` is the read-only view of what had arrived (as `stream.partial`), `value` the same as plain JSON values, both
    `UNSET` where nothing had begun. `finish_reason` is the service's, or None where it gave none. `response` is the whole
    answer, with its other choices, where the run was not streamed.
    """

    code = "incomplete"

    def __init__(
        self,
        message: str,
        *,
        partial: Any,
        value: Any,
        finish_reason: str | None = None,
        response: StructuredResponse | None = None,
    ) -> None:
        super().__init__(message)
        self.partial = partial
        self.value = value
        self.finish_reason = finish_reason
        self.response = response


class RunFailedError(IncompleteError):
    """The run ended with an error event."""

    def __init__(self, event: ErrorEvent, *, partial: Any, value: Any) -> None:
        super().__init__(f"{event.code}: {event.message}", partial=partial, value=value, finish_reason="error")
        self.code = event.code
        self.path = event.path
        self.retriable = event.retriable

    @property
    def place(self) -> str | None:
        return self.path


class DisconnectedError(IncompleteError, TransportError):
    """The connection broke, stalled past its timeout, or ended without a terminal event."""

    code = "disconnected"


class InvalidAnswerError(ClientError):
    """The document is finished but refused: by the model's own validators (then `__cause__` tells more), or by its schema.

    `value` is the document as plain JSON values.
    """

    code = "invalid_answer"

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message)
        self.value = value


class ProtocolError(ClientError):
    """The answer breaks the protocol: no service of this version, or a proxy in between."""

    code = "protocol_error"


_BY_STATUS: dict[int, type[ApiError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    410: GoneError,
    429: RateLimitError,
    503: UnavailableError,
}


def api_error_class(status: int, code: str | None) -> type[ApiError]:
    """The class for one answer: by its code where that says more, else by its status."""
    if code in SCHEMA_CODES and status < 500:
        return SchemaRefusedError
    return _BY_STATUS.get(status, ServerError if status >= 500 else BadRequestError)
