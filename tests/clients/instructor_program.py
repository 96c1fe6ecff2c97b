"""instructor, in the modes that people use, against a running service; prints one JSON object."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

import instructor
from openai import OpenAI
from pydantic import BaseModel


class Hobby(BaseModel):
    name: str
    level: Literal["beginner", "expert"]


class Person(BaseModel):
    name: str
    age: int
    hobbies: list[Hobby]


MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
MODES = [
    instructor.Mode.TOOLS,
    instructor.Mode.TOOLS_STRICT,
    instructor.Mode.JSON_SCHEMA,
    instructor.Mode.RESPONSES_TOOLS,
]


def main() -> None:
    outcomes: dict[str, Any] = {}
    for mode in MODES:
        client = instructor.from_openai(OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none"), mode=mode)
        person = client.create(model="synthetic", messages=MESSAGES, response_model=Person, max_retries=0)
        outcomes[mode.name] = person.model_dump()
    client = instructor.from_openai(OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none"), mode=instructor.Mode.JSON_SCHEMA)
    partials = list(client.create_partial(model="synthetic", messages=MESSAGES, response_model=Person, max_retries=0))
    outcomes["partial"] = {"number": len(partials), "last": partials[-1].model_dump()}
    print(json.dumps(outcomes))


main()
