"""What a caller asks for: a pydantic model, any type that pydantic knows, a plain JSON Schema, or a constraint on text.

A target gives the schema to send, shapes the view of what has arrived, and turns a finished document into the answer. Knows
nothing of runs and requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from constrained.client.errors import InvalidAnswerError
from constrained.client.partial import view
from constrained.stream.snapshot import copy_json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Regex:
    """Text that matches a regular expression; the answer is a `str`."""

    regex: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these texts; the answer is a `str`."""

    choice: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Text of a Lark grammar; the answer is a `str`."""

    grammar: str


class Target(Generic[T]):
    """One thing asked for: `constraint` goes over the wire, and is the request's `schema`, `regex`, `choice` or `grammar`.

    A model's schema is its `model_json_schema()`, with the aliases by which it validates. A plain schema's answers are plain
    JSON values.
    """

    def __init__(self, schema_or_model: Any) -> None:
        self._annotation: Any = Any
        self._adapter: TypeAdapter[T] | None = None
        if isinstance(schema_or_model, str | bytes):
            raise TypeError("a schema is a dict or a bool, or a type; text was given: json.loads() makes a schema of it")
        self.is_text = isinstance(schema_or_model, Regex | Choice | Grammar)
        self.constraint = self._constraint(schema_or_model)

    def _constraint(self, asked: Any) -> dict[str, Any]:
        match asked:
            case Regex(regex):
                return {"regex": regex}
            case Choice(choice):
                return {"choice": list(choice)}
            case Grammar(grammar):
                return {"grammar": grammar}
            case bool():
                return {"schema": asked}
            case Mapping():
                return {"schema": dict(asked)}
        self._annotation = asked
        self._adapter = TypeAdapter(asked)
        return {"schema": _json_schema(asked, self._adapter)}

    def view(self, value: Any) -> Any:
        """The read-only view of a value so far."""
        return view(value, self._annotation)

    def finish(self, value: Any) -> T:
        """The answer that a finished document stands for; `InvalidAnswerError` where the model refuses it."""
        if self._adapter is None:
            plain: T = copy_json(value)
            return plain
        return self._read(self._adapter, json.dumps(value), value)

    def finish_text(self, text: str, value: Any) -> T:
        """As `finish`, from the document's text, so that a model may read a number more exactly than a double."""
        return self.finish(value) if self._adapter is None else self._read(self._adapter, text, value)

    @staticmethod
    def _read(adapter: TypeAdapter[T], text: str, value: Any) -> T:
        try:
            return adapter.validate_json(text)
        except ValidationError as error:
            message = f"the document meets its schema, but not the model's own validators: {error}"
            raise InvalidAnswerError(message, copy_json(value)) from error


def _json_schema(model: Any, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    if isinstance(model, type) and issubclass(model, BaseModel):
        return model.model_json_schema()
    return adapter.json_schema()
