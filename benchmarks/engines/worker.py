"""One engine in a process of its own: JSON lines in, JSON lines out.

A request is ``{"schema": text, "documents": [[token id, ...], ...]}``. Its answer is ``{"refused": reason, "detail": text}``,
or ``{"ended": reason}`` where the engine fails otherwise, or ``{"ttfm_ns": n, "documents": [...]}`` with, for each document,
``accepted``, ``read`` (tokens accepted), ``error`` and ``tbm_ns``: for each accepted token the time of its accept and of the
mask after it; and ``again_ns``: the same when all documents of the schema are walked once more. A first line tells the
engine's version, how long it took to start, and what the clock itself costs. Judges nothing: it does not know which documents
are valid.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any, TextIO

import numpy as np

from benchmarks.engines import MODULES
from benchmarks.engines.base import Bitmask, CompileRefusal, Engine, Grammar
from benchmarks.vocabularies import read_vocabulary
from constrained.tokens.vocabulary import Vocabulary

CLOCKS: dict[str, Callable[[], int]] = {"wall": perf_counter_ns, "cpu": process_time_ns}
WARM_UP = '{"type": "object", "properties": {"a": {"type": "array", "items": {"type": ["number", "string"]}}}}'
WARM_UP_DOCUMENT = b'{"a": ["x", 1.5]}'


@dataclass(frozen=True, slots=True)
class Options:
    """What a worker is told at its start, as one JSON argument; `tokenizer` is None for a vocabulary of single bytes."""

    engine: str
    vocabulary: Path
    tokenizer: Path | None
    clock: str

    def to_argument(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_argument(cls, argument: str) -> Options:
        told = json.loads(argument)
        tokenizer = None if told["tokenizer"] is None else Path(told["tokenizer"])
        return cls(told["engine"], Path(told["vocabulary"]), tokenizer, told["clock"])


class Measure:
    """Runs documents through an engine and takes the times by `clock` (nanoseconds)."""

    def __init__(self, engine: Engine, vocabulary: Vocabulary, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.engine = engine
        self.clock = clock
        self.eos_token_ids = sorted(vocabulary.eos_token_ids)
        self.bitmask: Bitmask = np.zeros((1, vocabulary.num_words), np.int32)

    def schema(self, text: str, documents: list[list[int]]) -> dict[str, Any]:
        started = self.clock()
        try:
            grammar = self.engine.compile(text)
        except CompileRefusal as refusal:
            return {"refused": refusal.reason, "detail": refusal.detail}
        grammar.sequence().fill(self.bitmask)
        ttfm_ns = self.clock() - started
        walked = [self._document(grammar, document) for document in documents]
        for document, told in zip(documents, walked, strict=True):
            told["again_ns"] = self._document(grammar, document)["tbm_ns"]
        return {"ttfm_ns": ttfm_ns, "documents": walked}

    def _document(self, grammar: Grammar, token_ids: list[int]) -> dict[str, Any]:
        times: list[int] = []
        try:
            accepted, error = self._walk(grammar, token_ids, times)
        except Exception as failure:
            accepted, error = False, f"{type(failure).__name__}: {failure}"
        return {"accepted": accepted, "read": len(times), "error": error, "tbm_ns": times}

    def _walk(self, grammar: Grammar, token_ids: list[int], times: list[int]) -> tuple[bool, str]:
        """Whether each token was allowed in its turn, and the end after the last."""
        sequence, bitmask = grammar.sequence(), self.bitmask
        fill, accept, clock = sequence.fill, sequence.accept, self.clock
        fill(bitmask)
        for token_id in token_ids:
            if not self._allowed(token_id):
                return False, sequence.error()
            started = clock()
            moved = accept(token_id)
            if moved:
                fill(bitmask)
            ended = clock()
            if not moved:
                return False, sequence.error() or "a token that the mask allows was not accepted"
            times.append(ended - started)
        return any(map(self._allowed, self.eos_token_ids)), sequence.error()

    def _allowed(self, token_id: int) -> bool:
        return bool(self.bitmask[0, token_id >> 5] >> (token_id & 31) & 1)


def serve(options: Options, requests: TextIO, answers: TextIO) -> None:
    """Answers requests until their end."""
    started = perf_counter_ns()
    vocabulary = read_vocabulary(options.vocabulary)
    engine: Engine = import_module(MODULES.get(options.engine, options.engine)).ENGINE(vocabulary, options.tokenizer)
    measure = Measure(engine, vocabulary, CLOCKS[options.clock])
    ids = {token: token_id for token_id, token in enumerate(vocabulary.token_bytes)}
    measure.schema(WARM_UP, [[ids[bytes([byte])] for byte in WARM_UP_DOCUMENT]])
    start_s = (perf_counter_ns() - started) / 1e9
    _write(answers, {"version": engine.version, "start_s": start_s, "clock_ns": _clock_cost_ns(measure.clock)})
    for line in requests:
        request = json.loads(line)
        try:
            answer = measure.schema(request["schema"], request["documents"])
        except Exception as failure:
            answer = {"ended": f"exception {type(failure).__name__}: {failure}"}
        used = resource.getrusage(resource.RUSAGE_SELF)
        answer |= {"peak_mb": used.ru_maxrss // 1024, "num_preemptions": used.ru_nivcsw}
        _write(answers, answer)


def _clock_cost_ns(clock: Callable[[], int]) -> int:
    """What two readings of the clock with nothing between them differ by: a part of every time, not taken off."""
    return sorted(-(clock() - clock()) for _ in range(1001))[500]


def _write(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def main() -> None:
    """What the engine itself prints goes to stderr."""
    options = Options.from_argument(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(options, sys.stdin, answers)


if __name__ == "__main__":
    main()
