"""A worker answers, refuses, is ended or dies; none of it takes the run down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import vocabularies
from benchmarks.engines.worker import Options
from benchmarks.workers import Worker, WorkerEndedError
from constrained.tokens.vocabulary import Vocabulary


@pytest.fixture
def vocabulary_path(tmp_path: Path) -> Path:
    path = tmp_path / "vocabulary.npz"
    vocabularies.write_vocabulary(vocabularies.load("byte").vocabulary, path)
    return path


@pytest.fixture
def worker(fake_engine: str, vocabulary_path: Path) -> Iterator[Worker]:
    worker = Worker(Options(fake_engine, vocabulary_path, None, "wall"), limit_s=60.0)
    yield worker
    worker.stop()


def ask(worker: Worker, does: str, *documents: str) -> dict[str, Any]:
    return worker.ask(json.dumps({"does": does}), [list(document.encode()) for document in documents])


def test_each_document_has_its_verdict_and_a_time_per_accepted_token(worker: Worker) -> None:
    answer = ask(worker, "", "[1]", "[1,2]", "")
    assert answer["ttfm_ns"] > 0
    told = [(document["accepted"], document["read"], document["error"]) for document in answer["documents"]]
    assert told == [(True, 3, ""), (False, 2, ""), (True, 0, "")]
    assert [len(document["tbm_ns"]) for document in answer["documents"]] == [3, 2, 0]
    assert [len(document["again_ns"]) for document in answer["documents"]] == [3, 2, 0]


def test_an_engine_that_contradicts_its_mask_or_breaks_is_told_of(worker: Worker) -> None:
    answer = ask(worker, "", "[?", "[!", "[]")
    errors = [document["error"] for document in answer["documents"]]
    assert errors == ["a token that the mask allows was not accepted", "ValueError: the engine breaks", ""]


def test_a_refusal_has_a_reason(worker: Worker) -> None:
    answer = ask(worker, "refuse", "[]")
    assert (answer["refused"], answer["detail"]) == ("refused on request", "in full")


def test_an_unexpected_exception_is_no_refusal_and_the_worker_lives(worker: Worker) -> None:
    assert ask(worker, "raise", "[]")["ended"] == "exception KeyError: 'odd'"
    assert ask(worker, "", "[]")["documents"][0]["accepted"]
    assert worker.num_starts == 1


def test_one_that_dies_is_started_anew(worker: Worker) -> None:
    assert ask(worker, "die", "[]") == {"ended": "ended with exit status 3: noise on stdout"}
    assert ask(worker, "", "[]")["documents"][0]["accepted"]
    assert worker.num_starts == 2


def test_one_that_hangs_is_ended_and_started_anew(worker: Worker) -> None:
    worker.start()
    worker.limit_s = 0.2
    assert ask(worker, "hang", "[]") == {"ended": "over the limit of 0.2 s"}
    worker.limit_s = 60.0
    assert ask(worker, "", "[]")["documents"][0]["accepted"]
    assert worker.num_starts == 2


def test_the_cpu_clock_can_be_chosen(fake_engine: str, vocabulary_path: Path) -> None:
    worker = Worker(Options(fake_engine, vocabulary_path, None, "cpu"), limit_s=60.0)
    try:
        assert ask(worker, "", "[1]")["ttfm_ns"] > 0
        assert worker.clock_ns > 0
    finally:
        worker.stop()


def test_an_engine_that_cannot_start_says_why(vocabulary_path: Path) -> None:
    worker = Worker(Options("no.such.engine", vocabulary_path, None, "wall"), limit_s=60.0)
    with pytest.raises(WorkerEndedError, match="ended with exit status 1: ModuleNotFoundError: No module named 'no'"):
        worker.start()
    worker.stop()


def test_a_vocabulary_survives_its_file(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_bytes([b"a", b"", "é".encode(), b"a", b"</s>"], [1, 4])
    vocabularies.write_vocabulary(vocabulary, tmp_path / "v.npz")
    assert vocabularies.read_vocabulary(tmp_path / "v.npz") == vocabulary
