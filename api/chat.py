"""`POST /v1/chat/completions` as the official clients speak it, whole or as a stream of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from api.chat_answer import ChatAnswer
from api.chat_job import job_of
from api.deps import ServiceDep
from api.docs import streamed
from api.sse import EventStreamResponse
from api.start import start
from api.wire import JsonRoute
from schemas.openai import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from schemas.requests import ErrorBody

if TYPE_CHECKING:
    pass

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
    names = {} if body.max_completion_tokens is None else {"max_tokens": "max_completion_tokens"}
    run, _ = await start(service, job, "chat_completions", plan, names=names)
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
