"""The native endpoints: schema-bound JSON as a stream of typed deltas, or as one answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from api.deps import ServiceDep
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.docs import streamed
from api.errors import as_ours, error_info
from api.runs import Outcome, Run, finish_reason_of, timings_of, usage_of
from api.service import Job, Service
from api.sse import EventStreamResponse, sse_event
from api.wire import JsonRoute, to_json
from constrained.decode.request import SamplingParams
from constrained.errors import ConstrainedError, InternalError, UnsupportedFieldError
from constrained.options import CompileOptions
from constrained.stream import DeltaStream, Op, coalesce
from schemas.events import DeltaEvent, DoneEvent, ErrorEvent, EventName, StartEvent, Wire
from schemas.requests import CancelResponse, ErrorBody, StructuredChoice, StructuredRequest, StructuredResponse

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

logger = logging.getLogger(__name__)
router = APIRouter(
    prefix="/v1/structured",
    route_class=JsonRoute,
    tags=["structured"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)
STREAM_EVENTS = (StartEvent, DeltaEvent, ErrorEvent, DoneEvent)


@router.post("/stream", response_class=Response, responses={200: streamed("The events of a run.", *STREAM_EVENTS)})
async def stream(body: StructuredRequest, service: ServiceDep) -> Response:
    """Start a run; the answer is its event stream: `start`, `delta`s, then `done` or `error`."""
    service.check_model(body.model)
    run, grammar = await start(service, job_of(body), "structured_stream")
    return EventStreamResponse(
        sse_events(service, run, grammar, body),
        on_close=lambda: service.close_run(run),
        heartbeat_s=service.settings.heartbeat_s,
        stall_timeout_s=service.settings.stall_timeout_s,
    )


@router.post("", response_model=StructuredResponse)
async def complete(body: StructuredRequest, service: ServiceDep, request: Request) -> Response:
    """Run to the end; the answer is one JSON document."""
    service.check_model(body.model)
    run, grammar = await start(service, job_of(body), "structured")
    try:
        if not await unless_disconnected(request.receive, run.wait()):
            return Response(status_code=CLIENT_GONE)
        if run.error is not None:
            raise as_ours(run.error)
        verdicts = await service.judge(body.schema_, run.outcomes)
        text = answer_text(run, grammar, service.backend.name, verdicts)
        return Response(text, media_type="application/json", headers={"cache-control": "no-store, no-transform"})
    finally:
        service.close_run(run)


@router.post("/{run}/cancel")
async def cancel(run: str, service: ServiceDep) -> CancelResponse:
    """Stop a run before its next step; idempotent."""
    return CancelResponse(run=run, status=service.runs.cancel(run))


def job_of(body: StructuredRequest) -> Job:
    """The job that a body asks for; `UnsupportedFieldError` for what this version cannot honour."""
    for name in ("regex", "choice", "grammar"):
        if getattr(body, name) is not None:
            raise UnsupportedFieldError(f"{name} is not supported by this version; send a JSON Schema as schema", name)
    if body.resumable:
        raise UnsupportedFieldError("resumable runs are not supported by this version; send false", "resumable")
    return Job(
        prompt=body.prompt if body.prompt is not None else [message.model_dump() for message in body.messages or []],
        params=SamplingParams(body.temperature, body.top_p, body.top_k, body.min_p, body.seed, body.max_tokens),
        num_choices=body.n,
        schema=body.schema_,
        options=CompileOptions(whitespace=body.whitespace, property_order=body.property_order),
        schema_in_prompt=body.schema_in_prompt,
    )


async def start(service: Service, job: Job, endpoint: str) -> tuple[Run[Op], CompiledGrammar]:
    """A run whose bytes become ops."""
    grammar = await service.grammar(job.schema, job.options or CompileOptions())
    return await service.start(job, grammar, endpoint, lambda: DeltaStream(grammar.root)), grammar


async def sse_events(service: Service, run: Run[Op], grammar: CompiledGrammar, body: StructuredRequest) -> AsyncIterator[bytes]:
    """The events of a run as SSE frames; whatever fails after the first byte becomes the one `error` event."""
    try:
        yield frame("start", run.id, 0, start_event(service, run, grammar, body))
        async for part in run.frames(body.coalesce_ms / 1000):
            ops = [op.to_wire() for op in coalesce(part.items)]
            yield frame("delta", run.id, part.seq, {"seq": part.seq, "choice": part.choice, "ops": ops})
        if run.error is not None:
            raise run.error
        verdicts = await service.judge(body.schema_, run.outcomes)
        yield frame("done", run.id, run.seq + 1, done_event(run, verdicts))
    except Exception as error:
        if error is not run.error:
            logger.exception("the stream of %s failed", run.id)
        yield frame("error", run.id, run.seq + 1, error_event(run, error))


def frame(name: EventName, run_id: str, seq: int, data: Wire | dict[str, Any]) -> bytes:
    """One event as an SSE frame."""
    return sse_event(f"{run_id}:{seq}", name, to_json(data.model_dump(by_alias=True) if isinstance(data, Wire) else data))


def start_event(service: Service, run: Run[Op], grammar: CompiledGrammar, body: StructuredRequest) -> StartEvent:
    return StartEvent(
        run=run.id,
        model=service.backend.name,
        schema_=body.schema_,
        schema_hash=grammar.schema_hash,
        order=list(grammar.property_order),
        choices=len(run.outcomes),
    )


def done_event(run: Run[Op], verdicts: list[bool]) -> DoneEvent:
    complete = all(outcome.finish_reason == "stop" for outcome in run.outcomes)
    return DoneEvent(
        seq=run.seq + 1,
        finish_reason=finish_reason_of(run.outcomes),
        finish_reasons=[outcome.finish_reason or "cancelled" for outcome in run.outcomes],
        status="complete" if complete else "incomplete",
        valid=all(verdicts),
        closed_by_budget=any(outcome.usage.closed_by_budget for outcome in run.outcomes),
        usage=usage_of(run.outcomes),
        timings=timings_of(run.outcomes),
    )


def error_event(run: Run[Op], error: Exception) -> ErrorEvent:
    info = error_info(error)
    translator = run.translators[run.failed_choice]
    open_paths = translator.open_paths if isinstance(translator, DeltaStream) else ()
    return ErrorEvent(
        seq=run.seq + 1,
        code=info.code or InternalError.code,
        message=info.message,
        path=open_paths[-1] if open_paths else None,
        retriable=isinstance(error, ConstrainedError) and error.retriable,
    )


def answer_text(run: Run[Op], grammar: CompiledGrammar, model: str, verdicts: list[bool]) -> str:
    """The JSON of a `StructuredResponse`. Each value is the document itself, so that no number is rewritten."""
    choices = [choice_text(index, outcome, verdicts[index]) for index, outcome in enumerate(run.outcomes)]
    answer = StructuredResponse(
        run=run.id,
        model=model,
        schema_hash=grammar.schema_hash,
        choices=[],
        usage=usage_of(run.outcomes),
        timings=timings_of(run.outcomes),
    )
    return f'{answer.model_dump_json(exclude={"choices"})[:-1]},"choices":[{",".join(choices)}]}}'


def choice_text(index: int, outcome: Outcome, valid: bool) -> str:
    text = outcome.text.decode("utf-8", "ignore")
    choice = StructuredChoice(index=index, text=text, finish_reason=outcome.finish_reason or "cancelled", valid=valid)
    value = text if outcome.finish_reason == "stop" else "null"
    return f'{choice.model_dump_json(exclude={"value"})[:-1]},"value":{value}}}'
