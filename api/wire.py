"""JSON in and out: strict reading of bodies, and text that no line-splitting client can break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from constrained.errors import MalformedBodyError, SchemaError

LINE_BREAKS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode  # made once: it costs a delta
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def to_json(value: Any) -> str:
    """Compact JSON on one line, also for clients that split lines as `str.splitlines` does."""
    return one_line(_encode(value))


def one_line(text: str) -> str:
    """JSON text without the characters that only some clients take for the end of a line."""
    return text if text.isascii() else text.translate(LINE_BREAKS)


def canonical_json(schema: Any) -> str:
    """A schema's text, equal for equal schemas whose keys stand in the same order (the order steers the generation)."""
    try:
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError as error:
        raise SchemaError("The schema is nested too deeply") from error
    except ValueError as error:
        raise SchemaError("The schema holds a number outside the range of doubles") from error


def read_json(body: bytes) -> Any:
    """One RFC 8259 text; `MalformedBodyError` for anything else, `NaN` and lone surrogates too."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise MalformedBodyError(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise MalformedBodyError("The body is nested too deeply") from error
    except ValueError as error:
        raise MalformedBodyError(f"The body is not JSON: {error}") from error
    if "\\u" in text and _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise MalformedBodyError("The body holds a lone surrogate, which is no Unicode character")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


class JsonRequest(Request):
    """A request whose body is read by `read_json`."""

    async def json(self) -> Any:
        return read_json(await self.body())


class JsonRoute(APIRoute):
    """A route that reads its body by `read_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            try:
                return await handle(JsonRequest(request.scope, request.receive))
            except HTTPException as error:
                # The framework wraps what reading the body raised into a 400 of its own.
                if isinstance(error.__cause__, MalformedBodyError):
                    raise error.__cause__ from None
                raise

        return handle_strictly
