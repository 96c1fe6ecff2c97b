"""From the body of a response's request to a job: honoured or refused by name, never dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from api.compile_options import options_of
from api.constraints import ANY_OBJECT, structured_schema
from api.conversation import Called, Event, Returned, Said, turns_of
from api.service import Job
from api.sources import TextSource
from api.tools import ENVELOPE_OPTIONS, Choice, ToolPlan, plan_of
from constrained.decode.request import SamplingParams
from constrained.errors import RequestError, UnsupportedFieldError
from schemas.openai import JsonObjectFormat, RefusalPart
from schemas.responses import (
    INCLUDABLE,
    LOGPROBS,
    RESPONSES_NEUTRAL,
    AllowedFunctions,
    ChosenFunction,
    GivenOutputText,
    InputCall,
    InputCallOutput,
    InputItem,
    InputText,
    ItemReference,
    ResponsesRequest,
    SchemaFormat,
)
from schemas.tools import FunctionDefinition


@dataclass(frozen=True, slots=True)
class ResponseJob:
    """What a request asks for; `conversation` is all that was said up to the answer, without the instructions."""

    job: Job
    plan: ToolPlan | None
    conversation: tuple[Event, ...]


Recall = Callable[[str, str], Sequence[Event]]
"""What an id of an earlier item stands for, in the conversation; the second argument is the field that names it."""


def response_job_of(body: ResponsesRequest, earlier: Sequence[Event], recall: Recall, default_max_tokens: int) -> ResponseJob:
    """The job of a body that goes on from `earlier`; `UnsupportedFieldError` for what this version cannot honour."""
    _refuse(body)
    schema = _schema_of(body)
    functions = [
        FunctionDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in body.tools or []
    ]
    plan = plan_of(functions, _choice(body), body.parallel_tool_calls, schema, "")
    if body.typed_deltas and (schema is None or isinstance(schema, TextSource) or plan is not None):
        raise UnsupportedFieldError("typed_deltas need a JSON Schema and no tools that may be called", "typed_deltas")
    params = _params(body, default_max_tokens)
    if plan is not None and params.logprobs is not None:
        raise UnsupportedFieldError("logprobs are not given for answers that may be calls; send tool_choice none", "include")
    conversation = (*earlier, *_events_of(body.input, recall))
    instructions = () if body.instructions is None else (Said("system", body.instructions),)
    turns = turns_of((*instructions, *conversation), in_envelope=plan is not None and plan.mode != "named")
    if not turns:
        raise RequestError("The input is empty", "input")
    options = options_of(body.structured_outputs, schema, with_tools=plan is not None)
    if plan is not None:
        job = Job(turns, params, 1, plan.schema, ENVELOPE_OPTIONS, template=plan.prompt, shown=plan.shown)
    else:
        job = Job(turns, params, 1, schema, options, schema_in_prompt=body.schema_in_prompt)
    return ResponseJob(job, plan, conversation)


def _refuse(body: ResponsesRequest) -> None:
    for name, neutral in RESPONSES_NEUTRAL.items():
        if getattr(body, name) not in neutral:
            raise UnsupportedFieldError(f"{name} is not supported by this version; leave it out", name)
    for index, name in enumerate(body.include or []):
        if name not in INCLUDABLE:
            raise RequestError(f"{name!r} cannot be included", f"include[{index}]")
    if body.top_logprobs and LOGPROBS not in (body.include or []):
        raise RequestError(f"top_logprobs needs {LOGPROBS!r} in include", "top_logprobs")
    if body.background and body.store is False:
        raise RequestError("A response in the background must be stored", "store")


def _params(body: ResponsesRequest, default_max_tokens: int) -> SamplingParams:
    return SamplingParams(
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=max(body.top_k or 0, 0),
        min_p=body.min_p or 0.0,
        seed=body.seed,
        max_tokens=body.max_output_tokens or default_max_tokens,
        repetition_penalty=1.0 if body.repetition_penalty is None else body.repetition_penalty,
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        logprobs=body.top_logprobs or 0 if LOGPROBS in (body.include or []) else None,
    )


def _schema_of(body: ResponsesRequest) -> Any:
    wanted = None if body.text is None else body.text.format
    schema = None
    if isinstance(wanted, SchemaFormat):
        schema = wanted.schema_
    elif isinstance(wanted, JsonObjectFormat):
        schema = ANY_OBJECT
    structured = structured_schema(body.structured_outputs)
    if structured is not None and schema is not None:
        raise RequestError("Only one constraint can hold, found text.format and structured_outputs", "structured_outputs")
    return schema if structured is None else structured


def _choice(body: ResponsesRequest) -> Choice:
    choice = body.tool_choice
    if isinstance(choice, ChosenFunction):
        return Choice("named", (choice.name,), "tool_choice.name")
    if isinstance(choice, AllowedFunctions):
        return Choice(choice.mode, tuple(tool.name for tool in choice.tools), "tool_choice.tools")
    return Choice(choice or "auto")


def _events_of(given: str | Sequence[InputItem], recall: Recall) -> Iterator[Event]:
    if isinstance(given, str):
        yield Said("user", given)
        return
    for index, item in enumerate(given):
        place = f"input[{index}]"
        if isinstance(item, InputCall):
            yield Called(item.call_id, item.name, item.arguments, f"{place}.arguments")
        elif isinstance(item, InputCallOutput):
            yield Returned(item.call_id, _text(item.output), f"{place}.call_id")
        elif isinstance(item, ItemReference):
            yield from recall(item.id, f"{place}.id")
        else:
            yield Said("system" if item.role == "developer" else item.role, _text(item.content))


def _text(content: str | Sequence[InputText | GivenOutputText | RefusalPart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)
