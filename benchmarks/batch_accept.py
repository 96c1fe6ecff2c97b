"""One step of a batch, the mask of every sequence and one token accepted by each: our batch call, our matchers, llguidance.

256 sequences go through valid documents of 20 MaskBench schemas again and again; a sequence at its end begins anew between
two steps, outside of the clock. Everything has been seen before (one whole pass, unmeasured), so what is measured is the
warm step. One process, one thread, the sides in turn, step by step.

What the sides hand over differs, in llguidance's disfavour as little as can be: our sides give row ids, since a row that was
seen lies on the device already; llguidance writes its mask into one row of host memory, for which it has no other call.

Every token must be allowed and accepted, and each row of the batch call must be the row of a matcher that goes alone; else
the exit status is 1. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from benchmarks import vocabularies
from benchmarks.cases import build_case, read_rows, sample
from benchmarks.mask_time import DATA, about_machine
from benchmarks.vocabularies import NamedVocabulary
from constrained import BatchMatcher, CompiledGrammar, Matcher, compile_json_schema
from constrained.errors import SchemaError

CLOCKS: dict[str, Callable[[], int]] = {"wall": time.perf_counter_ns, "cpu": time.thread_time_ns}
Tokens = Any  # list[int], or an int32 array
NUM_DRAWN = 400  # schemas among which `NUM_SCHEMAS` are sought that every side compiles, with a document of some length
MIN_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Job:
    """A schema, compiled and as text, and the tokens of a document that it lets through."""

    schema: str
    grammar: CompiledGrammar
    token_ids: list[int]


class Side(Protocol):
    """One way to step all sequences."""

    def as_tokens(self, token_ids: list[int]) -> Tokens:
        """The form in which it wants what was sampled; outside of the clock."""

    def start(self, index: int) -> None:
        """Sequence `index` stands at the beginning of its document."""

    def step(self, token_ids: Tokens) -> bool:
        """The timed part: all masks, then one token each; whether all were accepted."""

    def allows(self, token_ids: Tokens) -> bool:
        """Whether each token is in its sequence's mask; asked before the step, outside of the clock."""


class Batch:
    """Our batch call."""

    def as_tokens(self, token_ids: list[int]) -> Tokens:
        return np.array(token_ids, np.int32)

    def __init__(self, jobs: Sequence[Job], vocabulary: NamedVocabulary) -> None:
        self.jobs = jobs
        self.batch = BatchMatcher(vocabulary.vocabulary, len(jobs))
        self.slots = np.array([self.batch.add(job.grammar.matcher()) for job in jobs], np.int32)

    def start(self, index: int) -> None:
        self.batch.remove(int(self.slots[index]))
        self.slots[index] = self.batch.add(self.jobs[index].grammar.matcher())

    def step(self, token_ids: Tokens) -> bool:
        self.batch.row_ids(self.slots)
        return bool(self.batch.accept_tokens(self.slots, token_ids).all())

    def allows(self, token_ids: Tokens) -> bool:
        ids = self.batch.row_ids(self.slots)
        alone = [self.batch.matcher(slot).fork().mask_row() for slot in self.slots.tolist()]
        self.batch.row_ids(self.slots)
        return all(row.id == id_ and _has(row.words, token) for row, id_, token in zip(alone, ids, token_ids, strict=True))


class Loop:
    """One matcher after another."""

    def as_tokens(self, token_ids: list[int]) -> Tokens:
        return token_ids

    def __init__(self, jobs: Sequence[Job], _: NamedVocabulary) -> None:
        self.jobs = jobs
        self.matchers: list[Matcher] = [job.grammar.matcher() for job in jobs]

    def start(self, index: int) -> None:
        self.matchers[index] = self.jobs[index].grammar.matcher()

    def step(self, token_ids: Tokens) -> bool:
        _ = [matcher.mask_row().id for matcher in self.matchers]
        return sum(matcher.accept_token(t) for matcher, t in zip(self.matchers, token_ids, strict=True)) == len(token_ids)

    def allows(self, token_ids: Tokens) -> bool:
        return all(_has(matcher.mask_row().words, t) for matcher, t in zip(self.matchers, token_ids, strict=True))


class LLGuidance:
    """llguidance's matchers, one after another."""

    def as_tokens(self, token_ids: list[int]) -> Tokens:
        return token_ids

    def __init__(self, jobs: Sequence[Job], vocabulary: NamedVocabulary) -> None:
        from llguidance.numpy import fill_next_token_bitmask

        from benchmarks.engines.llguidance_engine import LLEngine

        self.fill = fill_next_token_bitmask
        engine = LLEngine(vocabulary.vocabulary, vocabulary.tokenizer_file)
        compiled = {job.schema: engine.compile(job.schema).matcher for job in jobs}
        self.matchers = [compiled[job.schema].deep_copy() for job in jobs]
        self.bitmask = np.zeros((1, vocabulary.vocabulary.num_words), np.int32)

    def start(self, index: int) -> None:
        self.matchers[index].reset()

    def step(self, token_ids: Tokens) -> bool:
        for matcher in self.matchers:
            self.fill(matcher, self.bitmask, 0)
        return sum(matcher.consume_token(t) for matcher, t in zip(self.matchers, token_ids, strict=True)) == len(token_ids)

    def allows(self, token_ids: Tokens) -> bool:
        for matcher, token in zip(self.matchers, token_ids, strict=True):
            self.fill(matcher, self.bitmask, 0)
            if not _has(self.bitmask[0], token):
                return False
        return True


SIDES: dict[str, Callable[[Sequence[Job], NamedVocabulary], Side]] = {"batch": Batch, "loop": Loop, "llguidance": LLGuidance}


def _has(words: Any, token: int) -> bool:
    return bool(words[token >> 5] >> (token & 31) & 1)


def find_jobs(rows: Sequence[dict[str, Any]], vocabulary: NamedVocabulary, names: Sequence[str], wanted: int) -> list[Job]:
    """The first `wanted` schemas that all sides compile, each with its longest valid document."""
    jobs: list[Job] = []
    for row in rows:
        case = build_case(row, vocabulary)
        documents = sorted((d.token_ids for d in case.documents if d.valid), key=len)
        if not documents or len(documents[-1]) < MIN_TOKENS:
            continue
        try:
            grammar = compile_json_schema(json.loads(case.schema), vocabulary.vocabulary)
        except SchemaError:
            continue
        job = Job(case.schema, grammar, documents[-1])
        if all(_goes_through(SIDES[name], job, vocabulary) for name in names):
            jobs.append(job)
        if len(jobs) == wanted:
            break
    return jobs


def _goes_through(make: Callable[[Sequence[Job], NamedVocabulary], Side], job: Job, vocabulary: NamedVocabulary) -> bool:
    from benchmarks.engines.base import CompileRefusal

    try:
        side = make([job], vocabulary)
    except CompileRefusal:
        return False
    return all(side.step(side.as_tokens([token])) for token in job.token_ids)


class Run:
    """All sequences, each with its place in its document, the same for every side."""

    def __init__(self, jobs: list[Job], sides: dict[str, Side], clock: Callable[[], int]) -> None:
        self.jobs, self.sides, self.clock = jobs, sides, clock
        self.places = [0] * len(jobs)
        self.times: dict[str, list[int]] = {name: [] for name in sides}
        self.wrong: dict[str, int] = dict.fromkeys(sides, 0)

    def tokens(self) -> Iterator[list[int]]:
        """The tokens of one step after another; sequences at their end begin anew."""
        while True:
            yield [job.token_ids[place] for job, place in zip(self.jobs, self.places, strict=True)]
            for i, job in enumerate(self.jobs):
                self.places[i] = (self.places[i] + 1) % len(job.token_ids)
                if self.places[i] == 0:
                    for side in self.sides.values():
                        side.start(i)

    def go(self, num_warm: int, num_steps: int) -> None:
        order = list(self.sides)
        for number, tokens in zip(range(num_warm + num_steps), self.tokens(), strict=False):
            for name in order[number % len(order) :] + order[: number % len(order)]:
                side = self.sides[name]
                if number < num_warm:
                    self.wrong[name] += not side.allows(tokens)
                own_tokens = side.as_tokens(tokens)
                started = self.clock()
                is_right = side.step(own_tokens)
                self.times[name].append(self.clock() - started)
                self.wrong[name] += not is_right
        self.times = {name: times[num_warm:] for name, times in self.times.items()}


def run(
    rows: Sequence[dict[str, Any]], vocabulary: NamedVocabulary, names: Sequence[str], num_sequences: int, num_schemas: int,
    num_steps: int, clock: str,
) -> dict[str, Any]:  # fmt: skip
    """The summary of a whole run."""
    kinds = find_jobs(rows, vocabulary, names, num_schemas)
    jobs = [kinds[i % len(kinds)] for i in range(num_sequences)]
    whole = Run(jobs, {name: SIDES[name](jobs, vocabulary) for name in names}, CLOCKS[clock])
    whole.go(max(len(job.token_ids) for job in kinds), num_steps)
    points = {name: _points(times) | {"wrong_steps": whole.wrong[name]} for name, times in whole.times.items()}
    size = vocabulary.vocabulary.size
    about = {"vocabulary": vocabulary.name, "vocabulary_size": size, "clock": clock, "machine": about_machine()}
    return about | {"sequences": num_sequences, "schemas": len(kinds), "steps": num_steps, "sides": points}


def _points(times_ns: list[int]) -> dict[str, float]:
    p50, p99 = np.percentile(times_ns, [50, 99]) / 1e3
    return {"avg_us": float(np.mean(times_ns)) / 1e3, "p50_us": float(p50), "p99_us": float(p99), "max_us": max(times_ns) / 1e3}


def show(data: dict[str, Any], console: Console) -> None:
    title = f"microseconds for a step of {data['sequences']} sequences over {data['schemas']} schemas ({data['clock']} time)"
    table = Table("side", "avg", "p50", "p99", "max", "wrong steps", title=title)
    for name, points in data["sides"].items():
        numbers = (f"{points[key]:,.1f}" for key in ("avg_us", "p50_us", "p99_us", "max_us"))
        table.add_row(name, *numbers, str(points["wrong_steps"]))
    console.print(table)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vocabulary", choices=vocabularies.NAMES, default="llama3")
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--schemas", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300, help="measured steps")
    parser.add_argument("--sides", default=",".join(SIDES), help="comma-separated: " + ", ".join(SIDES))
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: for a machine that others use at the same time")
    parser.add_argument("--seed", type=int, default=1, help="of the draw of schemas")
    parser.add_argument("--data", type=Path, default=DATA, help="a MaskBench file")
    options = parser.parse_args(arguments)
    options.sides = options.sides.split(",")
    if unknown := [name for name in options.sides if name not in SIDES]:
        parser.error(f"unknown sides: {', '.join(unknown)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = sample(read_rows(options.data), NUM_DRAWN, options.seed)
    vocabulary = vocabularies.load(options.vocabulary)
    data = run(rows, vocabulary, options.sides, options.sequences, options.schemas, options.steps, options.clock)
    show(data, Console(width=None if sys.stdout.isatty() else 140))
    print(json.dumps({"seed": options.seed, **data}))
    return 1 if any(points["wrong_steps"] for points in data["sides"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
