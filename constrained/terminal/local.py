"""One request without a server: a schema and a prompt in, the document out, and its ops as they are generated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrained.errors import BudgetError
from constrained.options import CompileOptions
from constrained.stream import DeltaStream, Op
from constrained.terminal.form import Form
from constrained.terminal.show import live

if TYPE_CHECKING:
    from rich.console import Console

    from constrained.compiled import CompiledGrammar
    from constrained.decode.model import LoadedModel
    from constrained.decode.prompt import SchemaPrompt
    from constrained.decode.request import Chunk, SamplingParams


@dataclass(frozen=True, slots=True)
class Delta:
    """What one chunk of the engine added to the document; the last has the chunk's `finish_reason`."""

    chunk: Chunk
    ops: list[Op] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LocalRequest:
    """A compiled request; `order` is the generation order of the known fields."""

    model: LoadedModel
    grammar: CompiledGrammar
    prompt_token_ids: list[int]
    params: SamplingParams

    @property
    def order(self) -> tuple[str, ...]:
        return self.grammar.property_order

    async def deltas(self) -> AsyncIterator[Delta]:
        """Generate, in an engine of its own; raises what the engine refuses or what ended the sequence."""
        from constrained.decode.async_engine import AsyncEngine

        engine = AsyncEngine(self.model)
        stream = DeltaStream(self.grammar.root)
        try:
            async for chunk in engine.submit(self.prompt_token_ids, self.params, self.grammar):
                if chunk.error is not None:
                    raise chunk.error
                ops = stream.feed(chunk.data)
                if chunk.finish_reason == "stop":
                    ops = [*ops, *stream.finish()]
                yield Delta(chunk, ops)
        finally:
            await engine.close()


def prepare(
    model: LoadedModel,
    schema: Any,
    prompt: Sequence[Mapping[str, str]] | str,
    params: SamplingParams,
    options: CompileOptions | None = None,
    schema_prompt: SchemaPrompt | None = None,
) -> LocalRequest:
    """Compile the schema and encode the prompt; `schema_prompt` None leaves the schema out of it."""
    from constrained.compiled import compile_json_schema
    from constrained.decode.prompt import encode_prompt

    grammar = compile_json_schema(schema, model.vocabulary, options or CompileOptions())
    return LocalRequest(model, grammar, encode_prompt(model, prompt, schema, schema_prompt), params)


def run(request: LocalRequest, console: Console | None) -> str:
    """Generate the document and give its text; on `console` it is shown as a form meanwhile. `BudgetError` where it is cut."""
    return asyncio.run(_run(request, console))


async def _run(request: LocalRequest, console: Console | None) -> str:
    text = bytearray()
    with live(Form(request.order), console) if console else nullcontext(_ignore) as show:
        async for delta in request.deltas():
            text += delta.chunk.data
            show(delta.ops)
            if delta.chunk.finish_reason == "length":
                raise BudgetError(f"the document is not finished after {request.params.max_tokens} tokens", "max_tokens")
    return text.decode()


def _ignore(_ops: Iterable[Op]) -> None:
    pass
