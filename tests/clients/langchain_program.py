"""LangChain's ChatOpenAI against a running service, by each of its methods and both APIs; prints one JSON object."""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field


class Person(BaseModel):
    """A person."""

    name: str
    age: int
    tags: list[str] = Field(min_length=1)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"clear in {city}"


def main() -> None:
    outcomes: dict[str, Any] = {}
    for api in ("chat", "responses"):
        model = ChatOpenAI(
            model="synthetic", base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0, use_responses_api=api == "responses"
        )
        for method in ("json_schema", "function_calling"):
            outcomes[f"{api}.{method}"] = model.with_structured_output(Person, method=method).invoke("hello").model_dump()
        streamed = list(model.with_structured_output(Person.model_json_schema(), method="json_schema").stream("hello"))
        outcomes[f"{api}.stream"] = {"number": len(streamed), "last": streamed[-1]}
        answer = model.bind_tools([weather], tool_choice="any").invoke("hello")
        outcomes[f"{api}.tools"] = [call["name"] for call in answer.tool_calls]
        outcomes[f"{api}.text"] = model.invoke("hello").text
        outcomes[f"{api}.usage"] = answer.usage_metadata["total_tokens"]
    print(json.dumps(outcomes))


main()
