"""`/v1/responses` as the official clients speak it: create, retrieve, follow, cancel, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from api.conversation import Event
from api.deps import ResponsesDep, ServiceDep
from api.disconnect import CLIENT_GONE, unless_disconnected
from api.docs import streamed
from api.responses_answer import ResponseAnswer, response_of
from api.responses_job import response_job_of
from api.responses_store import FrameLog, Kept
from api.service import Service
from api.sse import NO_STORE, EventStreamResponse
from api.start import start
from api.wire import JsonRoute
from constrained.errors import RequestError
from schemas.requests import ErrorBody
from schemas.responses import (
    DeletedResponse,
    InputItem,
    InputItemList,
    ResponseObject,
    ResponsesRequest,
    TypedDeltaEvent,
    TypedStartEvent,
)

FIELD_NAMES = {"messages": "input", "max_tokens": "max_output_tokens"}
router = APIRouter(
    prefix="/v1/responses",
    route_class=JsonRoute,
    tags=["openai"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.post(
    "",
    response_model=ResponseObject,
    responses={200: streamed("The response, or its events.", TypedStartEvent, TypedDeltaEvent)},
)
async def create(body: ResponsesRequest, service: ServiceDep, store: ResponsesDep, request: Request) -> Response:
    """Answer an input, bound by `text.format` and by the parameters of `tools` where they are given."""
    service.check_model(body.model)
    earlier: Sequence[Event] = ()
    if body.previous_response_id is not None:
        earlier = store.get(body.previous_response_id, "previous_response_id").conversation
    asked = response_job_of(body, earlier, store.item, service.settings.default_chat_max_tokens)
    run, grammar = await start(service, asked.job, "responses", asked.plan, body.typed_deltas, FIELD_NAMES)
    response = response_of(body, run, asked, service.backend.name)
    answer = ResponseAnswer(service, run, asked, response, grammar if body.typed_deltas else None)
    kept = Kept(response, asked.conversation, _input_items(body.input), lambda: service.close_run(run))
    if body.store is not False:
        store.add(kept)
    if body.background:
        kept.log = FrameLog()
        store.run(_record(answer, kept, kept.log))
        return _follow(service, kept.log, 0) if body.stream else _answer(response)
    if body.stream:
        return _event_stream(service, answer.frames(), kept.close)
    try:
        if not await unless_disconnected(request.receive, answer.finish()):
            return Response(status_code=CLIENT_GONE)
        return _answer(response)
    finally:
        kept.close()


async def _record(answer: ResponseAnswer, kept: Kept, log: FrameLog) -> None:
    """Follow a run in the background, whoever reads of it."""
    try:
        async for frame in answer.frames():
            log.append(frame)
    finally:
        log.end()
        kept.close()


@router.get("/{response_id}", response_model=ResponseObject)
async def retrieve(
    response_id: str,
    service: ServiceDep,
    store: ResponsesDep,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0)] = None,
    include: Annotated[list[str] | None, Query()] = None,
    include_obfuscation: bool = False,
) -> Response:
    """A response as it stands; with `stream` its events, those after number `starting_after`."""
    kept = store.get(response_id)
    if not stream:
        if starting_after is not None:
            raise RequestError("starting_after needs stream=true", "starting_after")
        return _answer(kept.response)
    if kept.log is None:
        raise RequestError("Only responses that were made in the background can be streamed again", "stream")
    first = 0 if starting_after is None else starting_after + 1
    if first > len(kept.log):
        raise RequestError(f"The response has {len(kept.log)} events so far", "starting_after")
    return _follow(service, kept.log, first)


@router.post("/{response_id}/cancel", response_model=ResponseObject)
async def cancel(response_id: str, store: ResponsesDep) -> Response:
    """Stop a response that goes on in the background; idempotent."""
    kept = store.get(response_id)
    if kept.log is None:
        raise RequestError("Only responses that were made in the background can be cancelled", "response_id")
    kept.stop()
    await kept.ended.wait()
    return _answer(kept.response)


@router.delete("/{response_id}")
async def delete(response_id: str, store: ResponsesDep) -> DeletedResponse:
    """Forget a response, and stop it where it goes on."""
    store.delete(response_id)
    return DeletedResponse(id=response_id)


@router.get("/{response_id}/input_items")
async def input_items(
    response_id: str,
    store: ResponsesDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
    include: Annotated[list[str] | None, Query()] = None,
) -> InputItemList:
    """What a response was asked, page by page."""
    items = store.get(response_id).input_items
    items = items if order == "asc" else items[::-1]
    places = {item["id"]: place for place, item in enumerate(items)}
    if after is not None and after not in places:
        raise RequestError(f"The response was asked no item {after!r}", "after")
    first = 0 if after is None else places[after] + 1
    page = items[first : first + limit]
    ids = [item["id"] for item in page] or [None]
    return InputItemList(data=page, first_id=ids[0], last_id=ids[-1], has_more=first + limit < len(items))


def _answer(response: ResponseObject) -> Response:
    return JSONResponse(response.model_dump(), headers=NO_STORE)


def _follow(service: Service, log: FrameLog, first: int) -> Response:
    """The events of a response in the background; a reader that goes leaves it be."""
    return _event_stream(service, log.follow(first), lambda: None)


def _event_stream(service: Service, frames: AsyncIterator[bytes], on_close: Callable[[], None]) -> Response:
    settings = service.settings
    return EventStreamResponse(frames, on_close, settings.heartbeat_s, settings.stall_timeout_s)


def _input_items(given: str | Sequence[InputItem]) -> list[dict[str, Any]]:
    """What was asked, each item with an id."""
    if isinstance(given, str):
        part = {"type": "input_text", "text": given}
        return [{"id": new_item_id(), "type": "message", "role": "user", "status": "completed", "content": [part]}]
    return [{"id": new_item_id(), **item.model_dump(exclude_none=True)} for item in given]


def new_item_id() -> str:
    return f"msg_{uuid4().hex}"
