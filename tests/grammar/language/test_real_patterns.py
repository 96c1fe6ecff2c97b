"""Patterns from the official suite and from real schemas (MaskBench)."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from constrained.grammar.language import Language, from_pattern, state_limit

DRAFTS = ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"]


def _decides(schema: dict[str, Any], data: Any) -> bool:
    """What a schema says whose only assertions are `pattern` or `patternProperties` of integers or anything."""
    if isinstance(data, str) and "pattern" in schema:
        return from_pattern(schema["pattern"]).contains(data)
    if not isinstance(data, dict):
        return True
    patterns = [(from_pattern(pattern), value) for pattern, value in schema.get("patternProperties", {}).items()]
    for key, member in data.items():
        demands = [value for language, value in patterns if language.contains(key)]
        if {"type": "integer"} in demands and not isinstance(member, int):
            return False
        if not demands and schema.get("additionalProperties") is False:
            return False
    return True


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("file", ["pattern", "optional/ecmascript-regex", "optional/non-bmp-regex"])
def test_the_official_suite_is_decided_right(shared_data: Path, draft: str, file: str) -> None:
    groups = json.loads((shared_data / "json-schema-test-suite" / "tests" / draft / f"{file}.json").read_text())
    for group in groups:
        assert set(group["schema"]) <= {"$schema", "type", "pattern", "patternProperties", "additionalProperties"}
        for case in group["tests"]:
            assert _decides(group["schema"], case["data"]) == case["valid"], (group["description"], case["description"])


# `re` takes exponential time where repetitions nest, so it is spared long texts there.
_NESTED_QUANTIFIERS = re.compile(r"[*+}][?()]*[*+{]")


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    if isinstance(schema.get("patternProperties"), dict):
        yield from schema["patternProperties"]
    for key, value in schema.items():
        if key not in ("const", "enum"):
            yield from _patterns(value)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _as_re(pattern: str) -> re.Pattern[str] | None:
    """The same search over ASCII text without carriage returns, by `re`; None where it reads the pattern otherwise."""
    end = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]|\$", lambda found: r"\Z" if found[0] == "$" else found[0], pattern, flags=re.DOTALL)
    try:
        return re.compile(end, re.ASCII)
    except (re.error, FutureWarning):
        return None


@pytest.fixture(scope="module")
def real_patterns(shared_data: Path) -> dict[str, set[str]]:
    """Every eighth schema's patterns, each with ASCII strings of the documents that come with its schema."""
    found: dict[str, set[str]] = {}
    with gzip.open(shared_data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in islice(lines, 0, None, 8):
            if '"pattern' not in line:
                continue
            record = json.loads(line)
            documents = [test["data"] for test in record["tests"]]
            texts = [text for text in _strings(documents) if text.isascii() and "\r" not in text]
            for pattern in _patterns(record["schema"]):
                found.setdefault(pattern, set()).update(islice(texts, 40))
    return found


def test_real_patterns_are_decided_as_re_decides_them(real_patterns: dict[str, set[str]]) -> None:
    num_compared = 0
    for pattern, texts in real_patterns.items():
        language, compiled = from_pattern(pattern), _as_re(pattern)
        if compiled is None:
            continue
        if _NESTED_QUANTIFIERS.search(pattern):
            texts = {text for text in texts if len(text) <= 16}
        for text in [*texts, *(text[1:] for text in texts), *(text + "-" for text in texts), language.shortest() or ""]:
            num_compared += 1
            assert language.contains(text) == (compiled.search(text) is not None), (pattern, text)
    assert num_compared > 10 * len(real_patterns) > 1000


def test_real_patterns_are_walked_with_little_fuel(real_patterns: dict[str, set[str]]) -> None:
    for pattern in real_patterns:
        with state_limit(500):
            language = from_pattern(pattern)
            assert not language.is_empty
            states: dict[Language, None] = {language: None}
            for state in (queue := [language]):
                for _, _, after in state.steps():
                    if after not in states and len(states) < 20:
                        states[after] = None
                        queue.append(after)
