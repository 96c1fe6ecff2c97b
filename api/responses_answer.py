"""One run as a response: its events in order, each numbered, and the response as it stands."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Any

from api.errors import as_ours, error_info
from api.pieces import Piece
from api.responses_job import ResponseJob
from api.responses_output import Event, Output
from api.runs import Run, usage_of
from api.service import Service
from api.sse import sse_named
from api.wire import to_json
from constrained.errors import ConstrainedError, InternalError
from schemas.events import UsageInfo
from schemas.responses import (
    IncompleteDetails,
    InputTokensDetails,
    OutputTokensDetails,
    ResponseFault,
    ResponseObject,
    ResponsesRequest,
    ResponseUsage,
)

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

logger = logging.getLogger(__name__)


def response_of(body: ResponsesRequest, run: Run[Piece], asked: ResponseJob, model: str) -> ResponseObject:
    """The response to a body before anything is generated."""
    params = asked.job.params
    return ResponseObject(
        id=f"resp_{run.id.removeprefix('run_')}",
        created_at=int(time()),
        background=bool(body.background),
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        metadata=body.metadata or {},
        model=model,
        parallel_tool_calls=body.parallel_tool_calls is not False,
        previous_response_id=body.previous_response_id,
        prompt_cache_key=body.prompt_cache_key,
        safety_identifier=body.safety_identifier,
        store=body.store is not False,
        temperature=params.temperature,
        text=_text_config(body),
        tool_choice="auto" if body.tool_choice is None else _dumped(body.tool_choice),
        tools=[{"strict": True, **_dumped(tool)} for tool in body.tools or []],
        top_logprobs=body.top_logprobs or 0,
        top_p=params.top_p,
        user=body.user,
    )


def _text_config(body: ResponsesRequest) -> dict[str, Any]:
    wanted = None if body.text is None else body.text.format
    return {"format": {"type": "text"} if wanted is None else _dumped(wanted), "verbosity": "medium"}


def _dumped(value: Any) -> Any:
    return value if isinstance(value, str) else value.model_dump(by_alias=True, exclude_none=True)


class ResponseAnswer:
    """Follows a run to its end and keeps `response` up to date on the way. To be followed once."""

    def __init__(
        self,
        service: Service,
        run: Run[Piece],
        asked: ResponseJob,
        response: ResponseObject,
        typed_grammar: CompiledGrammar | None,
    ) -> None:
        self.response = response
        self._service = service
        self._run = run
        self._asked = asked
        self._typed_grammar = typed_grammar
        self._output = Output(service.backend.token_bytes)
        self._num_events = 0
        response.output = self._output.items

    async def frames(self) -> AsyncIterator[bytes]:
        """The events as they go over the wire."""
        async for event in self.events():
            yield sse_named(event["type"], to_json(event))

    async def events(self) -> AsyncIterator[Event]:
        """All events; whatever fails on the way ends them with `response.failed`."""
        try:
            for event in self._numbered(self._opening()):
                yield event
            async for frame in self._run.frames(self._service.settings.chat_coalesce_ms / 1000):
                for event in self._numbered(self._output.add(frame.items)):
                    yield event
            ending = await self._ending()
        except Exception as error:
            if not isinstance(error, ConstrainedError):
                logger.exception("the events of %s failed", self._run.id)
            ending = [self._failure(error)]
        for event in self._numbered(ending):
            yield event

    async def finish(self) -> None:
        """Follow the run without telling of it; raises what made it fail."""
        async for _ in self.events():
            pass
        if self._run.error is not None:
            raise as_ours(self._run.error)
        if self.response.status in ("failed", "cancelled"):
            raise InternalError("The run was cancelled")

    def _numbered(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            number, self._num_events = self._num_events, self._num_events + 1
            yield {"type": event["type"], "sequence_number": number, **event}

    def _opening(self) -> Iterator[Event]:
        yield self._told("response.created")
        yield self._told("response.in_progress")
        if self._typed_grammar is not None:
            grammar = self._typed_grammar
            known = {"schema_hash": grammar.schema_hash, "order": list(grammar.property_order)}
            yield {"type": "constrained.start", "schema": self._asked.job.schema, **known}

    async def _ending(self) -> list[Event]:
        if self._run.error is not None:
            raise as_ours(self._run.error)
        outcome = self._run.outcomes[0]
        if self._asked.job.options is not None:
            await self._service.judge(self._asked.job, self._run.outcomes)
        complete = outcome.finish_reason == "stop"
        events = self._output.finish(complete)
        self.response.usage = response_usage(usage_of(self._run.outcomes))
        self.response.completed_at = int(time())
        if complete:
            self.response.status = "completed"
        elif outcome.finish_reason == "length":
            self.response.status = "incomplete"
            self.response.incomplete_details = IncompleteDetails(reason="max_output_tokens")
        else:
            self.response.status = "cancelled"
        return [*events, self._told(f"response.{self.response.status}")]

    def _failure(self, error: Exception) -> Event:
        self._output.finish(complete=False)
        self.response.status = "failed"
        self.response.error = ResponseFault(code="server_error", message=error_info(error).message)
        return self._told("response.failed")

    def _told(self, kind: str) -> Event:
        return {"type": kind, "response": self.response.model_dump()}


def response_usage(usage: UsageInfo) -> ResponseUsage:
    """Token counts as the official clients read them."""
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=usage.cached_tokens),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputTokensDetails(forced_tokens=usage.forced_tokens),
        total_tokens=usage.total_tokens,
    )
