"""The errors of the client, in one tree under `constrained.errors.ConstrainedError`.

::

    ClientError
    +-- ApiError                   the service refused the call: `status`, `code`, `param`, `request_id`, `retriable`
    |   +-- BadRequestError        4xx without a class of its own: something in the request
    |   |   +-- SchemaRefusedError the schema; `param` is a JSON Pointer into it, with the keyword at its end
    |   |   +-- EventIdError       no event of this run: another run's, or one that has not been told
    |   |   +-- EditRefusedError   a correction; `param` is its path
    |   |       +-- OpenPathError      the value there is not final yet
    |   |       +-- UnknownPathError   the document has no value there
    |   |       +-- InvalidValueError  the schema does not allow the value there
    |   +-- AuthenticationError    401, 403
    |   +-- NotFoundError          404: unknown model or run
    |   +-- RunEndedError          409, 204: the run has ended; there is nothing to steer or edit, or no event that follows
    |   +-- GoneError              410: the run has expired
    |   +-- RateLimitError         429
    |   +-- ServerError            5xx: the service's fault
    |       +-- UnavailableError   503: full or starting; the caller may try again
    +-- TransportError             no answer: the connection failed
    |   +-- TransportTimeoutError
    +-- IncompleteError            the document is not finished: `partial`, `value`, `finish_reason`
    |   +-- RunFailedError         the run sent an error event: `code`, `path`, `retriable`
    |   +-- DisconnectedError      the stream broke off; also a TransportError: `run`, `last_event_id`, `attempts`
    |       +-- StreamTimeoutError a time limit passed: `phase`; also a TransportTimeoutError
    +-- InvalidAnswerError         the document is finished, and does not validate: `value`
    +-- ProtocolError              the answer is not what the protocol says

An error before the first byte of an answer is an `ApiError` or a `TransportError`; after it, one of the others. What is not
idempotent is never sent twice, whatever `retriable` says: whether to try again is the caller's choice. `BufferingWarning` is
no error: the stream is whole, and came in one burst.
"""

from __future__ import annotations

from typing import Any, Literal

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
    """The service answered with an error. `param` is the JSON Pointer or the field at fault, where the service names one.

    `retry_after_s` is how long the service asks to wait, where it says so.
    """

    def __init__(
        self,
        status: int,
        error: ErrorInfo,
        request_id: str | None = None,
        retriable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        where = f" (param {error.param!r})" if error.param is not None and error.param not in error.message else ""
        super().__init__(f"{status} {error.code or error.type}: {error.message}{where}")
        self.status = status
        self.message = error.message
        self.type = error.type
        self.code = error.code or error.type
        self.param = error.param
        self.request_id = request_id
        self.retriable = retriable
        self.retry_after_s = retry_after_s

    @property
    def place(self) -> str | None:
        return self.param


class BadRequestError(ApiError):
    """Something in the request is wrong; `param` names it."""


class SchemaRefusedError(BadRequestError):
    """The schema is not a schema, uses a keyword that is not built, or admits no value; `param` leads to the place."""


class EventIdError(BadRequestError):
    """The place to go on from is no event of this run."""


class EditRefusedError(BadRequestError):
    """The correction cannot be made; `param` is its path."""


class OpenPathError(EditRefusedError):
    """The value at the path is still being written; it can be corrected once it is closed."""


class UnknownPathError(EditRefusedError):
    """The document has no value at the path."""


class InvalidValueError(EditRefusedError):
    """The schema does not allow the value at the path."""


class AuthenticationError(ApiError):
    """The key is missing or not allowed to do this."""


class NotFoundError(ApiError):
    """No such model, run or address."""


class RunEndedError(ApiError):
    """The run, or the choice that was meant, has ended; or nothing follows the event that was joined behind."""


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
    """The connection broke, stalled past its timeout, or ended without a terminal event.

    `attempts` tells how often the client tried to resume before it gave up; `__cause__` is what went wrong last. A run that
    outlives its reader may still go on: `client.join(error.run)` shows it.
    """

    code = "disconnected"

    def __init__(
        self, message: str, *, partial: Any, value: Any, run: str | None = None, last_event_id: str = "", attempts: int = 0
    ) -> None:
        super().__init__(message, partial=partial, value=value)
        self.run = run
        self.last_event_id = last_event_id
        self.attempts = attempts


TimeoutPhase = Literal["first event", "idle", "total"]


class StreamTimeoutError(DisconnectedError, TransportTimeoutError):
    """A limit of `Timeouts` passed; `phase` says which."""

    code = "timeout"
    phase: TimeoutPhase = "idle"


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


class BufferingWarning(UserWarning):
    """Something between the service and the client holds events back: what was made over seconds came in one burst."""


_BY_CODE: dict[str, type[ApiError]] = {
    **dict.fromkeys(SCHEMA_CODES, SchemaRefusedError),
    "invalid_event_id": EventIdError,
    "edit_refused": EditRefusedError,
    "path_open": OpenPathError,
    "unknown_path": UnknownPathError,
    "invalid_value": InvalidValueError,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    409: RunEndedError,
    410: GoneError,
    429: RateLimitError,
    503: UnavailableError,
}
# A refusal over a WebSocket has no status of its own: it is that of the same refusal over HTTP.
_STATUS_OF_CODE = {
    "model_not_found": 404,
    "run_not_found": 404,
    "run_ended": 409,
    "run_expired": 410,
    "body_too_large": 413,
    "run_lost": 503,
}
_STATUS_OF_TYPE = {"rate_limit_error": 429, "server_error": 500, "overloaded_error": 503}
RETRIABLE_STATUS = frozenset({429, 502, 503, 504})


def api_error_class(status: int, code: str | None) -> type[ApiError]:
    """The class for one answer: by its code where that says more, else by its status."""
    if code in _BY_CODE and status < 500:
        return _BY_CODE[code]
    return _BY_STATUS.get(status, ServerError if status >= 500 else BadRequestError)


def refusal(error: ErrorInfo) -> ApiError:
    """The error of a message that was refused over a WebSocket."""
    status = _STATUS_OF_CODE.get(error.code or "", _STATUS_OF_TYPE.get(error.type, 400))
    return api_error_class(status, error.code)(status, error, retriable=status in RETRIABLE_STATUS)
