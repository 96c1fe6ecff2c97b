"""The native endpoints: schema-bound JSON as a stream of typed deltas, or as one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from api.compile_options import compile_options
from api.constraints import text_source
from api.deps import ServiceDep
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.docs import streamed_events
from api.errors import as_ours
from api.feed import Feed
from api.reader import Reader
from api.recording import LiveRun
from api.runs import Outcome, Run, timings_of, usage_of
from api.service import Job, Service, delta_stream
from api.sse import EventStreamResponse
from api.transports import HEARTBEATS, MEDIA_TYPES, Transport, event_frames, farewell, text_frames, transport_of
from api.wire import JsonRoute, to_json
from constrained.decode.request import SamplingParams
from constrained.errors import EventIdError, RequestError
from constrained.options import CompileOptions
from constrained.stream import Op
from schemas.requests import (
    CancelResponse,
    EditRequest,
    ErrorBody,
    SteerRequest,
    SteerResponse,
    StructuredChoice,
    StructuredRequest,
    StructuredResponse,
)

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

router = APIRouter(
    prefix="/v1/structured",
    route_class=JsonRoute,
    tags=["structured"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)
STREAMED: dict[int | str, dict[str, Any]] = {200: streamed_events("The events of a run.")}
MAX_SEQ_DIGITS = 18


@router.post("/stream", response_class=Response, responses=STREAMED)
async def stream(body: StructuredRequest, service: ServiceDep, request: Request) -> Response:
    """Start a run; the answer is its event stream: `start`, `delta`s, then `done` or `error`.

    `Accept: application/x-ndjson` gives the events as JSON Lines, `text/plain` the bare text of the document in chunks.
    """
    transport = transport_of(request.headers.get("accept"))
    if transport == "text" and body.n > 1:
        raise RequestError("text/plain carries one document; send n as 1 or accept text/event-stream", "n")
    live = await start(service, body)
    return streaming(service, live.feed, transport, live)


@router.get("/{run}/events", response_class=Response, responses={**STREAMED, 204: {"description": "There is nothing more."}})
async def events(
    run: str,
    service: ServiceDep,
    request: Request,
    last_event_id: Annotated[str | None, Header(description="The id of the last event that came.")] = None,
    after: Annotated[str | None, Query(description="The same, as an id or as its number alone.")] = None,
    coalesce_ms: Annotated[int | None, Query(ge=0, le=1000, description="The window of this reader.")] = None,
) -> Response:
    """Join a run, or resume it behind an event; without a place, the document so far comes as a snapshot."""
    feed = await service.open(run)
    try:
        reader = Reader(feed, service.settings.runs.reader, _place(run, last_event_id, after), _seconds(coalesce_ms))
        if reader.is_over:
            service.log.release(feed)
            return Response(status_code=204)
        transport: Transport = "lines" if transport_of(request.headers.get("accept")) == "lines" else "sse"
        return streaming(service, feed, transport, reader=reader)
    except BaseException:
        service.log.release(feed)
        raise


@router.post("", response_model=StructuredResponse)
async def complete(body: StructuredRequest, service: ServiceDep, request: Request) -> Response:
    """Run to the end; the answer is one JSON document."""
    service.check_model(body.model)
    job = job_of(body)
    grammar = await service.grammar(job.schema, job.options or CompileOptions())
    run: Run[Op] = await service.start(job, grammar, "structured", lambda: delta_stream(grammar))
    try:
        if not await unless_disconnected(request.receive, run.wait()):
            return Response(status_code=CLIENT_GONE)
        if run.error is not None:
            raise as_ours(run.error)
        verdicts = await service.judge(job, run.outcomes)
        text = answer_text(run, grammar, service.backend.name, verdicts)
        return Response(text, media_type="application/json", headers={"cache-control": "no-store, no-transform"})
    finally:
        service.close_run(run)


@router.post("/{run}/cancel")
async def cancel(run: str, service: ServiceDep) -> CancelResponse:
    """Stop a run before its next step; idempotent."""
    return CancelResponse.model_validate(await service.command(run, {"op": "cancel"}))


@router.post("/{run}/steer")
async def steer(run: str, body: SteerRequest, service: ServiceDep) -> SteerResponse:
    """Say something more to a run: it joins the conversation, and generation goes on from where it is."""
    return SteerResponse.model_validate(await service.command(run, {"op": "steer", **body.model_dump()}))


@router.post("/{run}/edit")
async def edit(run: str, body: EditRequest, service: ServiceDep) -> SteerResponse:
    """Correct a closed value of a run that goes on; every reader gets a snapshot."""
    return SteerResponse.model_validate(await service.command(run, {"op": "edit", **body.model_dump()}))


def job_of(body: StructuredRequest) -> Job:
    """The job that a body asks for."""
    source = _source_of(body)
    return Job(
        prompt=body.prompt if body.prompt is not None else [message.model_dump() for message in body.messages or []],
        params=SamplingParams(body.temperature, body.top_p, body.top_k, body.min_p, body.seed, body.max_tokens),
        num_choices=body.n,
        schema=source,
        options=compile_options(body, source),
        schema_in_prompt=body.schema_in_prompt,
    )


def _source_of(body: StructuredRequest) -> Any:
    """The schema, or the constraint on raw text."""
    if body.regex is not None:
        return text_source("regex", body.regex, "regex")
    if body.choice is not None:
        return text_source("choice", body.choice, "choice")
    if body.grammar is not None:
        return text_source("grammar", body.grammar, "grammar")
    return body.schema_


async def start(service: Service, body: StructuredRequest) -> LiveRun:
    """A run that is told."""
    service.check_model(body.model)
    job = job_of(body)
    grammar = await service.grammar(job.schema, job.options or CompileOptions())
    return await service.start_told(job, grammar, coalesce_ms=body.coalesce_ms, resumable=body.resumable)


def streaming(
    service: Service, feed: Feed, transport: Transport, live: LiveRun | None = None, reader: Reader | None = None
) -> EventStreamResponse:
    """The response that streams a feed: to whoever started the run (`live`), or to a `reader` who joins."""
    reader = reader or Reader(feed, service.settings.runs.reader)
    if live is not None and transport == "text":
        frames = text_frames(live.run, feed)
    else:
        frames = event_frames(reader, feed, transport)

    def say_farewell() -> bytes:
        service.metrics.slow_readers.inc()
        return farewell(feed, transport, reader.place)

    return EventStreamResponse(
        frames,
        on_close=(lambda: service.leave(live)) if live is not None else (lambda: service.log.release(feed)),
        heartbeat_s=service.settings.heartbeat_s,
        stall_timeout_s=service.settings.stall_timeout_s,
        media_type=MEDIA_TYPES[transport],
        heartbeat=HEARTBEATS[transport],
        farewell=say_farewell,
    )


def _place(run: str, last_event_id: str | None, after: str | None) -> int | None:
    """The number of the last event that a reader has. The header is newer where both are there."""
    given, field = (last_event_id, "Last-Event-ID") if last_event_id else (after, "after")
    if not given:
        return None
    owner, colon, number = given.rpartition(":")
    if colon and owner != run:
        raise EventIdError(f"{field} is {given!r}, which is an event of another run than {run!r}", field)
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_SEQ_DIGITS):
        raise EventIdError(f"{field} is {given!r}; the id of an event is {run}:<number>", field)
    return int(number)


def _seconds(coalesce_ms: int | None) -> float | None:
    return None if coalesce_ms is None else coalesce_ms / 1000


def answer_text(run: Run[Op], grammar: CompiledGrammar, model: str, verdicts: list[bool]) -> str:
    """The JSON of a `StructuredResponse`. Each value is the document itself, so that no number is rewritten."""
    choices = [choice_text(index, outcome, verdicts[index], grammar.is_text) for index, outcome in enumerate(run.outcomes)]
    answer = StructuredResponse(
        run=run.id,
        model=model,
        schema_hash=grammar.schema_hash,
        choices=[],
        usage=usage_of(run.outcomes),
        timings=timings_of(run.outcomes),
    )
    return f'{answer.model_dump_json(exclude={"choices"})[:-1]},"choices":[{",".join(choices)}]}}'


def choice_text(index: int, outcome: Outcome, valid: bool, is_text: bool) -> str:
    text = outcome.text.decode("utf-8", "ignore")
    choice = StructuredChoice(index=index, text=text, finish_reason=outcome.finish_reason or "cancelled", valid=valid)
    value = "null"
    if outcome.finish_reason == "stop":
        value = to_json(text) if is_text else text
    return f'{choice.model_dump_json(exclude={"value"})[:-1]},"value":{value}}}'
