"""A finished answer that was not streamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from constrained.client.errors import IncompleteError, InvalidAnswerError
from constrained.client.target import Target
from constrained.client.unset import UNSET
from constrained.stream import DeltaStream
from schemas.requests import StructuredChoice, StructuredResponse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The answers of all choices, and the service's `response` with their texts, usage and timings."""

    values: tuple[T, ...]
    response: StructuredResponse

    @property
    def value(self) -> T:
        """The answer of the first choice."""
        return self.values[0]


def answer_of(target: Target[T], response: StructuredResponse) -> Answer[T]:
    """Reads every choice; `IncompleteError` where one is cut, `InvalidAnswerError` where one does not validate."""
    choices = sorted(response.choices, key=lambda choice: choice.index)
    return Answer(tuple(_read(target, choice, response) for choice in choices), response)


def _read(target: Target[T], choice: StructuredChoice, response: StructuredResponse) -> T:
    if choice.valid:
        return target.finish_text(choice.text, choice.value)
    if choice.finish_reason == "stop":
        raise InvalidAnswerError("the service says that the document does not meet its schema", choice.value)
    value = choice.text if target.is_text else _value_so_far(choice.text)
    raise IncompleteError(
        f"the document is not finished: {choice.finish_reason}",
        partial=target.view(value),
        value=value,
        finish_reason=choice.finish_reason,
        response=response,
    )


def _value_so_far(text: str) -> Any:
    """What a cut document says, as far as it goes."""
    stream = DeltaStream()
    stream.feed(text.encode())
    return stream.fold.value if stream.fold.started else UNSET
