"""How a WebSocket's connection ends with its server."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's own, which raises where its server stops while the client's farewell is under way.

    The server would end there: no other connection would be told, and nothing of the app be closed.
    """

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except InvalidState:
            self.transport.close()
