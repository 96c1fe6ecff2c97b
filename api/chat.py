"""`POST /v1/chat/completions` as the official clients speak it, whole or as a stream of chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from api.chat_answer import ChatAnswer
from api.chat_job import job_of
from api.deps import ServiceDep
from api.docs import streamed
from api.pieces import ContentReader, Piece, Reader, with_logprobs
from api.runs import Run
from api.service import Job, Service
from api.sse import EventStreamResponse
from api.tools import ToolPlan, placed
from api.wire import JsonRoute
from constrained.errors import SchemaError
from constrained.options import CompileOptions
from schemas.openai import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from schemas.requests import ErrorBody

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

router = APIRouter(
    prefix="/v1/chat",
    route_class=JsonRoute,
    tags=["openai"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.post(
    "/completions",
    response_model=ChatCompletion,
    responses={200: streamed("The completion, or its chunks.", ChatCompletionChunk)},
)
async def chat_completions(body: ChatCompletionRequest, service: ServiceDep, request: Request) -> Response:
    """Answer a chat, bound by `response_format` and by the parameters of `tools` where they are given."""
    service.check_model(body.model)
    job, plan = job_of(body, service.settings.default_chat_max_tokens)
    run = await start(service, job, plan, "chat_completions")
    answer = ChatAnswer(service, run, job, plan)
    if not body.stream:
        return await answer.whole(request)
    include_usage = body.stream_options is not None and body.stream_options.include_usage
    return EventStreamResponse(
        answer.chunks(include_usage),
        on_close=lambda: service.close_run(run),
        heartbeat_s=service.settings.heartbeat_s,
        stall_timeout_s=service.settings.stall_timeout_s,
    )


async def start(service: Service, job: Job, plan: ToolPlan | None, endpoint: str) -> Run[Piece]:
    """A run whose bytes become pieces of an answer."""
    grammar = None if job.options is None else await _grammar(service, job.schema, job.options, plan)
    make_reader: Callable[[], Reader] = ContentReader if plan is None or grammar is None else plan.reader(grammar)
    if job.params.logprobs is not None:
        make_reader = with_logprobs(make_reader)
    return await service.start(job, grammar, endpoint, make_reader)


async def _grammar(service: Service, schema: Any, options: CompileOptions, plan: ToolPlan | None) -> CompiledGrammar:
    """The grammar of a job; where the schema of a tool is at fault, the error says of which."""
    try:
        return await service.grammar(schema, options)
    except SchemaError:
        for place, parameters in plan.schemas if plan is not None else ():
            try:
                await service.grammar(parameters, options)
            except SchemaError as error:
                raise placed(error, place) from error
        raise
