"""Both clients, by one suite: requests as they are sent, answers, streams, and every way in which they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, field_validator

from constrained.client import (
    UNSET,
    ApiError,
    AuthenticationError,
    BadRequestError,
    ClientError,
    DisconnectedError,
    GoneError,
    IncompleteError,
    InvalidAnswerError,
    NotFoundError,
    ProtocolError,
    RateLimitError,
    Resume,
    RunEndedError,
    RunFailedError,
    SchemaRefusedError,
    ServerError,
    TransportError,
    TransportTimeoutError,
    UnavailableError,
)
from schemas.events import DeltaEvent, DoneEvent, ErrorEvent, StartEvent
from schemas.requests import Message
from tests.client.builders import (
    CLIENTS,
    TIMINGS,
    USAGE,
    Frames,
    Service,
    collect,
    deltas,
    done,
    error,
    events_response,
    start,
    whole,
)

Scenario = Callable[[Any], Awaitable[None]]
PROMPT: dict[str, Any] = {"prompt": "hello"}
URL = "http://service"


class Item(BaseModel):
    id: int
    tag: str = "none"


class Order(BaseModel):
    note: str
    items: list[Item] = []
    customer: Annotated[str | None, Field(alias="the-customer")] = "nobody"


ORDER = '{"note":"two lines","items":[{"id":1},{"id":2,"tag":"x"}],"the-customer":null}'
PIECES = ['{"note":"two', ' lines","it', 'ems":[{"id":1},{"i', 'd":2,"tag":"x"}', '],"the-customer":null}']


@pytest.fixture(params=CLIENTS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client of either kind."""
    return CLIENTS[request.param]


def play(make: Callable[..., Any], service: Service, scenario: Scenario, **options: Any) -> None:
    async def scene() -> None:
        async with make(URL, transport=service.transport, **options) as client:
            await scenario(client)

    asyncio.run(scene())


def serve(*frames: bytes, breaks: Exception | None = None) -> tuple[Service, Frames]:
    body = Frames(frames, breaks)
    return Service(events_response(body)), body


def choice(text: str, value: Any, reason: str = "stop", valid: bool = True, index: int = 0) -> dict[str, Any]:
    return {"index": index, "text": text, "value": value, "finish_reason": reason, "valid": valid}


def response(*choices: dict[str, Any]) -> httpx.Response:
    data = {"run": "run_1", "model": "m", "schema_hash": "h", "choices": list(choices), "usage": USAGE, "timings": TIMINGS}
    return httpx.Response(200, json=data)


def refusal(status: int, **fields: Any) -> httpx.Response:
    info = {"message": "no", "type": "invalid_request_error", "param": None, "code": None} | fields
    return httpx.Response(status, json={"error": info}, headers={"x-request-id": "req-7"})


# Requests.


def test_a_model_becomes_its_schema_and_options_are_passed_on(make: Callable[..., Any]) -> None:
    service = Service(response(choice("{}", {})))

    async def scenario(client: Any) -> None:
        await client.structured(
            dict[str, int], messages=[{"role": "system", "content": "a"}, Message(role="user", content="b")], seed=0, top_k=None
        )

    play(make, service, scenario, api_key="k")
    (request,) = service.requests
    assert (request.method, str(request.url)) == ("POST", URL + "/v1/structured")
    assert request.headers["authorization"] == "Bearer k"
    assert service.bodies == [
        {
            "schema": {"type": "object", "additionalProperties": {"type": "integer"}},
            "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
            "seed": 0,
        }
    ]


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (True, True),
        ({"type": "string"}, {"type": "string"}),
        (Order, Order.model_json_schema()),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    ],
)
def test_the_schema_is_sent_as_it_is_given(make: Callable[..., Any], schema: Any, sent: Any) -> None:
    service, _ = serve(*whole("1"))

    async def scenario(client: Any) -> None:
        async with client.stream(schema, **PROMPT, max_tokens=7, timeout=300.0):
            pass

    play(make, service, scenario)
    assert service.bodies == [{"schema": sent, "prompt": "hello", "max_tokens": 7}]
    (request,) = service.requests
    assert request.url.path == "/v1/structured/stream"
    assert request.headers["accept"] == "text/event-stream"
    assert request.extensions["timeout"] == {
        "connect": 300.0,
        "read": pytest.approx(300.0, abs=100.0),
        "write": 300.0,
        "pool": 300.0,
    }


def test_a_schema_that_is_a_false_value_is_still_a_schema(make: Callable[..., Any]) -> None:
    service = Service(refusal(400), refusal(400))

    async def scenario(client: Any) -> None:
        for schema in (False, {}):
            with pytest.raises(ApiError):
                await client.structured(schema, **PROMPT)

    play(make, service, scenario)
    assert [body["schema"] for body in service.bodies] == [False, {}]


def test_text_is_no_schema(make: Callable[..., Any]) -> None:
    service = Service()

    async def scenario(client: Any) -> None:
        with pytest.raises(TypeError, match=r"json\.loads"):
            await client.structured('{"type": "string"}', **PROMPT)

    play(make, service, scenario)
    assert service.requests == []


def test_the_client_waits_long_for_an_answer_and_not_for_a_connection(make: Callable[..., Any]) -> None:
    service = Service(httpx.Response(200, json={"object": "list", "data": []}))

    async def scenario(client: Any) -> None:
        assert await client.models() == []

    play(make, service, scenario)
    assert service.requests[0].extensions["timeout"] == {"connect": 10.0, "read": 600.0, "write": 10.0, "pool": 10.0}


# Answers that are not streamed.


def test_structured_gives_the_instance_with_its_run(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        answer = await client.structured(Order, **PROMPT)
        assert answer.value == Order.model_validate_json(ORDER)
        assert answer.value.customer is None
        assert answer.response.usage.completion_tokens == 5
        assert answer.response.choices[0].text == ORDER

    play(make, Service(response(choice(ORDER, {}))), scenario)


def test_structured_reads_a_plain_schema_to_plain_values_of_every_choice(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        answer = await client.structured(True, **PROMPT, n=2)
        assert answer.value is None
        assert answer.values == (None, [1])

    play(make, Service(response(choice("[1]", [1], index=1), choice("null", None))), scenario)


def test_structured_carries_the_partial_of_a_cut_document(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(IncompleteError) as caught:
            await client.structured(Order, **PROMPT)
        assert caught.value.finish_reason == "length"
        assert caught.value.partial.note == "two"
        assert caught.value.partial.items is UNSET
        assert caught.value.value == {"note": "two"}
        assert caught.value.response.usage.total_tokens == 8
        with pytest.raises(IncompleteError) as caught:
            await client.structured(Order, **PROMPT)
        assert caught.value.partial is UNSET

    cut = response(choice('{"note":"two', None, "length", valid=False))
    play(make, Service(cut, response(choice("", None, "cancelled", valid=False))), scenario)


def test_structured_refuses_what_is_finished_and_wrong(make: Callable[..., Any]) -> None:
    class Even(BaseModel):
        id: int

        @field_validator("id")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    async def scenario(client: Any) -> None:
        with pytest.raises(InvalidAnswerError, match="odd") as caught:
            await client.structured(Even, **PROMPT)
        assert caught.value.value == {"id": 1}
        with pytest.raises(InvalidAnswerError, match="does not meet its schema"):
            await client.structured(Even, **PROMPT)

    play(make, Service(response(choice('{"id":1}', {"id": 1})), response(choice("2", 2, valid=False))), scenario)


def test_check_and_models(make: Callable[..., Any]) -> None:
    verdict = {
        "supported": False,
        "schema_hash": None,
        "keywords": [{"pointer": "/properties/born", "keyword": "format", "status": "refused", "reason": "not built"}],
        "order": [],
        "min_bytes": None,
        "error": {
            "message": "no",
            "type": "invalid_request_error",
            "param": "/properties/born/format",
            "code": "unsupported_keyword",
        },
    }
    card = {"id": "m", "object": "model", "created": 1, "owned_by": "us", "context_len": 2048}
    service = Service(httpx.Response(200, json=verdict), httpx.Response(200, json={"object": "list", "data": [card]}))

    async def scenario(client: Any) -> None:
        checked = await client.check(Item, whitespace="compact", timeout=1.0)
        assert not checked.supported
        assert checked.error.param == "/properties/born/format"
        assert [(model.id, model.context_len) for model in await client.models()] == [("m", 2048)]

    play(make, service, scenario)
    assert [(request.method, request.url.path) for request in service.requests] == [
        ("POST", "/v1/schemas/check"),
        ("GET", "/v1/models"),
    ]
    assert service.bodies == [{"schema": Item.model_json_schema(), "whitespace": "compact"}, None]


# Errors before the first byte.


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_request", BadRequestError),
        (400, "unsupported_keyword", SchemaRefusedError),
        (400, "unsatisfiable_schema", SchemaRefusedError),
        (401, None, AuthenticationError),
        (403, None, AuthenticationError),
        (404, "model_not_found", NotFoundError),
        (409, "run_ended", RunEndedError),
        (410, "run_expired", GoneError),
        (413, "body_too_large", BadRequestError),
        (429, None, RateLimitError),
        (500, "internal_error", ServerError),
        (503, "overloaded", UnavailableError),
        (307, None, BadRequestError),
    ],
)
def test_a_refusal_is_an_error_of_its_kind_and_is_not_retried(
    make: Callable[..., Any], status: int, code: str | None, kind: type
) -> None:
    service = Service(*(refusal(status, code=code, param="/type") for _ in range(4)))

    async def scenario(client: Any) -> None:
        async def stream() -> None:
            async with client.stream(True, **PROMPT):
                pytest.fail("a refused stream was entered")

        for call in (lambda: client.structured(True, **PROMPT), stream, lambda: client.check(True), lambda: client.cancel("r")):
            with pytest.raises(ApiError) as caught:
                await call()
            failure = caught.value
            assert type(failure) is kind
            assert (failure.status, failure.param, failure.place) == (status, "/type", "/type")
            assert (failure.request_id, failure.message) == ("req-7", "no")
            assert failure.code == code or (code is None and failure.code == "invalid_request_error")
            assert failure.retriable == (status in (429, 503))
            assert "/type" in str(failure)

    play(make, service, scenario)
    assert len(service.requests) == 4


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"text": "<h1>Bad gateway</h1>"}, "<h1>Bad gateway</h1>"),
        ({}, "Bad Gateway"),
        ({"json": {"error": "down"}}, '{"error":"down"}'),
        ({"json": {"error": {"message": "down", "more": 1}}}, "down"),
    ],
)
def test_a_refusal_by_someone_else_is_told_too(make: Callable[..., Any], body: dict[str, Any], told: str) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(ServerError) as caught:
            await client.structured(True, **PROMPT)
        assert caught.value.message == told
        assert caught.value.code == "http_error"
        assert caught.value.request_id is None

    play(make, Service(httpx.Response(502, **body)), scenario)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError("refused"), TransportError),
        (httpx.RemoteProtocolError("closed"), TransportError),
        (httpx.ReadTimeout("late"), TransportTimeoutError),
        (httpx.ConnectTimeout("late"), TransportTimeoutError),
    ],
)
def test_a_connection_that_fails_is_an_error_and_is_not_retried(
    make: Callable[..., Any], raised: Exception, kind: type
) -> None:
    service = Service(raised, raised)

    async def scenario(client: Any) -> None:
        with pytest.raises(TransportError) as caught:
            await client.structured(True, **PROMPT)
        assert type(caught.value) is kind
        assert caught.value.__cause__ is raised
        with pytest.raises(TransportError):
            async with client.stream(True, **PROMPT):
                pytest.fail("a stream without a connection was entered")

    play(make, service, scenario)
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("failure", "num_requests"),
    [(refusal, 3), (lambda _: httpx.ConnectError("refused"), 3), (lambda _: refusal(404), 1), (lambda _: refusal(500), 1)],
)
def test_only_what_reads_is_tried_again_and_only_where_that_may_help(
    make: Callable[..., Any], failure: Callable[[int], Any], num_requests: int
) -> None:
    service = Service(*(failure(503) for _ in range(4)))

    async def scenario(client: Any) -> None:
        with pytest.raises(ClientError):
            await client.models()

    play(make, service, scenario, resume=Resume(delay_s=0.0))
    assert len(service.requests) == num_requests


def test_a_request_that_reads_succeeds_at_last(make: Callable[..., Any]) -> None:
    service = Service(refusal(503), httpx.ReadError("reset"), httpx.Response(200, json={"object": "list", "data": []}))

    async def scenario(client: Any) -> None:
        assert await client.models() == []

    play(make, service, scenario, resume=Resume(delay_s=0.0))


@pytest.mark.parametrize("body", [{"text": "hello"}, {"json": {"choices": []}}])
def test_an_answer_of_another_service_breaks_the_protocol(make: Callable[..., Any], body: dict[str, Any]) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(ProtocolError):
            await client.structured(True, **PROMPT)
        with pytest.raises(ProtocolError, match="not text/event-stream"):
            async with client.stream(True, **PROMPT):
                pytest.fail("a stream of no events was entered")

    play(make, Service(httpx.Response(200, **body), httpx.Response(200, json={})), scenario)


# Streams.


def test_events_are_typed_and_end_with_the_terminal_one(make: Callable[..., Any]) -> None:
    service, body = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            assert stream.start.run == "run_1"
            assert stream.done is None
            events = await collect(stream)
            assert isinstance(events[0], StartEvent)
            assert all(isinstance(event, DeltaEvent) for event in events[1:-1])
            assert isinstance(events[-1], DoneEvent)
            assert stream.done is events[-1]
            assert stream.ended
            assert stream.last_event_id == "run_1:10000"
            assert stream.status()["/items"] == "complete"
            assert await stream.final() == Order.model_validate_json(ORDER)

    play(make, service, scenario)
    assert body.closed


def test_elements_come_as_instances_while_the_rest_is_not_there(make: Callable[..., Any]) -> None:
    frames = whole(*PIECES)
    service, body = serve(*frames)

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            found, taken = [], []
            async for item in stream.elements("/items", Item):
                found.append(item)
                taken.append(body.num_taken)
                assert stream.partial.customer is UNSET
            assert found == [Item(id=1), Item(id=2, tag="x")]
            assert taken[0] < taken[1] < len(frames)
            assert await collect(stream.elements("/items")) == [{"id": 1}, {"id": 2, "tag": "x"}]
            assert await collect(stream.elements("/nothing", Item)) == []

    play(make, service, scenario)


def test_text_comes_as_it_grows(make: Callable[..., Any]) -> None:
    service, _ = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            assert await collect(stream.text("/note")) == ["two", " lines"]
            assert await collect(stream.text("/note")) == ["two lines"]
            assert await collect(stream.text("/the-customer")) == []

    play(make, service, scenario)


def test_field_waits_for_the_final_value_and_no_longer(make: Callable[..., Any]) -> None:
    frames = whole(*PIECES)
    service, body = serve(*frames)

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            assert await stream.field("/note") == "two lines"
            assert body.num_taken == 3
            assert await stream.field("/items/0", Item) == Item(id=1)
            assert await stream.field("/items/0/tag") is UNSET
            assert body.num_taken == 4
            assert await stream.field("/items", list[Item]) == [Item(id=1), Item(id=2, tag="x")]
            assert await stream.field("/the-customer") is None
            assert await stream.field("/more") is UNSET

    play(make, service, scenario)


def test_partial_shows_what_is_there(make: Callable[..., Any]) -> None:
    service, _ = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            assert stream.partial is UNSET
            shown = []
            async for event in stream:
                if isinstance(event, DeltaEvent):
                    partial = stream.partial
                    items = partial.items
                    ids = UNSET if items is UNSET else [item.id for item in items]
                    shown.append((partial.note, ids, partial.customer))
            assert shown == [
                ("two", UNSET, UNSET),
                ("two lines", UNSET, UNSET),
                ("two lines", [1, UNSET], UNSET),
                ("two lines", [1, 2], UNSET),
                ("two lines", [1, 2], None),
            ]

    play(make, service, scenario)


def test_a_plain_schema_gives_plain_values(make: Callable[..., Any]) -> None:
    service, _ = serve(*whole('{"a":', '[1,{"b":nul', "l}]}"))

    async def scenario(client: Any) -> None:
        async with client.stream({"type": "object"}, **PROMPT) as stream:
            assert await stream.field("/a/0") == 1
            assert stream.partial["a"][1]["b"] is UNSET
            assert stream.partial["c"] is UNSET
            assert await stream.final() == {"a": [1, {"b": None}]}

    play(make, service, scenario)


def test_root_models_and_bare_types(make: Callable[..., Any]) -> None:
    class Items(RootModel[list[Item]]):
        pass

    service = Service(*(events_response(Frames(whole('[{"id":1},', '{"id":2}]'))) for _ in range(2)))

    async def scenario(client: Any) -> None:
        async with client.stream(Items, **PROMPT) as stream:
            assert await collect(stream.elements("", Item)) == [Item(id=1), Item(id=2)]
            assert stream.partial.root[0].tag is UNSET
            assert (await stream.final()).root == [Item(id=1), Item(id=2)]
        async with client.stream(list[Item], **PROMPT) as stream:
            assert await stream.final() == [Item(id=1), Item(id=2)]

    play(make, service, scenario)


def test_several_choices_are_apart(make: Callable[..., Any]) -> None:
    first, second = deltas('{"id":', "1}", seq=0), deltas('{"id":', '2,"tag":"x"}', choice=1, seq=10)
    service, _ = serve(start(choices=2), *first, *second, done(99, "stop", "stop"))

    async def scenario(client: Any) -> None:
        async with client.stream(Item, **PROMPT, n=2) as stream:
            assert await collect(stream.text("/tag", choice=1)) == ["x"]
            assert await stream.final() == Item(id=1)
            assert await stream.final(choice=1) == Item(id=2, tag="x")
            assert stream.partial_of(1).id == 2
            with pytest.raises(ValueError, match="this run has 2"):
                await stream.field("/id", choice=2)

    play(make, service, scenario)
    assert service.bodies[0]["n"] == 2


CHUNKS = b"".join([start(), b": ping\n", *deltas(*PIECES), done()])


@given(st.lists(st.integers(0, len(CHUNKS)), max_size=12), st.sampled_from(sorted(CLIENTS)))
def test_any_chunking_of_the_response_is_the_same_stream(cuts: list[int], client_name: str) -> None:
    chunks = [CHUNKS[begin:end] for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(CHUNKS)], strict=True)]
    service, _ = serve(*chunks)

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            events = stream.events()
            assert "".join(await collect(stream.text("/note"))) == "two lines"
            assert await collect(stream.elements("/items", Item)) == [Item(id=1), Item(id=2, tag="x")]
            assert [event.ops for event in await collect(events) if isinstance(event, DeltaEvent)] == OPS
            assert await stream.final() == Order.model_validate_json(ORDER)

    play(CLIENTS[client_name], service, scenario)


OPS = [DeltaEvent.model_validate_json(frame.partition(b"data: ")[2]).ops for frame in deltas(*PIECES)]


# Errors after the first byte.


def test_an_error_event_is_an_event_to_readers_of_events_and_an_error_to_others(make: Callable[..., Any]) -> None:
    service, _ = serve(start(), *deltas(*PIECES[:3], finish=False), error(code="internal_error", path="/items/1"))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            found: list[Item] = []
            with pytest.raises(RunFailedError) as caught:
                await collect(stream.elements("/items", Item), found)
            assert found == [Item(id=1)]
            assert (caught.value.code, caught.value.path) == ("internal_error", "/items/1")
            assert caught.value.partial.note == "two lines"
            assert isinstance((await collect(stream))[-1], ErrorEvent)
            assert stream.done is None
            for wait in (stream.final(), stream.field("/items"), collect(stream.text("/the-customer"))):
                with pytest.raises(RunFailedError):
                    await wait
            assert await stream.field("/note") == "two lines"

    play(make, service, scenario)


@pytest.mark.parametrize(
    "breaks", [httpx.ReadError("reset"), httpx.ReadTimeout("stalled"), httpx.RemoteProtocolError("cut"), OSError("gone"), None]
)
def test_a_dropped_connection_is_an_error_with_the_partial(make: Callable[..., Any], breaks: Exception | None) -> None:
    service, body = serve(start(), *deltas(*PIECES[:3], finish=False), breaks=breaks)

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            for wait in (collect(stream.events()), collect(stream.elements("/items", Item)), stream.final()):
                with pytest.raises(DisconnectedError) as caught:
                    await wait
                assert isinstance(caught.value, IncompleteError)
                assert isinstance(caught.value, TransportError)
                assert [item.id for item in caught.value.partial.items] == [1, UNSET]
                assert caught.value.__cause__ is breaks

    play(make, service, scenario)
    assert len(service.requests) == 1
    assert body.closed


@pytest.mark.parametrize("breaks", [httpx.ReadError("reset"), None])
@pytest.mark.parametrize("resumable", [False, True])
def test_a_connection_dropped_before_the_start(make: Callable[..., Any], breaks: Exception | None, resumable: bool) -> None:
    """The run's id has come to nobody: there is nothing to resume, and nothing to cancel."""
    service, _ = serve(b": ping\n", breaks=breaks)

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=resumable) as stream:
            with pytest.raises(DisconnectedError) as caught:
                stream.start  # noqa: B018
            assert caught.value.partial is UNSET
            assert (caught.value.run, caught.value.attempts) == (None, 0)
            with pytest.raises(DisconnectedError):
                stream.run_id  # noqa: B018
            with pytest.raises(DisconnectedError):
                await collect(stream)

    play(make, service, scenario)
    assert len(service.requests) == 1


FRAMES = deltas(*PIECES)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: refusal(503),
        lambda: httpx.ConnectError("refused"),
        lambda: httpx.Response(502, text="bad gateway"),
        lambda: httpx.ReadTimeout("late"),
    ],
)
def test_a_broken_stream_of_a_resumable_run_is_joined_behind_the_last_event(
    make: Callable[..., Any], refuse: Callable[[], Any]
) -> None:
    first, rest = Frames([start(), *FRAMES[:3]], httpx.ReadError("reset")), Frames([*FRAMES[3:], done()])
    service = Service(events_response(first), refuse(), events_response(rest))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            assert await collect(stream.elements("/items", Item)) == [Item(id=1), Item(id=2, tag="x")]
            assert await stream.final() == Order.model_validate_json(ORDER)

    play(make, service, scenario, resume=Resume(delay_s=0.0))
    seq = DeltaEvent.model_validate_json(FRAMES[2].partition(b"data: ")[2]).seq
    assert [(request.method, request.url.path) for request in service.requests] == [
        ("POST", "/v1/structured/stream"),
        *[("GET", "/v1/structured/run_1/events")] * 2,
    ]
    assert [request.headers.get("last-event-id") for request in service.requests] == [None, *[f"run_1:{seq}"] * 2]
    assert first.closed


@pytest.mark.parametrize(
    ("refuse", "cause"),
    [
        (lambda: refusal(404, code="run_not_found"), NotFoundError),
        (lambda: refusal(410), GoneError),
        (lambda: httpx.Response(204), RunEndedError),
    ],
)
def test_a_run_that_is_lost_meanwhile_is_an_error_with_the_partial(
    make: Callable[..., Any], refuse: Callable[[], Any], cause: type
) -> None:
    service = Service(events_response(Frames([start(), *FRAMES[:2]])), refuse())

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            with pytest.raises(DisconnectedError) as caught:
                await stream.final()
            assert isinstance(caught.value.__cause__, cause)
            assert (caught.value.partial.note, caught.value.attempts, caught.value.run) == ("two lines", 1, "run_1")

    play(make, service, scenario, resume=Resume(delay_s=0.0))
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (FRAMES[1:2], "comes after"),
        ([start(run="run_2"), done()], "run_2"),
        ([start(protocol=9)], "protocol version 9"),
    ],
)
def test_what_comes_twice_or_of_another_run_after_coming_back_breaks_the_protocol(
    make: Callable[..., Any], frames: list[bytes], why: str
) -> None:
    service = Service(events_response(Frames([start(), *FRAMES[:3]])), events_response(Frames(frames)))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            with pytest.raises(ProtocolError, match=why):
                await stream.final()

    play(make, service, scenario, resume=Resume(delay_s=0.0))


def test_events_that_break_the_protocol_are_an_error_after_those_before(make: Callable[..., Any]) -> None:
    service, _ = serve(start(), *deltas('{"note":"x"', finish=False), b"event: delta\ndata: {}\n\n", done())

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            seen: list[Any] = []
            with pytest.raises(ProtocolError, match="malformed delta"):
                await collect(stream, seen)
            assert [type(event) for event in seen] == [StartEvent, DeltaEvent]
            with pytest.raises(ProtocolError):
                await stream.final()

    play(make, service, scenario)


def test_a_cut_document_is_incomplete(make: Callable[..., Any]) -> None:
    service, _ = serve(start(), *deltas(*PIECES[:4], finish=False), done(99, "length"))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            found: list[Item] = []
            with pytest.raises(IncompleteError) as caught:
                await collect(stream.elements("/items", Item), found)
            assert found == [Item(id=1), Item(id=2, tag="x")]
            assert caught.value.finish_reason == "length"
            assert stream.done.usage.completion_tokens == 5

    play(make, service, scenario)


def test_an_element_that_its_model_refuses_is_an_error(make: Callable[..., Any]) -> None:
    service, _ = serve(*whole('[{"id":1},{"id":"x"}]'))

    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT) as stream:
            items = stream.elements("", Item)
            assert await anext(items) == Item(id=1)
            with pytest.raises(InvalidAnswerError) as caught:
                await anext(items)
            assert caught.value.value == {"id": "x"}

    play(make, service, scenario)


# Leaving and cancelling.


def test_leaving_closes_the_connection_and_reads_no_further(make: Callable[..., Any]) -> None:
    service, body = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            assert await stream.field("/note") == "two lines"
        assert body.closed
        assert body.num_taken == 3
        assert stream.ended
        assert stream.partial.note == "two lines"
        for wait in (stream.final(), collect(stream), collect(stream.elements("/items"))):
            with pytest.raises(IncompleteError) as caught:
                await wait
            assert caught.value.finish_reason == "cancelled"

    play(make, service, scenario)
    assert len(service.requests) == 1


def test_leaving_with_an_exception_closes_the_connection(make: Callable[..., Any]) -> None:
    service, body = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        with pytest.raises(ZeroDivisionError):
            async with client.stream(Order, **PROMPT):
                1 / 0  # noqa: B018

    play(make, service, scenario)
    assert body.closed
    assert body.num_taken == 1


def test_cancel_closes_the_connection_of_a_run_that_ends_with_it(make: Callable[..., Any]) -> None:
    service, body = serve(*whole(*PIECES))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT) as stream:
            await stream.cancel()
            await stream.cancel()
            assert body.closed
            with pytest.raises(IncompleteError) as caught:
                await stream.final()
            assert caught.value.finish_reason == "cancelled"

    play(make, service, scenario)
    assert len(service.requests) == 1


def test_cancel_tells_the_service_of_a_run_that_would_outlive_its_reader(make: Callable[..., Any]) -> None:
    service, body = serve(*whole(*PIECES))
    service.answers += [httpx.Response(200, json={"run": "run_1", "status": "cancelled"}), refusal(404, code="run_not_found")]
    service.answers.insert(2, events_response(Frames(whole(*PIECES))))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            await stream.cancel()
            await stream.cancel()
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            with pytest.raises(NotFoundError):
                await stream.cancel()

    play(make, service, scenario)
    assert [request.url.path for request in service.requests] == ["/v1/structured/stream", "/v1/structured/run_1/cancel"] * 2
    assert body.closed


def test_a_run_that_has_ended_is_not_cancelled(make: Callable[..., Any]) -> None:
    service, _ = serve(*whole(ORDER))

    async def scenario(client: Any) -> None:
        async with client.stream(Order, **PROMPT, resumable=True) as stream:
            await stream.final()
            await stream.cancel()
            assert await stream.final() == Order.model_validate_json(ORDER)

    play(make, service, scenario)
    assert len(service.requests) == 1


def test_all_errors_are_of_one_tree() -> None:
    for kind in (ApiError, TransportError, IncompleteError, InvalidAnswerError, ProtocolError):
        assert issubclass(kind, ClientError)
