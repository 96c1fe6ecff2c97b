"""A service under measurement, in a process of its own: the real app, or a bare response, over an engine of fixed tokens.

The engine has a thread of its own and hands its chunks over as the real one does, one wake-up for each step; what they hold
is cut from a document that was fixed beforehand. It takes its steps when it is told to: commands come as lines of JSON on
standard input, each is answered by one on standard output.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from api.app import create_app
from api.server import GracefulServer
from api.settings import Settings
from constrained import CompileOptions, Vocabulary, compile_json_schema
from constrained.decode import async_engine
from constrained.decode.options import EngineOptions
from constrained.decode.request import Chunk, Usage

READY = "ready"


@dataclass(eq=False, slots=True)
class FixedSequence:
    """How far one generation has come in the document."""

    owner: Any
    at: int = 0
    num_tokens: int = 0
    cancelled: bool = False


class FixedEngine:
    """Gives every sequence the same document; what a `Generation` asks of its engine, and no more."""

    def __init__(self, document: bytes) -> None:
        self.options = EngineOptions()
        self._document = document
        self._sequences: list[FixedSequence] = []

    def submit(self) -> async_engine.Generation:
        generation = async_engine.Generation(asyncio.get_running_loop(), self)  # type: ignore[arg-type]
        sequence = FixedSequence(generation)
        generation.start(sequence)  # type: ignore[arg-type]
        self._sequences.append(sequence)
        return generation

    def cancel(self, sequence: FixedSequence) -> None:
        sequence.cancelled = True

    def pause(self, sequence: FixedSequence) -> Any:
        raise AssertionError(f"a reader fell behind at byte {sequence.at}")

    def resume(self, sequence: FixedSequence) -> None:
        return

    def steps(self, num_steps: int, interval_s: float, num_chars: int) -> list[float]:
        """That many steps, one token of `num_chars` to each sequence in each; when they were handed over."""
        times = []
        due = time.monotonic()
        for _ in range(num_steps):
            delivery = [(sequence, self._chunk(sequence, num_chars)) for sequence in self._sequences]
            self._sequences = [s for (s, chunk) in delivery if chunk.finish_reason is None]
            times.append(time.monotonic())
            async_engine._deliver(delivery)  # type: ignore[arg-type]  # the real one, since it is part of the way
            due = max(due + interval_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        return times

    def _chunk(self, sequence: FixedSequence, num_chars: int) -> Chunk:
        data = self._document[sequence.at : sequence.at + num_chars]
        sequence.at += len(data)
        sequence.num_tokens += 1
        usage = Usage(1, sequence.num_tokens, queue_ms=1.0, ttft_ms=2.0, total_ms=3.0)
        reason = "cancelled" if sequence.cancelled else "stop" if sequence.at == len(self._document) else None
        return Chunk(data, (data[0],), reason, usage=usage)


class FixedBackend:
    """The service's view of that engine."""

    name = "fixed"
    context_len = 1 << 22

    def __init__(self, engine: FixedEngine) -> None:
        self._engine = engine
        self._vocabulary = Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), b""], [256])

    def compile(self, schema: Any, options: CompileOptions) -> Any:
        return compile_json_schema(schema, self._vocabulary, options)

    def encode(self, prompt: Any, schema: Any, prefix: bytes = b"", template: Any = None) -> list[int]:
        return [0]

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def submit(self, prompt_token_ids: list[int], params: Any, grammar: Any, *, prefix: bytes = b"") -> Any:
        return self._engine.submit()

    async def close(self) -> None:
        return


def bare_app(engine: FixedEngine, frames: list[str]) -> FastAPI:
    """One route that streams ready bytes, those of one token whenever the engine gives one."""
    app = FastAPI()
    ready = [frame.encode() for frame in frames]

    @app.post("/v1/structured/stream")
    async def stream(body: dict[str, Any]) -> StreamingResponse:
        generation = engine.submit()

        async def deltas() -> AsyncIterator[bytes]:
            yield b"event: start\n\n"
            num_given = 0
            async for chunk in generation:
                if data := b"".join(ready[num_given : num_given + len(chunk.token_ids)]):
                    yield data
                num_given += len(chunk.token_ids)

        return StreamingResponse(deltas(), media_type="text/event-stream")

    return app


def obey(engine: FixedEngine, command: dict[str, Any]) -> dict[str, Any]:
    """Do what a line asks: take steps, or tell the time on the processor, that of this thread, the engine's, apart."""
    if command["do"] == "cpu":
        return {"process_ns": time.process_time_ns(), "engine_ns": time.thread_time_ns()}
    return {"times": engine.steps(command["steps"], command["interval_ms"] / 1000, command["chars"])}


def main() -> None:
    """`python -m benchmarks.service_side TASK`: a JSON file with `side`, `document`, and the `frames` of the bare response."""
    task = json.loads(Path(sys.argv[1]).read_text())
    engine = FixedEngine(task["document"].encode())
    if task["side"] == "bare":
        bare = bare_app(engine, task["frames"])
        server = uvicorn.Server(uvicorn.Config(bare, port=0, log_level="critical", access_log=False))
    else:
        settings = Settings(port=0, **task["settings"])
        server = GracefulServer(create_app(settings, FixedBackend(engine)), settings)
    thread = threading.Thread(target=_command, args=(engine, server), daemon=True)
    thread.start()
    server.run()


def _command(engine: FixedEngine, server: uvicorn.Server) -> None:
    """This thread is the engine's."""
    while not server.started:
        time.sleep(0.01)
    print(json.dumps({READY: server.servers[0].sockets[0].getsockname()[1]}), flush=True)
    for line in sys.stdin:
        print(json.dumps(obey(engine, json.loads(line))), flush=True)
    server.should_exit = True


if __name__ == "__main__":
    main()
