"""Batches that the decoding benchmarks run, and the checks of what comes out of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jsonschema
import torch
from transformers import GenerationConfig

from constrained.decode.async_engine import AsyncEngine, Generation
from constrained.decode.model import LoadedModel
from constrained.decode.request import Chunk, SamplingParams

if TYPE_CHECKING:
    from constrained import CompiledGrammar

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "maxLength": 40},
        "hobbies": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "maxLength": 40},
                    "level": {"enum": ["beginner", "intermediate", "expert"]},
                },
                "required": ["title", "level"],
                "additionalProperties": False,
            },
        },
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string", "maxLength": 40}, "zip": {"type": "string", "maxLength": 10}},
            "required": ["street", "zip"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "city", "hobbies", "address"],
    "additionalProperties": False,
}
PEOPLE = ("a nurse from Lyon", "a retired sailor", "a student of physics", "a baker with three cats")


@dataclass(frozen=True, slots=True)
class Run:
    """One timed batch of one side."""

    seconds: float
    chunks: list[Chunk]

    @property
    def num_tokens(self) -> int:
        return sum(len(chunk.token_ids) for chunk in self.chunks)

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / self.seconds


class CheckError(Exception):
    """A side gave a wrong answer; its speed means nothing."""


def prompts(model: LoadedModel, count: int) -> list[list[int]]:
    texts = [f"Describe {PEOPLE[i % len(PEOPLE)]}, number {i}, as a JSON object." for i in range(count)]
    return [model.encode_chat([{"role": "user", "content": text}]) for text in texts]


async def read(generation: Generation) -> Chunk:
    """All chunks as one, taken one by one as a service does."""
    parts: list[Chunk] = [chunk async for chunk in generation]
    last = parts[-1]
    if last.error is not None:
        raise last.error
    token_ids = tuple(token for part in parts for token in part.token_ids)
    return Chunk(b"".join(part.data for part in parts), token_ids, last.finish_reason, None, last.usage)


async def run_engine(
    engine: AsyncEngine, batch: list[list[int]], lengths: Sequence[int], grammar: CompiledGrammar | None
) -> Run:
    started = time.perf_counter()
    generations = [
        engine.submit(prompt, SamplingParams(temperature=0, max_tokens=length), grammar)
        for prompt, length in zip(batch, lengths, strict=True)
    ]
    chunks = list(await asyncio.gather(*map(read, generations)))
    return Run(time.perf_counter() - started, chunks)


def run_generate(model: LoadedModel, batch: list[list[int]], num_tokens: int) -> Run:
    longest = max(map(len, batch))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in batch])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in batch])
    started = time.perf_counter()
    out = model.hf.generate(  # type: ignore[operator]
        ids, attention_mask=mask, max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False, pad_token_id=0
    )
    seconds = time.perf_counter() - started
    return Run(seconds, [Chunk(b"", tuple(row)) for row in out[:, longest:].tolist()])


def run_batching(model: LoadedModel, batch: list[list[int]], num_tokens: int) -> Run:
    """transformers' continuous batching, which pages its cache as we do."""
    config = GenerationConfig(max_new_tokens=num_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0)  # type: ignore[no-untyped-call]
    own = model.hf.config._attn_implementation
    started = time.perf_counter()
    out = model.hf.generate_batch(inputs=batch, generation_config=config, progress_bar=False)  # type: ignore[operator]
    seconds = time.perf_counter() - started
    model.hf.set_attn_implementation(own)
    return Run(seconds, [Chunk(b"", tuple(result.generated_tokens)) for result in out.values()])


def check_lengths(run: Run, lengths: Sequence[int], side: str) -> None:
    got = [len(chunk.token_ids) for chunk in run.chunks]
    if got != list(lengths):
        raise CheckError(f"{side} decoded {got} tokens instead of {list(lengths)}")


def check_documents(run: Run, grammar: CompiledGrammar) -> None:
    for chunk in run.chunks:
        if chunk.finish_reason == "stop":
            jsonschema.validate(json.loads(chunk.data), PERSON)
        elif not grammar.matcher().accept_bytes(chunk.data):
            raise CheckError(f"not a prefix of any document: {chunk.data!r}")


def endless(model: LoadedModel) -> LoadedModel:
    """The same model with no end of sequence, so that free text has the length that is asked for."""
    return replace(model, eos_token_ids=frozenset())
