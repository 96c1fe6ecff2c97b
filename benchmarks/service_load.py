"""Reads many event streams at once, as cheaply as Python can: bytes are kept with the time of their coming, and no more.

What they say is looked at afterwards (`Stream.frames`). Also starts the process of a side, and speaks with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120.0
_SEQ = re.compile(rb'"seq":(\d+),')


class Side:
    """The process that is measured."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port: int = self._read()["ready"]

    def tell(self, **command: Any) -> Any:
        """Send one command; its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    async def steps(self, num_steps: int, interval_ms: float, num_chars: int) -> list[float]:
        """Let the engine take steps, while streams are read here; when each was."""
        command = {"do": "steps", "steps": num_steps, "interval_ms": interval_ms, "chars": num_chars}
        return list((await asyncio.to_thread(self.tell, **command))["times"])

    def cpu_ns(self) -> int:
        """What the process has used, but for the engine's thread."""
        told = self.tell(do="cpu")
        return int(told["process_ns"] - told["engine_ns"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the side under measurement has ended; its errors are above")
        return json.loads(line)


@contextlib.contextmanager
def side(name: str, document: str, frames: list[str] | None = None, **settings: Any) -> Iterator[Side]:
    """A running side; its engine gives `document`, and `frames` are what the bare one sends."""
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        task.write_text(json.dumps({"side": name, "document": document, "frames": frames or [], "settings": settings}))
        command = [sys.executable, "-m", "benchmarks.service_side", str(task)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield Side(process)
        finally:
            process.kill()  # it would wait for its streams
            process.communicate()


@dataclass(slots=True)
class Stream(asyncio.Protocol):
    """One response as it comes."""

    request: bytes
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    num_events: int = 0
    is_over: bool = False

    def connection_made(self, transport: Any) -> None:
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.pieces.append((time.monotonic(), data))
        self.num_events += data.count(b"\n\n")

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True

    @property
    def seq(self) -> int:
        """The last operation that came."""
        end = b""
        for _, piece in reversed(self.pieces):
            end = piece + end
            if found := _SEQ.findall(end):
                return int(found[-1])
        return 0

    def frames(self) -> list[tuple[float, str]]:
        """(time, text) of every event, when its last byte came."""
        frames: list[tuple[float, str]] = []
        rest = ""
        for at, piece in self._unchunked():
            *whole, rest = (rest + piece).split("\n\n")
            frames.extend((at, text + "\n\n") for text in whole)
        return frames

    def _unchunked(self) -> Iterator[tuple[float, str]]:
        """The body, out of HTTP's chunks."""
        data = bytearray()
        in_body = False
        for at, piece in self.pieces:
            data += piece
            if not in_body and (end := data.find(b"\r\n\r\n")) >= 0:
                assert data.startswith(b"HTTP/1.1 200"), bytes(data[:1000])
                del data[: end + 4]
                in_body = True
            body = bytearray()
            while in_body and (end := data.find(b"\r\n")) >= 0:
                size = int(data[:end], 16)
                if len(data) < end + 2 + size + 2:
                    break
                body += data[end + 2 : end + 2 + size]
                del data[: end + 2 + size + 2]
            if body:
                yield at, body.decode()


async def open_streams(port: int, num_streams: int, path: str, body: Any) -> list[Stream]:
    """That many streams, each of which has begun."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    streams = []
    for _ in range(num_streams):
        _, stream = await loop.create_connection(lambda: Stream(head.encode() + content), "127.0.0.1", port)
        streams.append(stream)
    await until(lambda: all(stream.num_events for stream in streams))
    return streams


async def until(holds: Any) -> None:
    """Wait for what comes; an error where it does not."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError("what was waited for did not come")
        await asyncio.sleep(0.01)
