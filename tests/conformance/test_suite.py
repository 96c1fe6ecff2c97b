"""The official JSON Schema test suite: all required tests of the five drafts, with every order of keys and every spelling.

The default profile takes fewer texts: there, what is accepted must be valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import referencing
import referencing.jsonschema

from constrained.errors import UnsatisfiableSchemaError
from tests.grammars import accepts, grammar_of

DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", referencing.jsonschema.DRAFT4),
    "draft6": ("http://json-schema.org/draft-06/schema#", referencing.jsonschema.DRAFT6),
    "draft7": ("http://json-schema.org/draft-07/schema#", referencing.jsonschema.DRAFT7),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", referencing.jsonschema.DRAFT201909),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", referencing.jsonschema.DRAFT202012),
}
NUM_TESTS = {"draft4": 618, "draft6": 839, "draft7": 927, "draft2019-09": 1259, "draft2020-12": 1299}
EVERY_TEXT: dict[str, Any] = {"property_order": "any", "spelling": "permissive"}


def groups(shared_data: Path, draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((shared_data / "json-schema-test-suite" / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            yield path.stem, group


def remotes(shared_data: Path, draft: str) -> referencing.Registry[Any]:
    root, specification = shared_data / "json-schema-test-suite" / "remotes", DRAFTS[draft][1]
    registry: referencing.Registry[Any] = referencing.Registry()
    for path in sorted(root.rglob("*.json")):
        place = path.relative_to(root)
        resource = referencing.Resource.from_contents(json.loads(path.read_text()), default_specification=specification)
        registry = registry.with_resource(f"http://localhost:1234/{place.as_posix()}", resource)
    return registry


def integral(value: Any) -> Any:
    """Floats that are integers as integers, as the suite means them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e60:
        return int(value)
    if isinstance(value, list):
        return [integral(item) for item in value]
    return {name: integral(member) for name, member in value.items()} if isinstance(value, dict) else value


def verdicts(draft: str, group: dict[str, Any], registry: referencing.Registry[Any], **options: Any) -> list[bool]:
    """Which instances of a group are accepted."""
    schema = group["schema"]
    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[draft][0], **schema}
    try:
        grammar = grammar_of(schema, formats="annotate", registry=registry, **options)
    except UnsatisfiableSchemaError:
        return [False] * len(group["tests"])
    return [accepts(grammar, json.dumps(integral(test["data"]))) for test in group["tests"]]


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_required_test_is_decided_right(shared_data: Path, draft: str) -> None:
    registry, decided, wrong = remotes(shared_data, draft), 0, []
    for stem, group in groups(shared_data, draft):
        for test, verdict in zip(group["tests"], verdicts(draft, group, registry, **EVERY_TEXT), strict=True):
            decided += 1
            if verdict != test["valid"]:
                wrong.append((stem, group["description"], test["description"]))
    assert wrong == []
    assert decided == NUM_TESTS[draft]


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_default_profile_accepts_nothing_invalid(shared_data: Path, draft: str) -> None:
    registry, num_accepted, wrong = remotes(shared_data, draft), 0, []
    for stem, group in groups(shared_data, draft):
        for test, verdict in zip(group["tests"], verdicts(draft, group, registry), strict=True):
            num_accepted += verdict
            if verdict and not test["valid"]:
                wrong.append((stem, group["description"], test["description"]))
    assert wrong == []
    assert num_accepted > 0.5 * NUM_TESTS[draft]
