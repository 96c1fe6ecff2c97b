"""What all generation endpoints share: from a job to a run in the engine.

Knows the backend, the grammar cache and the runs; knows neither HTTP nor any wire format.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from api.backend import Backend, Generation, Messages
from api.eventlog import EventLog, MemoryLog, missing
from api.feed import Feed, Head
from api.grammars import GrammarCache
from api.limits import SLOT
from api.metrics import Metrics, SequenceMeter
from api.recording import LiveRun, Recorder
from api.runs import Outcome, Run, RunRegistry, Translator
from api.scopes import KEY
from api.seeds import varied
from api.settings import Settings
from api.sources import TextSource
from api.steering import Steering
from api.telling import start_event, wire_json
from api.tracing import Tracing
from api.validity import DocumentValidator
from constrained.decode.prompt import SchemaPrompt
from constrained.decode.request import SamplingParams
from constrained.errors import (
    ConstrainedError,
    EndedRunError,
    InternalError,
    RequestError,
    ShuttingDownError,
    UnknownModelError,
)
from constrained.grammar.texts import canonical
from constrained.options import CompileOptions
from constrained.stream import DeltaStream, Op, RawTextStream

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from constrained.compiled import CompiledGrammar

logger = logging.getLogger(__name__)

T = TypeVar("T")
CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class Job:
    """One generation request, whatever endpoint it came by. Without a schema the text is free.

    The model is told its schema by the operator's template, unless the job brings a `template` and what is `shown` in it.
    """

    prompt: Messages | str
    params: SamplingParams
    num_choices: int = 1
    schema: Any = None
    options: CompileOptions | None = None
    schema_in_prompt: bool = True
    template: SchemaPrompt | None = None
    shown: Any = None

    @property
    def told(self) -> Any:
        """What the model is told of the form of its answer; None where it is told nothing."""
        if self.template is not None:
            return self.shown
        if self.options is None or not self.schema_in_prompt:
            return None
        return self.schema.shown if isinstance(self.schema, TextSource) else self.schema

    @property
    def telling(self) -> SchemaPrompt | None:
        """How the model is told; None by the operator's template."""
        return self.schema.prompt if isinstance(self.schema, TextSource) else self.template


class Service:
    """The backend with all that is shared between requests. Belongs to one event loop."""

    def __init__(self, backend: Backend, settings: Settings, metrics: Metrics, tracing: Tracing | None = None) -> None:
        self.backend = backend
        self.settings = settings
        self.metrics = metrics
        self.tracing = tracing or Tracing()
        self.is_draining = False
        self.started_at = int(time())
        self.is_ready = True
        self.runs = RunRegistry(settings.finished_runs_kept)
        self.log: EventLog = self._make_log()
        self.live: dict[str, LiveRun] = {}
        self._recordings: set[asyncio.Task[None]] = set()
        self._executor = ThreadPoolExecutor(settings.compile_threads, thread_name_prefix="compile")
        self._grammars = GrammarCache(
            backend.compile,
            self._executor,
            settings.grammar_cache_size,
            settings.max_pending_compiles,
            settings.max_schema_bytes,
            metrics.grammar_lookup,
        )

    def check_model(self, model: str | None) -> None:
        """`UnknownModelError` unless `model` is the one that is served, or None."""
        if model not in (None, self.backend.name):
            raise UnknownModelError(f"The model {model!r} is not served here; {self.backend.name!r} is", "model")

    async def grammar(self, schema: Any, options: CompileOptions) -> CompiledGrammar:
        """The grammar of a schema, compiled now or kept from before."""
        with self.tracing.span("compile"):
            return await self._grammars.get(schema, self.within_limits(options))

    def within_limits(self, options: CompileOptions) -> CompileOptions:
        """A caller's options under the operator's limits."""
        return replace(options, limits=self.settings.compile_limits)

    async def start(
        self, job: Job, grammar: CompiledGrammar | None, endpoint: str, translator: Callable[[], Translator[T]]
    ) -> Run[T]:
        """Put a job into the engine; everything that the caller can mend is raised here, before anything is sent."""
        if self.is_draining:
            raise ShuttingDownError("The service is shutting down")
        with self.tracing.span("encode"):
            prompt_token_ids = await asyncio.to_thread(self.backend.encode, job.prompt, job.told, b"", job.telling)
        if not prompt_token_ids:
            raise RequestError("The prompt holds no token", "prompt" if isinstance(job.prompt, str) else "messages")
        generations = self._submit(prompt_token_ids, job, grammar)
        self.metrics.requests.labels(endpoint=endpoint).inc()
        run = Run(
            self.runs.new_id(),
            generations,
            [translator() for _ in generations],
            [SequenceMeter(self.metrics, self._span(endpoint, job)) for _ in generations],
        )
        self.runs.add(run)
        if (slot := SLOT.get()) is not None:
            slot.hold()
            run.when_ended(slot.release)
        told = {"run": run.id, "endpoint": endpoint, "choices": job.num_choices, "prompt_tokens": len(prompt_token_ids)}
        if self.settings.log_prompts:
            told["prompt"] = job.prompt
        logger.info("run started", extra=told)
        return run

    def _span(self, endpoint: str, job: Job) -> Span | None:
        return self.tracing.begin(
            "generate",
            gen_ai__operation__name=endpoint,
            gen_ai__request__model=self.backend.name,
            gen_ai__request__max_tokens=job.params.max_tokens,
            gen_ai__request__temperature=job.params.temperature,
        )

    async def start_told(self, job: Job, grammar: CompiledGrammar, *, coalesce_ms: int, resumable: bool) -> LiveRun:
        """As `start`, as a run that is told: its ops go into a feed of the event log."""
        run: Run[Op] = await self.start(job, grammar, "structured_stream", lambda: delta_stream(grammar))
        start = wire_json(start_event(run, self.backend.name, grammar))
        head = Head(run.id, start, len(run.outcomes), coalesce_ms, resumable, KEY.get())
        recorder = Recorder(run, head, self.settings.runs.feed, lambda: self.judge(job, run.outcomes))
        live = self.live[run.id] = LiveRun(recorder, job, grammar, asyncio.Lock())
        self.log.add(live.feed)
        recording = asyncio.create_task(self._record(live))
        self._recordings.add(recording)
        recording.add_done_callback(self._recordings.discard)
        return live

    async def _record(self, live: LiveRun) -> None:
        limit = asyncio.get_running_loop().call_later(self.settings.runs.time_limit_s, live.run.cancel)
        try:
            await live.recorder.record()
        finally:
            limit.cancel()
            del self.live[live.run.id]
            self.close_run(live.run)
            self.log.finish(live.feed)

    async def open(self, run: str) -> Feed:
        """The feed of a run, for a reader who releases it later. Of another API key's run nothing is known here."""
        feed = await self.log.open(run)
        if feed.head.key != KEY.get():
            self.log.release(feed)
            raise missing(run, expired=False)
        return feed

    async def command(self, run: str, command: dict[str, Any]) -> dict[str, Any]:
        """Cancel, steer or edit a run, wherever it is generated; the fields of the answer."""
        live = self.live.get(run)
        if live is not None and live.feed.head.key != KEY.get():
            raise missing(run, expired=False)
        if live is not None:
            return await self.obey(live, command)
        if command["op"] == "cancel" and self.runs.knows(run):
            return {"run": run, "status": self.runs.cancel(run)}
        feed = await self.open(run)
        try:
            if feed.terminal is None:
                return await self.log.forward(run, command)
        finally:
            self.log.release(feed)
        if command["op"] == "cancel":
            return {"run": run, "status": "finished"}
        raise EndedRunError(f"The run {run!r} has ended", "run")

    async def obey(self, live: LiveRun, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command on a run that this process generates."""
        run = live.run.id
        if command["op"] == "cancel":
            return {"run": run, "status": self.runs.cancel(run)}
        steering = Steering(self.backend, live)
        if command["op"] == "steer":
            return {"run": run, "seq": await steering.steer(command["text"], command.get("choice"))}
        return {"run": run, "seq": await steering.edit(command["path"], command["value"], command.get("choice", 0))}

    def _make_log(self) -> EventLog:
        if self.settings.runs.redis_url is None:
            return MemoryLog(self.settings.runs)
        from api.redis_log import RedisLog

        return RedisLog(self.settings.runs, self._obey_another)

    async def _obey_another(self, run: str, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out what another replica was asked."""
        if run in self.live:
            return await self.obey(self.live[run], command)
        if command["op"] == "cancel":
            return {"run": run, "status": "finished"}
        raise EndedRunError(f"The run {run!r} has ended", "run")

    def leave(self, live: LiveRun) -> None:
        """The caller who started a run has gone."""
        if not live.feed.head.resumable:
            live.run.cancel()

    def _submit(self, prompt_token_ids: list[int], job: Job, grammar: CompiledGrammar | None) -> list[Generation]:
        """One generation a choice, each with a seed of its own; all of them or none."""
        generations: list[Generation] = []
        try:
            for choice in range(job.num_choices):
                params = replace(job.params, seed=varied(job.params.seed, choice))
                generations.append(self.backend.submit(prompt_token_ids, params, grammar))
        except ConstrainedError as error:
            for generation in generations:
                generation.cancel()
            self._learn(error, job)
            raise
        return generations

    def _learn(self, error: ConstrainedError, job: Job) -> None:
        """What a refusal of the engine means here: an engine that is broken stays so, and a chat has no `prompt`."""
        if isinstance(error, InternalError):
            self.is_ready = False
        if isinstance(error, RequestError) and error.field == "prompt" and not isinstance(job.prompt, str):
            error.field = "messages"

    def close_run(self, run: Run[Any]) -> None:
        """A run whose answer is over: stop what still goes on, keep its id."""
        run.cancel()
        self.runs.remove(run)

    async def judge(self, job: Job, outcomes: list[Outcome]) -> list[bool]:
        """Whether each choice is finished and valid, by a standard validator.

        A finished one that is not is our fault: it is counted, and logged with the schema's hash.
        """
        judge = await self._judge_of(job)
        verdicts = []
        for outcome in outcomes:
            is_whole = outcome.finish_reason == "stop"
            valid = is_whole and await asyncio.to_thread(judge, bytes(outcome.text))
            if is_whole and not valid:
                self.metrics.invalid_documents.inc()
                logger.error("a finished document is not valid by its schema, whose SHA-256 is %s", _sha256(job.schema))
            verdicts.append(valid)
        return verdicts

    async def _judge_of(self, job: Job) -> Callable[[bytes], bool]:
        """What judges texts: a standard validator, or where there is none the grammar, from the beginning once more.

        There is none for text constraints, nor for OpenAPI's `nullable`, which JSON Schema does not know.
        """
        options = job.options or CompileOptions()
        if not isinstance(job.schema, TextSource) and not options.nullable:
            return DocumentValidator(job.schema).is_valid
        grammar = await self.grammar(job.schema, options)

        def is_met(text: bytes) -> bool:
            matcher = grammar.matcher()
            return matcher.accept_bytes(text) and matcher.is_accepting

        return is_met

    async def drain(self, grace_s: float) -> None:
        """Take nothing new; after `grace_s` stop what still runs, whose readers are told `shutting_down`."""
        self.is_draining = True
        await asyncio.sleep(grace_s)
        self.runs.stop_all(ShuttingDownError("The service is shutting down"))

    async def close(self) -> None:
        """Stop every run, let each tell its end, then close the log and the backend."""
        self.runs.cancel_all()
        if self._recordings:
            await asyncio.wait(self._recordings, timeout=CLOSING_S)
        await self.log.close()
        await self.backend.close()
        self._executor.shutdown(wait=False, cancel_futures=True)


def delta_stream(grammar: CompiledGrammar) -> DeltaStream:
    """What tells of a document of this grammar in ops."""
    return RawTextStream() if grammar.is_text else DeltaStream(grammar.root)


def _sha256(schema: Any) -> str:
    text = f"{schema.kind} {canonical(schema.shown)}" if isinstance(schema, TextSource) else canonical(schema)
    return hashlib.sha256(text.encode()).hexdigest()
