"""Ports for programs that take theirs as an argument."""

from __future__ import annotations

import socket
from random import SystemRandom

# Below the range from which the system serves whoever asks for any port: no connection of another test takes it meanwhile.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A port on which nobody listens."""
    for port in SystemRandom().sample(_PORTS, 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
