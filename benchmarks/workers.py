"""Engines as child processes with a hard time limit per schema: one that hangs or dies is ended, counted, started anew."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Any

from benchmarks.engines.worker import Options

ROOT = Path(__file__).resolve().parents[1]
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON", "VECLIB")
START_LIMIT_S = 900.0  # a first start compiles every kernel


class WorkerEndedError(Exception):
    """The worker did not answer; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Worker:
    """One engine over one vocabulary. `cpu`: the only core that it may use."""

    options: Options
    limit_s: float
    cpu: int | None = None
    version: str = ""
    start_s: float = 0.0
    clock_ns: int = 0
    peak_mb: int = 0
    num_preemptions: int = 0
    num_starts: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _said: IO[bytes] | None = None

    @property
    def engine(self) -> str:
        return self.options.engine

    def start(self) -> None:
        environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in THREADS} | {"TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-m", "benchmarks.engines.worker", self.options.to_argument()]
        self._said = TemporaryFile()  # noqa: SIM115  closed by `stop`
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self._buffer.clear()
        if self.cpu is not None:
            os.sched_setaffinity(self._process.pid, {self.cpu})
        self.num_starts += 1
        hello = self._read(START_LIMIT_S)
        self.version, self.start_s, self.clock_ns = hello["version"], hello["start_s"], hello["clock_ns"]

    def ask(self, schema: str, documents: list[list[int]]) -> dict[str, Any]:
        """The worker's answer, or ``{"ended": reason}`` where it gave none."""
        try:
            if self._process is None:
                self.start()
            self._send({"schema": schema, "documents": documents})
            answer = self._read(self.limit_s)
        except WorkerEndedError as ended:
            self.stop()
            return {"ended": ended.reason}
        self.peak_mb = max(self.peak_mb, answer["peak_mb"])
        self.num_preemptions = answer["num_preemptions"]
        return answer

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._said):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerEndedError(self._died()) from None

    def _read(self, limit_s: float) -> dict[str, Any]:
        """One line; a long line arrives in many pieces, and the limit holds for all of it."""
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = monotonic() + limit_s
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._buffer[-1:]:
                if not selector.select(max(0.0, deadline - monotonic())):
                    raise WorkerEndedError(f"over the limit of {limit_s:g} s")
                piece = os.read(descriptor, 1 << 20)
                if not piece:
                    raise WorkerEndedError(self._died())
                self._buffer += piece
        line = bytes(self._buffer)
        self._buffer.clear()
        return dict(json.loads(line))

    def _died(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        reason = f"killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
        assert self._said is not None
        self._said.seek(0)
        last_words = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"{reason}: {last_words}" if last_words else reason
