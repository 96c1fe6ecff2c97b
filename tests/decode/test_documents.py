"""The main job on the real model: fifty documents in one batch of sixteen, each complete and valid."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from constrained import compile_json_schema
from constrained.decode.async_engine import AsyncEngine, Generation
from constrained.decode.options import EngineOptions
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits

if TYPE_CHECKING:
    from constrained.decode.model import LoadedModel

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"type": "string", "maxLength": 40},
        "hobbies": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "hobby": {"type": "string", "maxLength": 30},
                    "level": {"enum": ["beginner", "advanced", "expert"]},
                },
                "required": ["hobby", "level"],
                "additionalProperties": False,
            },
        },
        "address": {
            "type": "object",
            "properties": {
                "street": {"type": "string", "maxLength": 40},
                "zip": {"type": "string", "minLength": 5, "maxLength": 5},
            },
            "required": ["street", "zip"],
            "additionalProperties": False,
        },
        "family": {"$ref": "#/$defs/tree"},
    },
    "required": ["name", "age", "city", "hobbies", "address", "family"],
    "additionalProperties": False,
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 20},
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
}


async def read(generation: Generation) -> list[Chunk]:
    return [chunk async for chunk in generation]


@pytest.mark.model
def test_fifty_people_at_temperature_one(real_model: LoadedModel) -> None:
    grammar = compile_json_schema(PERSON, real_model.vocabulary)
    prompt = real_model.encode_chat(
        [{"role": "user", "content": "Describe a person, with hobbies, an address and a family tree, as JSON."}]
    )

    async def run() -> list[list[Chunk]]:
        engine = AsyncEngine(real_model, EngineOptions(limits=SchedulerLimits(max_running=16)))
        try:
            params = [SamplingParams(temperature=1.0, seed=seed, max_tokens=240) for seed in range(50)]
            return await asyncio.gather(*(read(engine.submit(prompt, one, grammar)) for one in params))
        finally:
            await engine.close()

    outputs = asyncio.run(run())
    texts = [b"".join(chunk.data for chunk in chunks) for chunks in outputs]
    for chunks, text in zip(outputs, texts, strict=True):
        assert chunks[-1].finish_reason == "stop", chunks[-1].error
        jsonschema.validate(json.loads(text), PERSON)
        assert chunks[-1].usage.completion_tokens <= 240
    assert len(set(texts)) > 45, "different seeds give different documents"
