"""The official JSON Schema test suite: nothing invalid is accepted, and what is refused is refused by name.

Every required test of the five drafts. Valid instances may be refused only where their keys are not in declared order,
which is what `property_order="schema"` means.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import referencing
import referencing.jsonschema

from constrained.errors import SchemaError, UnsatisfiableSchemaError
from tests.grammars import accepts, grammar_of

DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", referencing.jsonschema.DRAFT4),
    "draft6": ("http://json-schema.org/draft-06/schema#", referencing.jsonschema.DRAFT6),
    "draft7": ("http://json-schema.org/draft-07/schema#", referencing.jsonschema.DRAFT7),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", referencing.jsonschema.DRAFT201909),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", referencing.jsonschema.DRAFT202012),
}
# Tests of each draft that this version decides; the rest is refused when the schema is compiled.
DECIDED = {"draft4": 531, "draft6": 729, "draft7": 808, "draft2019-09": 1078, "draft2020-12": 1105}
# Groups whose instances have keys in another order than their schemas name them first.
OUT_OF_ORDER = {
    "allOf",
    "allOf with base schema",
    "const with object",
    "propertyNames with enum",
    "dependencies",
    "multiple dependencies",
    "multiple dependencies subschema",
    "single dependency",
    "multiple dependents required",
    "dependencies with escaped characters",
}


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


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_required_tests(shared_data: Path, draft: str) -> None:
    registry, verdicts, wrong = remotes(shared_data, draft), Counter[str](), []
    for stem, group in groups(shared_data, draft):
        schema = group["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": DRAFTS[draft][0], **schema}
        try:
            grammar = grammar_of(schema, formats="annotate", registry=registry)
        except UnsatisfiableSchemaError:
            wrong += [f"{stem}: {group['description']}: called unsatisfiable" for test in group["tests"] if test["valid"]]
            verdicts["decided"] += len(group["tests"])
            continue
        except SchemaError:
            verdicts["refused"] += len(group["tests"])
            continue
        for test in group["tests"]:
            verdict = accepts(grammar, json.dumps(integral(test["data"])))
            verdicts["decided"] += 1
            if verdict != test["valid"] and (verdict or group["description"] not in OUT_OF_ORDER):
                wrong.append(f"{stem}: {group['description']}: {test['description']}: {test['data']!r}")
    assert wrong == []
    assert verdicts["decided"] == DECIDED[draft], verdicts
