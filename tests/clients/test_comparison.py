"""What docs/comparison.md says of others' parsers of unfinished JSON is what they do; and what ours does instead."""

from __future__ import annotations

import json
from typing import Any

import jiter
import pytest

from constrained.stream import DeltaStream
from tests.clients.programs import node_program

WHOLE = '{"a":12,"e":"small","s":"x\\ud83d\\ude42"}'
CUTS = ['{"a":1', '{"a":12', '{"a":12,"e":"sm', '{"a":12,"e":"small","s":"x\\ud83d']


@pytest.fixture(scope="module")
def ai_sdk() -> dict[str, Any]:
    return node_program("partial.mjs", json.dumps(CUTS))


def values(mode: bool | str) -> list[Any]:
    return [jiter.from_json(cut.encode(), partial_mode=mode) for cut in CUTS]  # type: ignore[arg-type]


def test_openais_client_withholds_strings_and_shows_half_numbers() -> None:
    assert values(True) == [{"a": 1}, {"a": 12}, {"a": 12}, {"a": 12, "e": "small"}]


def test_instructor_shows_half_numbers_and_half_strings() -> None:
    assert values("trailing-strings") == [{"a": 1}, {"a": 12}, {"a": 12, "e": "sm"}, {"a": 12, "e": "small", "s": "x"}]


def test_the_ai_sdk_shows_half_numbers_strings_and_surrogates(ai_sdk: dict[str, Any]) -> None:
    last = {"a": 12, "e": "small", "s": "x\ud83d"}
    assert [ai_sdk[cut] for cut in CUTS] == [{"a": 1}, {"a": 12}, {"a": 12, "e": "sm"}, last]


def test_ours_shows_what_is_final_and_text_by_whole_characters() -> None:
    told = []
    for cut in CUTS:
        stream = DeltaStream()
        stream.feed(cut.encode())
        told.append(stream.value)
    assert told == [{}, {}, {"a": 12, "e": "sm"}, {"a": 12, "e": "small", "s": "x"}]
    assert WHOLE.startswith(CUTS[-1])
