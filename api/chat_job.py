"""From the body of a chat request to a job: what the client asks for is honoured or refused by name, never dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.compile_options import options_of
from api.constraints import schema_of
from api.conversation import Called, Event, Returned, Said, turns_of
from api.sampling import params_of
from api.service import Job
from api.tools import ENVELOPE_OPTIONS, Choice, ToolPlan, plan_of
from constrained.errors import RequestError, UnsupportedFieldError
from schemas.openai import (
    NEUTRAL,
    AssistantTurn,
    ChatCompletionRequest,
    ChatMessage,
    RefusalPart,
    TextPart,
    ToolMessage,
)
from schemas.tools import AllowedTools, NamedFunction, ToolChoice


def job_of(body: ChatCompletionRequest, default_max_tokens: int) -> tuple[Job, ToolPlan | None]:
    """The job that a body asks for, and its tools; `UnsupportedFieldError` for what this version cannot honour."""
    for name, neutral in NEUTRAL.items():
        if getattr(body, name) not in neutral:
            raise UnsupportedFieldError(f"{name} is not supported by this version; leave it out", name)
    schema = schema_of(body, body.response_format)
    functions = [tool.function for tool in body.tools or []]
    plan = plan_of(functions, _choice(body.tool_choice), body.parallel_tool_calls, schema, ".function")
    num_logprobs = _num_logprobs(body)
    if plan is not None and num_logprobs is not None:
        raise UnsupportedFieldError("logprobs are not given for answers that may be calls; send tool_choice none", "logprobs")
    params = params_of(body, _max_tokens(body) or default_max_tokens, num_logprobs)
    turns = turns_of(events_of(body.messages), in_envelope=plan is not None and plan.mode != "named")
    options = options_of(body.structured_outputs, schema, with_tools=plan is not None)
    if plan is not None:
        return Job(turns, params, body.n or 1, plan.schema, ENVELOPE_OPTIONS, template=plan.prompt, shown=plan.shown), plan
    return Job(turns, params, body.n or 1, schema, options, schema_in_prompt=body.schema_in_prompt), None


def events_of(messages: Sequence[ChatMessage]) -> Iterator[Event]:
    """The messages as a conversation."""
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if isinstance(message, ToolMessage):
            yield Returned(message.tool_call_id, _text(message.content), f"{place}.tool_call_id")
            continue
        if message.content or not isinstance(message, AssistantTurn):
            yield Said("system" if message.role == "developer" else message.role, _text(message.content))
        if isinstance(message, AssistantTurn):
            for number, call in enumerate(message.tool_calls or []):
                field = f"{place}.tool_calls[{number}].function.arguments"
                yield Called(call.id, call.function.name, call.function.arguments, field)


def _text(content: str | Sequence[TextPart | RefusalPart] | None) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content or ())


def _choice(given: ToolChoice | None) -> Choice:
    if isinstance(given, NamedFunction):
        return Choice("named", (given.function.name,), "tool_choice.function.name")
    if isinstance(given, AllowedTools):
        names = tuple(tool.function.name for tool in given.allowed_tools.tools)
        return Choice(given.allowed_tools.mode, names, "tool_choice.allowed_tools.tools")
    return Choice(given or "auto")


def _max_tokens(body: ChatCompletionRequest) -> int | None:
    old, new = body.max_tokens, body.max_completion_tokens
    if old is not None and new is not None and old != new:
        raise RequestError("max_tokens and max_completion_tokens differ; send one of them", "max_tokens")
    return old if new is None else new


def _num_logprobs(body: ChatCompletionRequest) -> int | None:
    if body.top_logprobs and not body.logprobs:
        raise RequestError("top_logprobs needs logprobs: true", "top_logprobs")
    return body.top_logprobs or 0 if body.logprobs else None
