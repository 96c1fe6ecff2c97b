"""instructor and LangChain, unmodified, in an environment of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.examples import example
from tests.api.server import Served, served
from tests.api.synthetic import FREE_TEXT, SyntheticBackend
from tests.clients.programs import python_program

NAME = example({"type": "string"})


@pytest.fixture(scope="module")
def slow_service() -> Iterator[Served]:
    """Gives its tokens one by one, so that what is streamed comes in parts."""
    with served(SyntheticBackend(delay_s=0.001)) as running:
        yield running


def test_instructor(slow_service: Served) -> None:
    outcomes = python_program("instructor_program.py", slow_service.url)
    partial = outcomes.pop("partial")
    assert set(outcomes) == {"TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS"}
    person = {"name": NAME, "age": 37, "hobbies": [{"name": NAME, "level": "beginner"}] * 2}
    assert all(outcome == person for outcome in outcomes.values())
    assert partial["last"] == person
    assert partial["number"] > 1


def test_langchain(slow_service: Served) -> None:
    outcomes = python_program("langchain_program.py", slow_service.url)
    person = {"name": NAME, "age": 37, "tags": [NAME] * 2}
    for api in ("chat", "responses"):
        assert outcomes[f"{api}.json_schema"] == outcomes[f"{api}.function_calling"] == person
        assert outcomes[f"{api}.stream"]["last"] == person
        assert outcomes[f"{api}.stream"]["number"] > 1
        assert set(outcomes[f"{api}.tools"]) == {"weather"}
        assert outcomes[f"{api}.text"] == FREE_TEXT
        assert outcomes[f"{api}.usage"] > 0
