"""Function tools: which of them a request lets the model call, the grammar that holds it to that, and how it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from api.envelope import FREE_TEXT, EnvelopeReader, envelope_schema
from api.pieces import ArgumentsReader, Reader
from api.sources import TextSource
from constrained.decode.prompt import SchemaPrompt
from constrained.errors import RequestError, SchemaError, UnsupportedFieldError
from constrained.options import CompileOptions
from schemas.tools import FunctionDefinition

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar

MOST_CALLS = 16
ENVELOPE_OPTIONS = CompileOptions(whitespace="compact")
NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}

CALL_OR_ANSWER = SchemaPrompt(
    "You can call these functions:\n{schema}\nAnswer with JSON only, in one of two forms.\n"
    'To call functions: {"tool_calls": [{"name": "the function", "arguments": {...}}]}\n'
    'To answer without a call: {"content": "your answer"}'
)
CALL_OR_DOCUMENT = SchemaPrompt(
    "You have functions to call and a JSON Schema to answer by:\n{schema}\nAnswer with JSON only, in one of two forms.\n"
    'To call functions: {"tool_calls": [{"name": "the function", "arguments": {...}}]}\n'
    'To answer without a call: {"content": a value that follows content_schema}'
)
CALL = SchemaPrompt(
    "You call these functions:\n{schema}\nAnswer with JSON only, in this form:\n"
    '{"tool_calls": [{"name": "the function", "arguments": {...}}]}'
)
CALL_ONE = SchemaPrompt(
    "You call this function:\n{schema}\nAnswer with its arguments only, as JSON that follows its parameters."
)

Mode = Literal["auto", "required", "named"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request says of the calls that it wants: `names` are the functions that may be called, None for all of them."""

    mode: Literal["none"] | Mode
    names: tuple[str, ...] | None = None
    field: str = "tool_choice"


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """The functions that may be called, and whether one must be. `content` is the schema of an answer without a call."""

    mode: Mode
    functions: tuple[FunctionDefinition, ...]
    places: tuple[str, ...]
    most_calls: int
    content: Any = None

    @property
    def schema(self) -> Any:
        """The schema of what is generated: an envelope, or the bare arguments of the one function that must be called."""
        if self.mode == "named":
            return parameters_of(self.functions[0])
        calls = [(function.name, _embedded(function)) for function in self.functions]
        answer = None if self.mode == "required" else _resource("urn:content", self._content)
        return envelope_schema(calls, self.most_calls, answer)

    @property
    def prompt(self) -> SchemaPrompt:
        """How the model is told."""
        if self.mode == "auto":
            return CALL_OR_ANSWER if self.content is None else CALL_OR_DOCUMENT
        return CALL if self.mode == "required" else CALL_ONE

    @property
    def shown(self) -> Any:
        """What the model is shown of the functions."""
        functions = [_shown(function) for function in self.functions]
        if self.mode == "named":
            return functions[0]
        if self.mode == "auto" and self.content is not None:
            return {"functions": functions, "content_schema": self.content}
        return functions

    def reader(self, grammar: CompiledGrammar) -> Callable[[], Reader]:
        """Makes readers of what is generated."""
        if self.mode == "named":
            return lambda: ArgumentsReader(self.functions[0].name)
        return lambda: EnvelopeReader(grammar.root, self.content is None)

    @property
    def schemas(self) -> Iterator[tuple[str, Any]]:
        """(where the caller wrote it, the schema) of each part of `schema`."""
        for place, function in zip(self.places, self.functions, strict=True):
            yield f"{place}.parameters", parameters_of(function)
        if self.content is not None:
            yield "", self.content

    @property
    def _content(self) -> Any:
        return FREE_TEXT if self.content is None else self.content


def parameters_of(function: FunctionDefinition) -> dict[str, Any]:
    """The schema of a function's arguments, which are an object always."""
    if function.parameters is None:
        return NO_PARAMETERS
    return function.parameters if "type" in function.parameters else {**function.parameters, "type": "object"}


def _embedded(function: FunctionDefinition) -> Any:
    return _resource(f"urn:function:{function.name}", parameters_of(function))


def _resource(name: str, schema: Any) -> Any:
    """A schema that can stand inside another one: its references stay relative to itself."""
    if isinstance(schema, bool):
        return schema
    keyword = "id" if "draft-04" in str(schema.get("$schema")) else "$id"
    return {keyword: name, **schema}


def _shown(function: FunctionDefinition) -> dict[str, Any]:
    described = {} if function.description is None else {"description": function.description}
    return {"name": function.name, **described, "parameters": parameters_of(function)}


def plan_of(
    functions: Sequence[FunctionDefinition], choice: Choice, parallel: bool | None, content: Any, member: str
) -> ToolPlan | None:
    """The plan of a request; None where no tool can be called. `RequestError` names the field that is at fault.

    A function stands at `tools[i]` and `member`; `content` is the schema of an answer without a call.
    """
    places = [f"tools[{index}]{member}" for index in range(len(functions))]
    known: dict[str, int] = {}
    for index, function in enumerate(functions):
        if function.name in known:
            raise RequestError(f"Two functions are called {function.name!r}", f"{places[index]}.name")
        known[function.name] = index
    if choice.mode not in ("none", "auto") and not functions:
        raise RequestError("tool_choice asks for a call, but there are no tools", "tool_choice")
    names = list(known) if choice.names is None else dict.fromkeys(choice.names)
    for name in names:
        if name not in known:
            raise RequestError(f"No tool is called {name!r}; there are {', '.join(map(repr, known))}", choice.field)
        _check_parameters(functions[known[name]], places[known[name]])
    if choice.mode == "none" or not names:
        return None
    if choice.mode == "auto" and isinstance(content, TextSource):
        raise UnsupportedFieldError(f"a {content.kind} and tools that may be called do not go together", "tools")
    chosen = [known[name] for name in names]
    return ToolPlan(
        choice.mode,
        tuple(functions[index] for index in chosen),
        tuple(places[index] for index in chosen),
        1 if parallel is False else MOST_CALLS,
        content,
    )


def _check_parameters(function: FunctionDefinition, place: str) -> None:
    kind = parameters_of(function).get("type")
    if kind != "object":
        raise RequestError(f"The parameters of a function are an object; their type is {kind!r}", f"{place}.parameters.type")


def placed(error: SchemaError, place: str) -> SchemaError:
    """The error of one part of the envelope's schema, with a pointer that begins where the caller wrote that part."""
    return type(error)(error.message, place + error.pointer, error.keyword)
