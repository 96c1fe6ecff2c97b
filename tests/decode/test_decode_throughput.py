"""The throughput benchmark judges its own answers, and runs on the real model."""

from __future__ import annotations

import asyncio
import json

import jsonschema
import pytest

from benchmarks.decode_measures import MEASURES
from benchmarks.decode_runs import PERSON, CheckError, Run, check_documents, check_lengths, endless, run_engine
from benchmarks.decode_throughput import main
from constrained import compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.model import LoadedModel
from constrained.decode.request import Chunk
from tests.decode.mocks import TinyModel


def run_of(data: bytes, finish_reason: str) -> Run:
    return Run(1.0, [Chunk(data, (1, 2), finish_reason)])


def test_wrong_documents_and_lengths_are_seen(tiny: TinyModel) -> None:
    grammar = compile_json_schema(PERSON, tiny.vocabulary)
    check_documents(run_of(b'{"name": "A', "length"), grammar)
    with pytest.raises(CheckError, match="prefix"):
        check_documents(run_of(b'{"age": ', "length"), grammar)
    with pytest.raises(jsonschema.ValidationError):
        check_documents(run_of(b'{"name": "A"}', "stop"), grammar)
    check_lengths(run_of(b"", "stop"), [2], "ours")
    with pytest.raises(CheckError, match="ours"):
        check_lengths(run_of(b"", "stop"), [3], "ours")


def test_lengths_are_what_is_asked_for(tiny: TinyModel) -> None:
    async def measure() -> Run:
        engine = AsyncEngine(TinyModel(hf=tiny.hf, eos_token_ids=frozenset()))
        run = await run_engine(engine, [[1], [2]], [5, 9], None)
        await engine.close()
        return run

    run = asyncio.run(measure())
    check_lengths(run, [5, 9], "ours")
    assert run.num_tokens == 14


@pytest.mark.model
def test_the_benchmark_runs_and_its_checks_hold(real_model: LoadedModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert not endless(real_model).eos_token_ids
    assert main(["--batches", "2", "--tokens", "80", "--rounds", "1", "--measures", "cancel,ttft"]) == 0
    result = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    (row,) = result["rows"]
    assert row["batch"] == 2
    assert 0 < row["schema_tokens"] <= 160
    assert [measure["name"] for measure in result["measures"]] == ["cancel", "ttft"]
    assert set(MEASURES) >= {"cancel", "ttft"}
