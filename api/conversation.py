"""A conversation as the endpoints hand it on, and the turns that a chat template takes: roles it knows, each with one text.

Calls and their results become text, for most templates know no tools; a call is written as the model itself would write it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from api.envelope import calls_envelope, content_envelope
from api.wire import read_json
from constrained.errors import CallerError, RequestError

Turn = dict[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """What a `system`, a `user` or the `assistant` said."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A call that the model made; `field` is where the caller wrote its arguments."""

    id: str
    name: str
    arguments: str
    field: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call gave; `field` is where the caller wrote its id."""

    id: str
    text: str
    field: str


Event = Said | Called | Returned


def turns_of(events: Iterable[Event], in_envelope: bool) -> list[Turn]:
    """The turns. With `in_envelope` the model is to answer in the envelope, so its earlier answers stand in one too.

    Calls that follow each other are one turn, and so are results, for many templates want user and assistant to alternate.
    Raises `RequestError` for arguments that are not JSON and for results of calls that were not made.
    """
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for kind, group in groupby(events, key=type):
        if kind is Called:
            calls = [event for event in group if isinstance(event, Called)]
            names |= {call.id: call.name for call in calls}
            _add_calls(turns, calls_envelope([(call.name, _arguments(call)) for call in calls]))
        elif kind is Returned:
            results = [_result(event, names) for event in group if isinstance(event, Returned)]
            turns.append({"role": "user", "content": "\n".join(results)})
        else:
            turns.extend(_turn(event, in_envelope) for event in group if isinstance(event, Said))
    return turns


def _add_calls(turns: list[Turn], text: str) -> None:
    """Calls go to what the assistant said just before, if it did."""
    if turns and turns[-1]["role"] == "assistant":
        turns[-1]["content"] += f"\n{text}"
    else:
        turns.append({"role": "assistant", "content": text})


def _turn(said: Said, in_envelope: bool) -> Turn:
    wrapped = in_envelope and said.role == "assistant"
    return {"role": said.role, "content": content_envelope(said.text) if wrapped else said.text}


def _arguments(call: Called) -> Any:
    try:
        return read_json(call.arguments.encode()) if call.arguments else {}
    except CallerError as error:
        raise RequestError(str(error).replace("The body", "The text"), call.field) from error


def _result(returned: Returned, names: dict[str, str]) -> str:
    if returned.id not in names:
        raise RequestError(f"No earlier call has the id {returned.id!r}", returned.field)
    return json.dumps({"result_of": names[returned.id], "result": returned.text}, ensure_ascii=False)
