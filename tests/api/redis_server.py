"""A real redis-server, from Debian's package of that name, for the tests of the event log."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from tests.api.server import wait_until
from tests.ports import free_port

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed; Debian's package redis-server has it"
)


class RedisServer:
    """Keeps nothing on disk: what it loses when it stops is lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self._folder),
        ]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        wait_until(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    def client(self) -> Redis:
        return Redis.from_url(self.url, decode_responses=True)
