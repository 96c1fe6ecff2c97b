"""How a schema is put before the model: a template that a caller can replace or switch off.

The mask alone makes the answer valid; the schema in the prompt makes it sensible, for the model then knows what the
fields are and that it is asked for JSON. Pure Python; knows no tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from constrained.decode.outline import outline
from constrained.errors import OptionError

SCHEMA, OUTLINE = "{schema}", "{outline}"
_PLACEHOLDERS = re.compile(f"{re.escape(SCHEMA)}|{re.escape(OUTLINE)}")
DEFAULT_TEMPLATE = f"You answer with JSON only. Your answer must have this form:\n{OUTLINE}\nUse the facts that the user gives."

Message = Mapping[str, str]


class Encoder(Protocol):
    """What turns a prompt into token ids: a `LoadedModel`."""

    @property
    def takes_system_message(self) -> bool: ...

    def encode_chat(self, messages: Sequence[Message]) -> list[int]: ...

    def encode_text(self, prompt: str) -> list[int]: ...

    def encode_prefix(self, prefix: bytes) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class SchemaPrompt:
    """The text that tells the model its schema: `{outline}` in the template stands for an outline of the answer, `{schema}`
    for the schema as compact JSON, which also takes the place of an outline that cannot say all of it.
    """

    template: str = DEFAULT_TEMPLATE

    def __post_init__(self) -> None:
        if not _PLACEHOLDERS.search(self.template):
            raise OptionError(f"the template must hold {OUTLINE} or {SCHEMA}, found {self.template!r}", "template")

    def instruction(self, schema: Any) -> str:
        return _PLACEHOLDERS.sub(lambda found: _told(found[0], schema), self.template)

    def messages(self, conversation: Sequence[Message], schema: Any, system: bool = True) -> list[dict[str, str]]:
        """The conversation with the instruction at the end of its system message, which is added where there is none.

        `system=False` is for chat templates without a system role: the first user message then begins with it.
        """
        turns = [dict(message) for message in conversation]
        instruction = self.instruction(schema)
        if not system:
            return _before_first_user_turn(turns, instruction)
        if turns and turns[0]["role"] == "system":
            turns[0]["content"] = f"{turns[0]['content']}\n\n{instruction}"
            return turns
        return [{"role": "system", "content": instruction}, *turns]

    def text(self, prompt: str, schema: Any) -> str:
        """The instruction before a plain prompt."""
        return f"{self.instruction(schema)}\n\n{prompt}\n"


def encode_prompt(
    model: Encoder,
    prompt: Sequence[Message] | str,
    schema: Any = None,
    schema_prompt: SchemaPrompt | None = SchemaPrompt(),
    prefix: bytes = b"",
) -> list[int]:
    """Token ids of a chat or of a plain text; the schema is put into it unless there is none or `schema_prompt` is None.

    `prefix`, the beginning of the answer where there is one already, stands at the end.
    """
    told = schema_prompt if schema is not None else None
    if isinstance(prompt, str):
        ids = model.encode_text(told.text(prompt, schema) if told else prompt)
    else:
        ids = model.encode_chat(told.messages(prompt, schema, model.takes_system_message) if told else prompt)
    return [*ids, *model.encode_prefix(prefix)] if prefix else ids


def compact_json(value: Any) -> str:
    """JSON without blanks; characters as themselves, but for a lone surrogate, which no text can hold."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _told(placeholder: str, schema: Any) -> str:
    text = outline(schema) if placeholder == OUTLINE else compact_json(schema)
    return f"any value of the JSON Schema {compact_json(schema)}" if text is None else text


def _before_first_user_turn(turns: list[dict[str, str]], instruction: str) -> list[dict[str, str]]:
    for turn in turns:
        if turn["role"] == "user":
            turn["content"] = f"{instruction}\n\n{turn['content']}"
            return turns
    return [{"role": "user", "content": instruction}, *turns]
