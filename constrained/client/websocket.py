"""One WebSocket without a network: bytes of the connection in; events, replies and bytes to send out (RFC 6455).

The frames are the `websockets` library's work; httpx opens the connection, so that its proxies, certificates, headers and
transports serve the WebSocket as they serve everything else. Knows nothing of runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from constrained.client.errors import ProtocolError
from constrained.client.formats import Item, Malformed, read_line
from schemas.socket import Reply

if TYPE_CHECKING:
    from websockets.frames import Frame

VERSION = "13"


class Handshake:
    """The headers that ask for a WebSocket, and the proof that the other side understood."""

    def __init__(self) -> None:
        from websockets.utils import accept_key, generate_key

        key = generate_key()
        self._accept = accept_key(key)
        self.headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-key": key,
            "sec-websocket-version": VERSION,
        }

    def check(self, accept: str | None) -> None:
        """`ProtocolError` unless this is the answer to our key."""
        if accept != self._accept:
            raise ProtocolError("the answer to the WebSocket's handshake is not for its key")


class Conversation:
    """Messages and events of one open connection. `replies` holds those that nobody has taken yet, by the message's id."""

    def __init__(self) -> None:
        from websockets.protocol import CLIENT, Protocol

        self.replies: dict[str, Reply] = {}
        self._protocol = Protocol(CLIENT, max_size=None)
        self._pieces: list[bytes] = []
        self._num_said = 0

    @property
    def close_reason(self) -> str | None:
        """Why the other side closes, once it has said so."""
        close = self._protocol.close_rcvd
        return None if close is None else f"{close.code} {close.reason}".strip()

    def say(self, message: dict[str, Any]) -> str:
        """Queue a message; the id that its reply will carry."""
        self._num_said += 1
        id_ = str(self._num_said)
        self._protocol.send_text(json.dumps({**message, "id": id_}).encode())
        return id_

    def say_goodbye(self) -> None:
        """Queue the end of the connection."""
        from websockets.protocol import OPEN

        if self._protocol.state is OPEN:
            self._protocol.send_close(1000)

    def feed(self, data: bytes) -> list[Item]:
        """The events that end within these bytes; replies are kept. No bytes are the end of the connection."""
        from websockets.frames import Frame

        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        found = (self._take(frame) for frame in self._protocol.events_received() if isinstance(frame, Frame))
        return [item for item in found if item is not None]

    def outgoing(self) -> bytes:
        """What is to be sent now."""
        return b"".join(self._protocol.data_to_send())

    def _take(self, frame: Frame) -> Item | None:
        from websockets.frames import Opcode

        if frame.opcode is Opcode.BINARY:
            return Malformed("a binary message came")
        if frame.opcode not in (Opcode.TEXT, Opcode.CONT):
            return None
        self._pieces.append(bytes(frame.data))
        if not frame.fin:
            return None
        message, self._pieces = b"".join(self._pieces), []
        return self._read(message)

    def _read(self, message: bytes) -> Item | None:
        item = read_line(message)
        if not isinstance(item, Malformed):
            return item
        try:
            reply = Reply.model_validate_json(message)
        except ValidationError:
            return item
        if reply.id is not None:
            self.replies[reply.id] = reply
        return None
