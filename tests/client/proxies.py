"""Proxies with bad manners between a client and a service: they cut connections, or hold everything back."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

RESET = struct.pack("ii", 1, 0)  # closing then resets the connection
BURST = b"event: done"


@dataclass
class Proxy:
    """Passes connections on to `target`; the answers of the nth are cut after `budgets[n]` bytes, None is never.

    With `holds` nothing of an answer is passed on before its end has come.
    """

    target: tuple[str, int]
    budgets: Sequence[int | None] = ()
    holds: bool = False
    num_connections: int = 0
    passed: list[int] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                number, self.num_connections = self.num_connections, self.num_connections + 1
                self.passed.append(0)
                server = socket.create_connection(self.target)
                self._open += [client, server]
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(number, client, server), daemon=True).start()

    def close(self) -> None:
        for end in self._open:
            _hang_up(end)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        _hang_up(server)

    def _answer(self, number: int, client: socket.socket, server: socket.socket) -> None:
        budget = self.budgets[number] if number < len(self.budgets) else None
        held = b""
        with suppress(OSError):
            while data := server.recv(65536):
                held += data
                if self.holds and BURST not in held:
                    continue
                part = held if budget is None else held[: budget - self.passed[number]]
                held = b""
                self.passed[number] += len(part)  # before the client has it, who may look then
                client.sendall(part)
                if budget is not None and self.passed[number] >= budget:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET if number % 2 else struct.pack("ii", 0, 0))
                    break
        _hang_up(client)
        _hang_up(server)


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def proxied(url: str, *budgets: int | None, holds: bool = False) -> Iterator[tuple[Proxy, str]]:
    """A running proxy before the service at `url`, and its address."""
    parts = urlsplit(url)
    proxy = Proxy((parts.hostname or "", parts.port or 80), budgets, holds)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=proxy.serve, args=(listener,))
        thread.start()
        try:
            yield proxy, f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            proxy.close()
