"""The benchmark of requests that come and go judges its own answers."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace

import jsonschema
import pytest

from benchmarks import decode_load
from benchmarks.decode_load import Stream
from benchmarks.decode_runs import PERSON, CheckError
from constrained import compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from tests.decode.mocks import TinyModel

PERSON_TEXT = json.dumps(
    {
        "name": "A",
        "age": 3,
        "city": "",
        "hobbies": [{"title": "a", "level": "expert"}, {"title": "b", "level": "expert"}],
        "address": {"street": "", "zip": ""},
    }
).encode()


def test_streams_are_counted_from_their_arrival(tiny: TinyModel) -> None:
    async def run() -> decode_load.Level:
        engine = AsyncEngine(tiny)
        try:
            prompts = [[1, 2, 3], [4, 5]]
            grammar = compile_json_schema(PERSON, tiny.vocabulary)
            return await decode_load.offer(engine, prompts, 20.0, Namespace(seconds=0.5, tokens=250), grammar)
        finally:
            await engine.close()

    level = asyncio.run(run())
    assert level.requests > 1
    assert level.tokens_per_s > 0
    assert 0 < level.ttft_ms[0] <= level.ttft_ms[1] <= level.ttft_ms[2]
    assert level.gap_ms == sorted(level.gap_ms)


def test_wrong_answers_are_seen() -> None:
    decode_load._check([Stream(0.0, [1.0], PERSON_TEXT, 5)], 5)
    with pytest.raises(CheckError, match="6 of 5"):
        decode_load._check([Stream(0.0, [1.0], PERSON_TEXT, 6)], 5)
    with pytest.raises(jsonschema.ValidationError):
        decode_load._check([Stream(0.0, [1.0], b'{"name": "A"}', 5)], 5)
    with pytest.raises(CheckError, match="no request"):
        decode_load._check([], 5)
