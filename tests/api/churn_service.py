"""A service for the churn test, in a process of its own: an engine with slots, a document for each prompt, and a look inside.

`python -m tests.api.churn_service STEP_S LEAST` prints its port. The engine takes no step before it has had `LEAST` slots at a
time: however slow the machine, so many streams are open together. The prompt of a request is a number, of which its document
is made.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.run_settings import RunSettings
from api.settings import Settings
from constrained.decode.request import Chunk, Usage
from constrained.options import CompileOptions
from tests.api.grammar import compile_with_bytes

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "state": {"enum": ["small", "large"]},
        "words": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["number", "state", "words"],
    "additionalProperties": False,
}
TOKEN_BYTES = 6
KEPT = 256
"""Few of what has ended are kept, so that memory is flat soon."""


def document(number: int) -> dict[str, Any]:
    """The document of one prompt; no two are the same."""
    draw = random.Random(number)
    words = ["".join(draw.choices("abcdefgh \u00fc\u65e5", k=draw.randint(1, 30))) for _ in range(draw.randint(1, 8))]
    return {"number": number, "state": draw.choice(["small", "large"]), "words": words}


def tokens(number: int) -> list[bytes]:
    """Its text, cut anywhere, also inside of characters."""
    data = json.dumps(document(number), ensure_ascii=False, separators=(",", ":")).encode()
    return [data[at : at + TOKEN_BYTES] for at in range(0, len(data), TOKEN_BYTES)]


@dataclass(eq=False)
class Slot:
    """One sequence; it holds its place until the step after its end."""

    tokens: list[bytes]
    take: Callable[[Chunk], None] | None = None
    given: int = 0
    cancelled: bool = False

    def deliver_to(self, take: Callable[[Chunk], None]) -> None:
        self.take = take

    def cancel(self) -> None:
        self.cancelled = True

    def step(self) -> Chunk:
        usage = Usage(1, self.given, queue_ms=1.0, ttft_ms=1.0, total_ms=1.0)
        if self.cancelled:
            return Chunk(b"", (), "cancelled", usage=usage)
        self.given += 1
        data = self.tokens[self.given - 1]
        return Chunk(data, (data[0],), "stop" if self.given == len(self.tokens) else None, usage=usage)


class SlotBackend:
    """Steps all its slots together, again and again, from when there are `least` of them."""

    name = "churn"
    context_len = 4096

    def __init__(self, step_s: float, least: int) -> None:
        self.slots: set[Slot] = set()
        self.most = 0
        self._step_s = step_s
        self._least = least
        self._stepping: asyncio.Task[None] | None = None

    def compile(self, schema: Any, options: CompileOptions) -> Any:
        return compile_with_bytes(schema, options)

    def encode(self, prompt: Any, schema: Any, prefix: bytes = b"", template: Any = None) -> list[int]:
        return [int(prompt)]

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def submit(self, prompt_token_ids: list[int], params: Any, grammar: Any, *, prefix: bytes = b"") -> Any:
        slot = Slot(tokens(prompt_token_ids[0]))
        self.slots.add(slot)
        self.most = max(self.most, len(self.slots))
        if self._stepping is None and self.most >= self._least:
            self._stepping = asyncio.create_task(self._step_for_ever())
        return slot

    async def _step_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._step_s)
            for slot in [each for each in self.slots if each.take is not None]:
                chunk = slot.step()
                if chunk.finish_reason is not None:
                    self.slots.discard(slot)
                assert slot.take is not None
                slot.take(chunk)

    async def close(self) -> None:
        if self._stepping is not None:
            self._stepping.cancel()


def look_inside(app: FastAPI, backend: SlotBackend) -> Callable[[], dict[str, int]]:
    """What the process holds at present."""

    def inside() -> dict[str, int]:
        gc.collect()
        service = app.state.service
        return {
            "tasks": len(asyncio.all_tasks()),
            "slots": len(backend.slots),
            "most_slots": backend.most,
            "live": len(service.live) + len(service.log._live) + len(service.runs._live),
            "objects": len(gc.get_objects()),
            "rss_kb": int(Path("/proc/self/statm").read_text().split()[1]) * 4,
        }

    return inside


def main() -> None:
    backend = SlotBackend(float(sys.argv[1]), int(sys.argv[2]))
    runs = RunSettings(max_finished=KEPT, max_expired=KEPT)
    app = create_app(Settings(runs=runs, finished_runs_kept=KEPT, heartbeat_s=600.0), backend)
    app.router.routes.insert(0, _route(look_inside(app, backend)))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", access_log=False, backlog=2048))

    async def serve() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving

    asyncio.run(serve())


def _route(inside: Callable[[], dict[str, int]]) -> Any:
    from fastapi.routing import APIRoute

    async def answer() -> dict[str, int]:
        return inside()

    return APIRoute("/inside", answer)


if __name__ == "__main__":
    main()
