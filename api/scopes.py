"""What middleware leaves in the scope of a request for those who come after."""

from __future__ import annotations

BODY_SEND = "constrained.body_send"
"""Where the parts of a body may be sent at once, past all middleware that looks at the head of an answer alone."""
