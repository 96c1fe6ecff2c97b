"""The schema in the prompt: default, replaced, switched off, and where it goes in the conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from constrained.decode.prompt import DEFAULT_TEMPLATE, SchemaPrompt, compact_json, encode_prompt
from constrained.errors import OptionError

SCHEMA = {"type": "object", "properties": {"naïve": {"type": "string"}}}
COMPACT = '{"type":"object","properties":{"naïve":{"type":"string"}}}'
USER = {"role": "user", "content": "Fill it in."}


class Recorder:
    """An encoder whose ids are the bytes of what it was given."""

    def __init__(self, takes_system_message: bool = True) -> None:
        self.takes_system_message = takes_system_message

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return list(json.dumps([dict(m) for m in messages], ensure_ascii=False).encode())

    def encode_text(self, prompt: str) -> list[int]:
        return list(prompt.encode())


def test_the_default_instruction_holds_an_outline() -> None:
    assert SchemaPrompt().instruction(SCHEMA) == DEFAULT_TEMPLATE.replace("{outline}", '{"naïve"?: string}')


def test_a_schema_without_an_outline_is_told_as_it_is() -> None:
    told = DEFAULT_TEMPLATE.replace("{outline}", 'any value of the JSON Schema {"not":{}}')
    assert SchemaPrompt().instruction({"not": {}}) == told


def test_what_a_schema_says_is_no_placeholder() -> None:
    schema = {"type": "string", "description": "{schema} {outline}"}
    assert SchemaPrompt("{outline}").instruction(schema) == "string ({schema} {outline})"


def test_braces_of_a_template_other_than_the_placeholder_stay() -> None:
    assert SchemaPrompt('Like {"a": 1} or {}: {schema}').instruction(True) == 'Like {"a": 1} or {}: true'


def test_a_template_without_a_placeholder_is_refused() -> None:
    with pytest.raises(OptionError, match="the template must hold") as caught:
        SchemaPrompt("Answer in JSON.")
    assert caught.value.place == "template"


def test_a_system_message_is_added_where_there_is_none() -> None:
    assert SchemaPrompt("S {schema}").messages([USER], SCHEMA) == [{"role": "system", "content": f"S {COMPACT}"}, USER]


def test_an_own_system_message_keeps_its_text_and_gains_the_schema() -> None:
    conversation = [{"role": "system", "content": "Be brief."}, USER]
    told = SchemaPrompt("S {schema}").messages(conversation, SCHEMA)
    assert told == [{"role": "system", "content": f"Be brief.\n\nS {COMPACT}"}, USER]
    assert conversation[0]["content"] == "Be brief."


@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": "Hello."}]])
def test_without_a_system_role_the_first_user_message_begins_with_the_schema(before: list[dict[str, str]]) -> None:
    told = SchemaPrompt("S {schema}").messages([*before, USER, USER], SCHEMA, system=False)
    assert told == [*before, {"role": "user", "content": f"S {COMPACT}\n\nFill it in."}, USER]


def test_without_any_user_message_one_is_added() -> None:
    assert SchemaPrompt("S {schema}").messages([], True, system=False) == [{"role": "user", "content": "S true"}]


def test_encode_prompt_puts_the_schema_into_chat_and_text() -> None:
    template = SchemaPrompt("S {schema}")
    chat = bytes(encode_prompt(Recorder(), [USER], SCHEMA, template)).decode()
    assert json.loads(chat) == template.messages([USER], SCHEMA)
    assert bytes(encode_prompt(Recorder(), "Once", SCHEMA, template)).decode() == f"S {COMPACT}\n\nOnce\n"


def test_encode_prompt_asks_the_model_whether_it_takes_a_system_message() -> None:
    chat = bytes(encode_prompt(Recorder(takes_system_message=False), [USER], True, SchemaPrompt("S {schema}"))).decode()
    assert json.loads(chat) == [{"role": "user", "content": "S true\n\nFill it in."}]


@pytest.mark.parametrize("prompt", [[USER], "Fill it in."])
def test_switched_off_or_without_a_schema_the_prompt_stays_as_it_is(prompt: list[dict[str, str]] | str) -> None:
    plain = Recorder().encode_text(prompt) if isinstance(prompt, str) else Recorder().encode_chat(prompt)
    assert encode_prompt(Recorder(), prompt, SCHEMA, None) == plain
    assert encode_prompt(Recorder(), prompt, None) == plain


def test_false_is_a_schema_and_is_told() -> None:
    assert bytes(encode_prompt(Recorder(), "p", False, SchemaPrompt("{schema}"))) == b"false\n\np\n"


def test_compact_json_keeps_characters_but_escapes_a_lone_surrogate() -> None:
    assert compact_json({"é": [1, "😀"]}) == '{"é":[1,"😀"]}'
    assert compact_json({"const": "\ud83d"}) == '{"const":"\\ud83d"}'
