"""Function tools of the OpenAI-compatible chat: what a client declares, how it chooses, and the calls that come back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.events import Wire
from schemas.requests import RequestWire

FUNCTION_NAME = r"^[a-zA-Z0-9_-]{1,64}$"
MOST_TOOLS = 128


class FunctionDefinition(RequestWire):
    """A function that the model may call. Its parameters are always enforced exactly, whatever `strict` says."""

    name: str = Field(pattern=FUNCTION_NAME)
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(RequestWire):
    type: Literal["function"]
    function: FunctionDefinition


class FunctionName(RequestWire):
    name: str


class NamedFunction(RequestWire):
    """A choice of one function, which must then be called."""

    type: Literal["function"]
    function: FunctionName


class AllowedFunctions(RequestWire):
    mode: Literal["auto", "required"]
    tools: list[NamedFunction] = Field(min_length=1)


class AllowedTools(RequestWire):
    """A choice among some of the functions."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedFunctions


ToolMode = Literal["none", "auto", "required"]
ToolChoice = ToolMode | Annotated[NamedFunction | AllowedTools, Field(discriminator="type")]


class CalledFunction(Wire):
    """`arguments` is JSON text, valid against the function's parameters."""

    name: str
    arguments: str


class ToolCall(Wire):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class FunctionDelta(Wire):
    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Wire):
    """What a chunk adds to one call; `id`, `type` and the name come with its first."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionDelta
