"""The end of a WebSocket's connection, step by step: whatever state it is in, its server can stop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from api.ws_protocol import WebSocketProtocol

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n"
)
CLOSE = bytes([0x88, 0x82]) + bytes(4) + (1000).to_bytes(2)


class Line:
    """A transport that closes when it likes: its connection is lost later, as over TLS."""

    def __init__(self) -> None:
        self.written = b""
        self.num_closed = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.num_closed += 1

    def is_closing(self) -> bool:
        return self.num_closed > 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


async def app(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.mark.parametrize("says_farewell", [False, True])
def test_a_server_stops_whether_or_not_the_client_is_just_leaving(says_farewell: bool) -> None:
    async def scene() -> None:
        config, state, line = uvicorn.Config(app, lifespan="off"), ServerState(), Line()
        config.load()
        protocol = WebSocketProtocol(config, state, {})
        transport: Any = line
        protocol.connection_made(transport)
        protocol.data_received(HANDSHAKE)
        while b"101 Switching" not in line.written:
            await asyncio.sleep(0)
        if says_farewell:
            protocol.data_received(CLOSE)
        protocol.shutdown()
        assert line.num_closed > 0
        protocol.connection_lost(None)
        await asyncio.wait(state.tasks)
        assert not state.connections

    asyncio.run(scene())
