"""The engine under real grammars, on a tiny random model: whatever the model wants, the document is valid."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest

from constrained import CompileOptions, compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.options import EngineOptions
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from tests.decode.mocks import TinyModel
from tests.decode.test_engine import read_all

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"enum": ["leaf", "node"]},
        "weight": {"type": "integer", "minimum": -5, "maximum": 120},
        "note": {"type": "string", "maxLength": 12},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
    },
    "required": ["label", "weight", "children"],
    "additionalProperties": False,
}


def generate(model: TinyModel, schema: Any, params: list[SamplingParams], options: CompileOptions) -> list[Chunk]:
    async def main() -> list[Chunk]:
        engine = AsyncEngine(model, EngineOptions(SchedulerLimits(max_running=8, prefill_busy=16)))
        grammar = compile_json_schema(schema, model.vocabulary, options)
        chunks = await read_all([engine.submit([65 + i], each, grammar) for i, each in enumerate(params)])
        stats = engine.stats()
        await engine.close()
        assert stats.free_blocks == stats.total_blocks
        return chunks

    return asyncio.run(main())


@pytest.mark.parametrize("whitespace", ["flexible", "compact", "indented"])
def test_every_document_is_valid_at_any_budget_that_can_hold_it(tiny: TinyModel, whitespace: Any) -> None:
    options = CompileOptions(whitespace=whitespace)
    least = compile_json_schema(TREE, tiny.vocabulary, options).min_tokens
    params = [
        SamplingParams(temperature=1.0 + i % 3, top_p=(1.0, 0.9)[i % 2], seed=i, max_tokens=least + (i * i) % 140)
        for i in range(24)
    ]
    for chunk, each in zip(generate(tiny, TREE, params, options), params, strict=True):
        assert (chunk.finish_reason, chunk.error) == ("stop", None)
        assert len(chunk.token_ids) <= each.max_tokens
        jsonschema.validate(json.loads(chunk.data), TREE)


def test_a_grammar_that_leaves_no_choice_ends_without_a_step_for_the_end(tiny: TinyModel) -> None:
    params = [SamplingParams(temperature=1.0, seed=1, max_tokens=60)]
    (chunk,) = generate(tiny, {"const": [1, "a"]}, params, CompileOptions(whitespace="compact"))
    assert chunk.data == b'[1,"a"]'
    assert chunk.finish_reason == "stop"
    assert not chunk.usage.closed_by_budget
    assert b"".join(tiny.vocabulary.token_bytes[token] for token in chunk.token_ids) == chunk.data
    assert not set(chunk.token_ids) & tiny.eos_token_ids
