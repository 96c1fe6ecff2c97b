"""500 streams at a time that come, go and break off: nothing is lost, doubled or mixed up, and nothing stays behind.

About 20 seconds; `CHURN_ROUNDS=9` in the environment makes it a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from constrained import CompileOptions
from constrained.stream import DeltaStream, Fold, Op, Text, coalesce, from_wire
from tests.api.churn_service import SCHEMA, document, tokens
from tests.api.grammar import compile_with_bytes
from tests.api.server import DEADLINE_S

NUM_STREAMS = 500
BREAK_SHARE = 0.2
RESUMED_SHARE = 0.5  # of those that break off
NUM_ROUNDS = int(os.environ.get("CHURN_ROUNDS", "3"))  # runs, one after the other, of each stream
STEP_S = 0.15
ROOT_LOCATION = compile_with_bytes(SCHEMA, CompileOptions()).root
ROOT = Path(__file__).parents[2]


@contextmanager
def churn_service() -> Iterator[int]:
    """The port of the service, in a process of its own."""
    command = [sys.executable, "-m", "tests.api.churn_service", str(STEP_S), str(round(0.9 * NUM_STREAMS))]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


class Churn:
    """Everyone who reads."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._draw = random.Random(seed)
        self._numbers = count(1000 * seed)
        self.num = Counter[str]()

    async def go_on(self, num_rounds: int) -> None:
        """Keep `NUM_STREAMS` open, each for so many runs, and wait for the last of them."""
        await asyncio.gather(*(self._come_and_go(num_rounds) for _ in range(NUM_STREAMS)))

    async def _come_and_go(self, num_rounds: int) -> None:
        await asyncio.sleep(self._draw.random())
        for _ in range(num_rounds):
            await self._one(next(self._numbers))

    async def _one(self, number: int) -> None:
        """One run: to its end, or broken off somewhere, and perhaps taken up again."""
        breaks = self._draw.random() < BREAK_SHARE
        resumed = breaks and self._draw.random() < RESUMED_SHARE
        after = self._draw.randrange(0, 20) if breaks else None
        told = Told(number)
        body = {"schema": SCHEMA, "prompt": str(number), "coalesce_ms": self._draw.choice([0, 16]), "resumable": resumed}
        content = json.dumps(body).encode()
        fields = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(content)}"
        head = f"POST /v1/structured/stream HTTP/1.1\r\n{fields}"
        await self._read(f"{head}\r\n\r\n".encode() + content, told, after)
        self.num["broken" if breaks and not told.is_over else "whole"] += 1
        if resumed and told.run and not told.is_over:
            await asyncio.sleep(self._draw.random())
            head = f"GET /v1/structured/{told.run}/events HTTP/1.1\r\nhost: x\r\nlast-event-id: {told.run}:{told.seq}"
            await self._read(f"{head}\r\n\r\n".encode(), told, None)
            self.num["resumed"] += 1
        told.check(whole=told.is_over)
        assert told.is_over or (breaks and not resumed) or not told.run

    async def _read(self, request: bytes, told: Told, after: int | None) -> None:
        """Read to the end, or `after` so many events break off without a word."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(request)
            if after == 0:
                await asyncio.sleep(self._draw.random() * STEP_S)
                return
            async with aclosing(_events(reader)) as events:
                async for event in events:
                    told.take(event)
                    if told.is_over or told.num_events == after:
                        return
        finally:
            writer.transport.abort()


class Told:
    """What one reader was told of one run."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.run = ""
        self.seq = -1
        self.is_over = False
        self.num_events = 0
        self._ops: list[Op] = []
        self._fold = Fold()

    def take(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        run, _, seq = fields["id"].rpartition(":")
        data = json.loads(fields["data"])
        assert self.run in ("", run)
        assert int(seq) > self.seq, "events come in order, and none comes twice"
        assert not self.is_over
        self.run, self.seq, self.num_events = run, int(seq), self.num_events + 1
        if fields["event"] == "delta":
            assert data["seq"] == self.seq
            for op in map(from_wire, data["ops"]):
                self._fold.apply(op)  # which refuses what the protocol does not allow here
                self._ops.append(op)
        elif fields["event"] == "done":
            assert (data["status"], data["valid"]) == ("complete", True)
            self.is_over = True
        else:
            assert fields["event"] == "start", text

    def check(self, *, whole: bool) -> None:
        """What came is the document's operations, or their beginning."""
        expected, ops = coalesce(_expected_ops(self.number)), coalesce(self._ops)
        if whole:
            assert self._fold.value == document(self.number)
            assert ops == expected
        elif ops:
            *before, last = ops
            assert before == expected[: len(before)]
            wanted = expected[len(before)]
            assert last == wanted or (isinstance(last, Text) and isinstance(wanted, Text) and wanted.add.startswith(last.add))


def _expected_ops(number: int) -> list[Op]:
    stream = DeltaStream(ROOT_LOCATION)
    return [op for token in tokens(number) for op in stream.feed(token)]


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """The events of a chunked answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    rest = ""
    while size := int(await reader.readline(), 16):
        *whole, rest = (rest + (await reader.readexactly(size + 2))[:-2].decode()).split("\n\n")
        for event in whole:
            yield event
    assert not rest


def settled(client: httpx.Client, num_tasks: int) -> dict[str, int]:
    """What the service holds once it holds no run any more, and no task beyond those that it had before the first."""
    end = time.monotonic() + DEADLINE_S
    while True:
        inside: dict[str, int] = client.get("/inside").json()
        if not inside["slots"] and not inside["live"] and inside["tasks"] <= num_tasks:
            return inside
        assert time.monotonic() < end, inside
        time.sleep(0.2)


def test_streams_that_come_and_go_leave_nothing_behind() -> None:
    with churn_service() as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE_S) as client:
        told: list[Any] = []
        client.get("/metrics").raise_for_status()  # a task for the connection
        num_tasks = client.get("/inside").json()["tasks"] + 1  # that of the steps
        for phase, share in enumerate((1 / 3, 2 / 3), 1):
            churn = Churn(port, phase)
            asyncio.run(churn.go_on(round(share * NUM_ROUNDS)))
            told.append(settled(client, num_tasks))
            assert churn.num["broken"] > NUM_STREAMS * BREAK_SHARE / 4
            assert churn.num["resumed"] > 0
        first, last = told
        assert last["most_slots"] >= 0.9 * NUM_STREAMS
        assert last["objects"] < 1.02 * first["objects"]
        assert last["rss_kb"] < 1.1 * first["rss_kb"]
        metrics = client.get("/metrics").text
        for name in ("running_sequences", "waiting_sequences", "invalid_documents_total"):
            assert f"constrained_{name} 0.0" in metrics
