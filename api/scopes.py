"""What middleware leaves for those who come after: in the scope of a request, or for all that is done for it."""

from __future__ import annotations

from contextvars import ContextVar

KEY: ContextVar[str | None] = ContextVar("key", default=None)
"""The name of the request's API key; None where the service has no keys."""
BODY_SEND = "constrained.body_send"
"""Where the parts of a body may be sent at once, past all middleware that looks at the head of an answer alone."""
