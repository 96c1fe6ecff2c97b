"""`POST /v1/chat/completions` as the official clients speak it, whole or as a stream of chunks."""

from __future__ import annotations

import codecs
import logging
from collections.abc import AsyncIterator
from time import time
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.chat_job import job_of
from api.deps import ServiceDep
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.docs import streamed
from api.errors import as_ours, error_info
from api.runs import Outcome, Run, finish_reason_of, usage_of
from api.service import Job, Service
from api.sse import EventStreamResponse, sse_data
from api.wire import JsonRoute, to_json
from constrained.decode.request import FinishReason
from constrained.errors import ConstrainedError, InternalError
from schemas.openai import (
    AssistantMessage,
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionRequest,
    ChatFinishReason,
    ChoiceDelta,
    ChunkChoice,
    CompletionUsage,
    PromptTokensDetails,
)
from schemas.requests import ErrorBody

logger = logging.getLogger(__name__)
router = APIRouter(
    prefix="/v1/chat",
    route_class=JsonRoute,
    tags=["openai"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


class TextStream:
    """Bytes to text, a character split over chunks held back until it is whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> list[str]:
        text = self._decoder.decode(data)
        return [text] if text else []

    def finish(self) -> list[str]:
        text = self._decoder.decode(b"", final=True)
        return [text] if text else []


@router.post(
    "/completions",
    response_model=ChatCompletion,
    responses={200: streamed("The completion, or its chunks.", ChatCompletionChunk)},
)
async def chat_completions(body: ChatCompletionRequest, service: ServiceDep, request: Request) -> Response:
    """Answer a chat, bound by `response_format` where one is given."""
    service.check_model(body.model)
    job = job_of(body, service.settings.default_chat_max_tokens)
    grammar = None if job.options is None else await service.grammar(job.schema, job.options)
    run = await service.start(job, grammar, "chat_completions", TextStream)
    answer = ChatAnswer(service, run, job)
    if not body.stream:
        return await answer.whole(request)
    include_usage = body.stream_options is not None and body.stream_options.include_usage
    return EventStreamResponse(
        answer.chunks(include_usage),
        on_close=lambda: service.close_run(run),
        heartbeat_s=service.settings.heartbeat_s,
        stall_timeout_s=service.settings.stall_timeout_s,
    )


class ChatAnswer:
    """One run as a chat completion."""

    def __init__(self, service: Service, run: Run[str], job: Job) -> None:
        self._service = service
        self._run = run
        self._job = job
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{run.id.removeprefix('run_')}",
            "created": int(time()),
            "model": service.backend.name,
        }

    async def whole(self, request: Request) -> Response:
        """The completion as one JSON document."""
        try:
            if not await unless_disconnected(request.receive, self._run.wait()):
                return Response(status_code=CLIENT_GONE)
            self._raise_failure()
            await self._judge()
            choices = [
                ChatChoice(
                    index=index,
                    message=AssistantMessage(content=outcome.text.decode("utf-8", "replace")),
                    finish_reason=_reason(outcome.finish_reason),
                )
                for index, outcome in enumerate(self._run.outcomes)
            ]
            completion = ChatCompletion(**self._head, choices=choices, usage=chat_usage(self._run.outcomes))
            return JSONResponse(completion.model_dump(), headers={"cache-control": "no-store, no-transform"})
        finally:
            self._service.close_run(self._run)

    async def chunks(self, include_usage: bool) -> AsyncIterator[bytes]:
        """The completion as chunks; whatever fails after the first byte becomes one error, which ends the stream."""
        try:
            for choice in range(len(self._run.outcomes)):
                yield self._chunk(choice, ChoiceDelta(role="assistant", content=""), include_usage)
            async for frame in self._run.frames(self._service.settings.chat_coalesce_ms / 1000):
                yield self._chunk(frame.choice, ChoiceDelta(content="".join(frame.items)), include_usage)
            self._raise_failure()
            await self._judge()
            for choice, outcome in enumerate(self._run.outcomes):
                yield self._chunk(choice, ChoiceDelta(), include_usage, _reason(outcome.finish_reason))
            if include_usage:
                yield sse_data(
                    to_json({**self._chunk_head, "choices": [], "usage": chat_usage(self._run.outcomes).model_dump()})
                )
            yield sse_data("[DONE]")
        except Exception as error:
            if not isinstance(error, ConstrainedError):
                logger.exception("the stream of %s failed", self._run.id)
            yield sse_data(to_json(ErrorBody(error=error_info(error)).model_dump()))

    @property
    def _chunk_head(self) -> dict[str, Any]:
        return {"object": "chat.completion.chunk", **self._head}

    def _chunk(self, choice: int, delta: ChoiceDelta, with_usage: bool, reason: ChatFinishReason | None = None) -> bytes:
        chunk = ChatCompletionChunk(**self._chunk_head, choices=[ChunkChoice(index=choice, delta=delta, finish_reason=reason)])
        if with_usage:
            chunk.usage = None
        return sse_data(to_json(chunk.model_dump(exclude_unset=True)))

    def _raise_failure(self) -> None:
        """A run that failed, or that the service itself stopped, has no answer."""
        if self._run.error is not None:
            raise as_ours(self._run.error)
        if finish_reason_of(self._run.outcomes) == "cancelled":
            raise InternalError("The run was cancelled")

    async def _judge(self) -> None:
        if self._job.options is not None:
            await self._service.judge(self._job.schema, self._run.outcomes)


def chat_usage(outcomes: list[Outcome]) -> CompletionUsage:
    """Token counts as the official clients read them."""
    usage = usage_of(outcomes)
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=usage.cached_tokens),
    )


def _reason(reason: FinishReason | None) -> ChatFinishReason:
    return "stop" if reason == "stop" else "length"
