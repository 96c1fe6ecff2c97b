"""`POST /v1/completions` as the official clients speak it, whole or as a stream of chunks."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from time import time
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.answers import failure_of, merged
from api.chat_answer import chat_usage
from api.completions_job import jobs_of
from api.deps import ServiceDep
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.docs import streamed
from api.errors import error_info
from api.logprobs import text_logprobs
from api.pieces import Answer, Piece
from api.runs import Run
from api.service import Job, Service
from api.sse import NO_STORE, EventStreamResponse, sse_data
from api.start import start
from api.wire import JsonRoute, to_json
from constrained.errors import ConstrainedError
from schemas.completions import Completion, CompletionRequest, TextChoice, TextLogprobs
from schemas.openai import CompletionUsage
from schemas.requests import ErrorBody

logger = logging.getLogger(__name__)
router = APIRouter(
    prefix="/v1/completions",
    route_class=JsonRoute,
    tags=["openai"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.post("", response_model=Completion, responses={200: streamed("The completion, or its chunks.", Completion)})
async def completions(body: CompletionRequest, service: ServiceDep, request: Request) -> Response:
    """Go on from a text, bound by a constraint where one is given."""
    service.check_model(body.model)
    jobs = jobs_of(body)
    runs: list[Run[Piece]] = []
    try:
        for job in jobs:
            runs.append((await start(service, job, "completions"))[0])
    except ConstrainedError:
        _close(service, runs)
        raise
    answer = TextAnswer(service, runs, jobs, bool(body.echo))
    if body.stream:
        include_usage = body.stream_options is not None and body.stream_options.include_usage
        frames = answer.chunks(include_usage)
        settings = service.settings
        return EventStreamResponse(frames, lambda: _close(service, runs), settings.heartbeat_s, settings.stall_timeout_s)
    try:
        if not await unless_disconnected(request.receive, answer.collect()):
            return Response(status_code=CLIENT_GONE)
        return JSONResponse((await answer.whole()).model_dump(), headers=NO_STORE)
    finally:
        _close(service, runs)


def _close(service: Service, runs: Sequence[Run[Piece]]) -> None:
    for run in runs:
        service.close_run(run)


class TextAnswer:
    """The runs of one request as one completion; each prompt has its choices behind those of the prompt before."""

    def __init__(self, service: Service, runs: Sequence[Run[Piece]], jobs: Sequence[Job], echo: bool) -> None:
        self._service = service
        self._runs = runs
        self._jobs = jobs
        self._echo = echo
        self._num_choices = jobs[0].num_choices
        self._answers = [Answer() for _ in range(len(runs) * self._num_choices)]
        self._lengths = [len(self._prompt(index)) for index in range(len(self._answers))]
        self._head: dict[str, Any] = {
            "id": f"cmpl-{runs[0].id.removeprefix('run_')}",
            "created": int(time()),
            "model": service.backend.name,
        }

    async def collect(self) -> None:
        """Follow the runs to their ends."""
        async for _ in self._pieces(0.0):
            pass

    async def whole(self) -> Completion:
        """The completion, once its runs have ended."""
        await self._judge()
        choices = [
            TextChoice(
                index=index,
                text=self._prompt(index) + (answer.content or ""),
                logprobs=self._logprobs(answer.logprobs, 0),
                finish_reason=self._reason(index),
            )
            for index, answer in enumerate(self._answers)
        ]
        return Completion(**self._head, choices=choices, usage=self._usage())

    async def chunks(self, include_usage: bool) -> AsyncIterator[bytes]:
        """The completion as chunks; whatever fails after the first byte becomes one error, which ends the stream."""
        try:
            if self._echo:
                for index in range(len(self._answers)):
                    yield self._chunk(TextChoice(index=index, text=self._prompt(index), finish_reason=None), include_usage)
            async for index, added in self._pieces(self._service.settings.chat_coalesce_ms / 1000):
                offset = self._lengths[index]
                self._lengths[index] += len(added.content or "")
                logprobs = self._logprobs(added.logprobs, offset)
                choice = TextChoice(index=index, text=added.content or "", logprobs=logprobs, finish_reason=None)
                yield self._chunk(choice, include_usage)
            await self._judge()
            for index in range(len(self._answers)):
                yield self._chunk(TextChoice(index=index, text="", finish_reason=self._reason(index)), include_usage)
            if include_usage:
                yield sse_data(to_json(Completion(**self._head, choices=[], usage=self._usage()).model_dump()))
            yield sse_data("[DONE]")
        except Exception as error:
            if not isinstance(error, ConstrainedError):
                logger.exception("the stream of %s failed", self._head["id"])
            yield sse_data(to_json(ErrorBody(error=error_info(error)).model_dump()))

    async def _pieces(self, window_s: float) -> AsyncIterator[tuple[int, Answer]]:
        """(choice, what was added to it), as it comes."""
        async for place, frame in merged([run.frames(window_s) for run in self._runs]):
            index = place * self._num_choices + frame.choice
            added = Answer()
            added.add(frame.items)
            self._answers[index].add(frame.items)
            yield index, added

    def _chunk(self, choice: TextChoice, with_usage: bool) -> bytes:
        chunk = Completion(**self._head, choices=[choice])
        return sse_data(to_json(chunk.model_dump(exclude=None if with_usage else {"usage"})))

    def _prompt(self, index: int) -> str:
        prompt = self._jobs[index // self._num_choices].prompt
        return prompt if self._echo and isinstance(prompt, str) else ""

    def _reason(self, index: int) -> Literal["stop", "length"]:
        outcome = self._runs[index // self._num_choices].outcomes[index % self._num_choices]
        return "stop" if outcome.finish_reason == "stop" else "length"

    def _logprobs(self, entries: Sequence[Any], offset: int) -> TextLogprobs | None:
        if self._jobs[0].params.logprobs is None:
            return None
        return text_logprobs(entries, self._service.backend.token_bytes, offset)

    def _usage(self) -> CompletionUsage:
        return chat_usage([run.outcomes for run in self._runs])

    async def _judge(self) -> None:
        """Raises what made a run fail; a finished document is validated once more."""
        for run, job in zip(self._runs, self._jobs, strict=True):
            if (failure := failure_of(run)) is not None:
                raise failure
            if job.options is not None:
                await self._service.judge(job, run.outcomes)
