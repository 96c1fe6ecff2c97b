"""What the service needs of a model and its engine, and the real one.

The routes speak to `Backend` alone, so that tests can put a synthetic engine in its place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from api.sources import compile_source
from constrained.decode.prompt import SchemaPrompt, encode_prompt
from constrained.decode.request import Chunk, SamplingParams
from constrained.options import CompileOptions

if TYPE_CHECKING:
    from api.settings import Settings
    from constrained.compiled import CompiledGrammar
    from constrained.decode.async_engine import AsyncEngine
    from constrained.decode.model import LoadedModel


class Generation(Protocol):
    """One sequence in the engine: its chunks, the last with a `finish_reason`.

    Where it has `deliver_to(take)` too, that is used in place of iteration: `take` is called for each chunk as it arrives.
    """

    def __aiter__(self) -> AsyncIterator[Chunk]: ...

    def cancel(self) -> None:
        """Free the slot before the next step; idempotent."""


Messages = Sequence[dict[str, str]]


class Backend(Protocol):
    """A model with its engine. `compile` and `encode` may take long and are called from worker threads."""

    name: str
    context_len: int

    def compile(self, schema: Any, options: CompileOptions) -> CompiledGrammar:
        """The grammar of a JSON Schema or of a `TextSource`."""

    def encode(
        self, prompt: Messages | str, schema: Any | None, prefix: bytes = b"", template: SchemaPrompt | None = None
    ) -> list[int]:
        """Token ids of a chat or a plain prompt, the schema put into it where one is given; `prefix` begins the answer.

        The schema is told by `template`, or else by the operator's.
        """

    def token_bytes(self, token_id: int) -> bytes:
        """What a token stands for; of a special token its name."""

    def submit(
        self, prompt_token_ids: list[int], params: SamplingParams, grammar: CompiledGrammar | None, *, prefix: bytes = b""
    ) -> Generation:
        """Begin a sequence; `prefix` is the beginning of its document, where the prompt ends with it."""

    async def close(self) -> None: ...


class ModelBackend:
    """A loaded model in an engine of ours."""

    def __init__(self, model: LoadedModel, engine: AsyncEngine, schema_prompt: SchemaPrompt) -> None:
        self.name = model.name
        self.context_len = model.context_len
        self._model = model
        self.engine = engine
        self._schema_prompt = schema_prompt
        # A fast tokenizer refuses to be used by two threads at once.
        self._tokenizer_lock = Lock()

    def compile(self, schema: Any, options: CompileOptions) -> CompiledGrammar:
        grammar = compile_source(schema, self._model.vocabulary, options)
        # Both are computed at their first use, which would otherwise be on the event loop.
        _ = grammar.property_order, grammar.min_tokens
        return grammar

    def encode(
        self, prompt: Messages | str, schema: Any | None, prefix: bytes = b"", template: SchemaPrompt | None = None
    ) -> list[int]:
        with self._tokenizer_lock:
            return encode_prompt(self._model, prompt, schema, template or self._schema_prompt, prefix)

    def token_bytes(self, token_id: int) -> bytes:
        data = self._model.vocabulary.token_bytes[token_id]
        return data or str(self._model.tokenizer.convert_ids_to_tokens(token_id)).encode()

    def submit(
        self, prompt_token_ids: list[int], params: SamplingParams, grammar: CompiledGrammar | None, *, prefix: bytes = b""
    ) -> Generation:
        return self.engine.submit(prompt_token_ids, params, grammar, prefix=prefix)

    async def close(self) -> None:
        await self.engine.close()


def load_backend(settings: Settings) -> ModelBackend:
    """The model of `settings` in an engine; takes seconds, longer where the model must be converted first."""
    from constrained.decode.async_engine import AsyncEngine
    from constrained.decode.model import load_model
    from constrained.decode.options import EngineOptions
    from constrained.decode.scheduler import SchedulerLimits
    from constrained.decode.speculation import Speculation
    from constrained.warming import warm_up

    model = load_model(settings.model, settings.dtype)
    options = EngineOptions(
        limits=SchedulerLimits(max_running=settings.max_batch),
        max_waiting=settings.max_waiting,
        prefix_caching=settings.prefix_caching,
        cuda_graphs=settings.cuda_graphs,
        speculation=Speculation(settings.speculate) if settings.speculate else None,
        draft_model=load_model(settings.draft_model, settings.dtype) if settings.draft_model else None,
    )
    backend = ModelBackend(model, AsyncEngine(model, options), settings.schema_prompt)
    warm_up(model.vocabulary)
    return backend
