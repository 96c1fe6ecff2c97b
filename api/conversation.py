"""From the messages of a chat to the turns that a chat template takes: roles it knows, each with one text.

Calls and their results become text, for most templates know no tools; a call is written as the model itself would write it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from api.envelope import calls_envelope, content_envelope
from api.wire import read_json
from constrained.errors import CallerError, RequestError
from schemas.openai import AssistantTurn, ChatMessage, RefusalPart, TextPart, ToolMessage

Turn = dict[str, str]


def conversation_of(messages: Sequence[ChatMessage], in_envelope: bool) -> list[Turn]:
    """The turns. With `in_envelope` the model is to answer in the envelope, so its earlier answers stand in one too."""
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _add_result(turns, _result(message, names, index), after_result=isinstance(messages[index - 1], ToolMessage))
            continue
        if isinstance(message, AssistantTurn):
            names |= {call.id: call.function.name for call in message.tool_calls or []}
            turns.append({"role": "assistant", "content": _answer(message, in_envelope, index)})
            continue
        role = "system" if message.role == "developer" else message.role
        turns.append({"role": role, "content": _text(message.content)})
    return turns


def _text(content: str | Sequence[TextPart | RefusalPart] | None) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content or ())


def _answer(message: AssistantTurn, in_envelope: bool, index: int) -> str:
    text = _text(message.content)
    if message.tool_calls:
        calls = [
            (call.function.name, _arguments(call.function.arguments, f"messages[{index}].tool_calls[{number}]"))
            for number, call in enumerate(message.tool_calls)
        ]
        return "\n".join(filter(None, (text, calls_envelope(calls))))
    return content_envelope(text) if in_envelope else text


def _arguments(text: str, field: str) -> Any:
    try:
        return read_json(text.encode()) if text else {}
    except CallerError as error:
        message = str(error).replace("The body", "The text")
        raise RequestError(message, f"{field}.function.arguments") from error


def _result(message: ToolMessage, names: dict[str, str], index: int) -> str:
    if message.tool_call_id not in names:
        raise RequestError(f"No earlier call has the id {message.tool_call_id!r}", f"messages[{index}].tool_call_id")
    return json.dumps({"result_of": names[message.tool_call_id], "result": _text(message.content)}, ensure_ascii=False)


def _add_result(turns: list[Turn], text: str, after_result: bool) -> None:
    """Results that follow each other are one turn, for many templates want user and assistant to alternate."""
    if after_result:
        turns[-1]["content"] += f"\n{text}"
    else:
        turns.append({"role": "user", "content": text})
