"""One run as a chat completion: whole, or chunk by chunk."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from json.encoder import encode_basestring
from time import time
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from api.answers import failure_of
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.errors import error_info
from api.logprobs import chat_logprobs
from api.pieces import Answer, CallArguments, CallStart, Content, Piece
from api.runs import Outcome, Run, usage_of
from api.service import Job, Service
from api.sse import NO_STORE, sse_data
from api.tools import ToolPlan
from api.wire import one_line, to_json
from constrained.decode.request import TokenLogprob
from constrained.errors import ConstrainedError
from schemas.openai import (
    AssistantMessage,
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatFinishReason,
    ChoiceDelta,
    ChunkChoice,
    CompletionTokensDetails,
    CompletionUsage,
    Logprobs,
    PromptTokensDetails,
)
from schemas.requests import ErrorBody
from schemas.tools import CalledFunction, FunctionDelta, ToolCall, ToolCallDelta

logger = logging.getLogger(__name__)


class ChatAnswer:
    """One run as a chat completion."""

    def __init__(self, service: Service, run: Run[Piece], job: Job, plan: ToolPlan | None) -> None:
        self._service = service
        self._run = run
        self._job = job
        self._plan = plan
        self._answers = [Answer() for _ in run.outcomes]
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{run.id.removeprefix('run_')}",
            "created": int(time()),
            "model": service.backend.name,
        }
        empty = ChatCompletionChunk(**self._chunk_head, choices=[]).model_dump(exclude={"choices", "usage"})
        self._opening = to_json(empty)[:-1]

    async def whole(self, request: Request) -> Response:
        """The completion as one JSON document."""
        try:
            if not await unless_disconnected(request.receive, self._collect()):
                return Response(status_code=CLIENT_GONE)
            await self._judge()
            choices = [self._choice(index) for index in range(len(self._answers))]
            completion = ChatCompletion(**self._head, choices=choices, usage=chat_usage([self._run.outcomes]))
            return JSONResponse(completion.model_dump(), headers=NO_STORE)
        finally:
            self._service.close_run(self._run)

    async def chunks(self, include_usage: bool) -> AsyncIterator[bytes]:
        """The completion as chunks; whatever fails after the first byte becomes one error, which ends the stream."""
        try:
            # Null where calls may follow: some clients begin a text at an empty string.
            content = "" if self._plan is None else None
            for choice in range(len(self._answers)):
                yield self._chunk(choice, include_usage, ChoiceDelta(role="assistant", content=content))
            async for frame in self._run.frames(self._service.settings.chat_coalesce_ms / 1000):
                self._answers[frame.choice].add(frame.items)
                yield self._items_chunk(frame.choice, include_usage, frame.items)
            await self._judge()
            for choice in range(len(self._answers)):
                yield self._chunk(choice, include_usage, ChoiceDelta(), self._reason(choice))
            if include_usage:
                usage = to_json(chat_usage([self._run.outcomes]).model_dump())
                yield sse_data(f'{self._opening},"choices":[],"usage":{usage}}}')
            yield sse_data("[DONE]")
        except Exception as error:
            if not isinstance(error, ConstrainedError):
                logger.exception("the stream of %s failed", self._run.id)
            yield sse_data(to_json(ErrorBody(error=error_info(error)).model_dump()))

    async def _collect(self) -> None:
        async for frame in self._run.frames(0):
            self._answers[frame.choice].add(frame.items)

    def _choice(self, index: int) -> ChatChoice:
        answer = self._answers[index]
        calls = [
            ToolCall(id=call.id, function=CalledFunction(name=call.name, arguments=call.arguments)) for call in answer.calls
        ]
        content = answer.content if calls else answer.content or ""
        return ChatChoice(
            index=index,
            message=AssistantMessage(content=content, tool_calls=calls or None),
            logprobs=self._logprobs(answer.logprobs),
            finish_reason=self._reason(index),
        )

    @property
    def _chunk_head(self) -> dict[str, Any]:
        return {"object": "chat.completion.chunk", **self._head}

    def _chunk(
        self,
        choice: int,
        with_usage: bool,
        delta: ChoiceDelta,
        reason: ChatFinishReason | None = None,
        logprobs: Logprobs | None = None,
    ) -> bytes:
        part = ChunkChoice(index=choice, delta=delta, finish_reason=reason)
        if logprobs is not None:
            part.logprobs = logprobs
        chunk = ChatCompletionChunk(**self._chunk_head, choices=[part])
        if with_usage:
            chunk.usage = None
        return sse_data(to_json(chunk.model_dump(exclude_unset=True)))

    def _items_chunk(self, choice: int, with_usage: bool, items: Sequence[Piece]) -> bytes:
        """The chunk of what was generated. Text alone, which most of them are, is written without models."""
        if self._job.params.logprobs is None and all(isinstance(item, Content) for item in items):
            content = encode_basestring("".join(item.add for item in items if isinstance(item, Content)))
            part = f'{{"index":{choice},"delta":{{"content":{content}}},"finish_reason":null}}'
            usage = ',"usage":null' if with_usage else ""
            return sse_data(one_line(f'{self._opening},"choices":[{part}]{usage}}}'))
        return self._chunk(choice, with_usage, delta_of(items), logprobs=self._logprobs(items))

    def _logprobs(self, pieces: Sequence[Piece]) -> Logprobs | None:
        if self._job.params.logprobs is None:
            return None
        entries = [piece for piece in pieces if isinstance(piece, TokenLogprob)]
        return chat_logprobs(entries, self._service.backend.token_bytes)

    def _reason(self, choice: int) -> ChatFinishReason:
        """As the official API has it: a call that the caller forced ends with "stop"."""
        if self._run.outcomes[choice].finish_reason != "stop":
            return "length"
        chose_to_call = self._answers[choice].calls and self._plan is not None and self._plan.mode != "named"
        return "tool_calls" if chose_to_call else "stop"

    async def _judge(self) -> None:
        """Raises what made the run fail; a finished document is validated once more."""
        if (failure := failure_of(self._run)) is not None:
            raise failure
        if self._job.options is not None:
            await self._service.judge(self._job, self._run.outcomes)


def delta_of(pieces: Sequence[Piece]) -> ChoiceDelta:
    """What some pieces add, as one delta."""
    delta = ChoiceDelta()
    calls: dict[int, ToolCallDelta] = {}
    for piece in pieces:
        match piece:
            case Content(add):
                delta.content = (delta.content or "") + add
            case CallStart(index, call_id, name):
                function = FunctionDelta(name=name, arguments="")
                calls[index] = ToolCallDelta(index=index, id=call_id, type="function", function=function)
            case CallArguments(index, add):
                call = calls.setdefault(index, ToolCallDelta(index=index, function=FunctionDelta()))
                call.function.arguments = (call.function.arguments or "") + add
    if calls:
        delta.tool_calls = list(calls.values())
    return delta


def chat_usage(outcomes_by_run: Sequence[list[Outcome]]) -> CompletionUsage:
    """Token counts of one or more runs as the official clients read them."""
    usages = [usage_of(outcomes) for outcomes in outcomes_by_run]
    return CompletionUsage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        total_tokens=sum(usage.total_tokens for usage in usages),
        prompt_tokens_details=PromptTokensDetails(cached_tokens=sum(usage.cached_tokens for usage in usages)),
        completion_tokens_details=CompletionTokensDetails(forced_tokens=sum(usage.forced_tokens for usage in usages)),
    )
