"""Cases as raw text: spellings, orders and duplicates that no JSON value shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrained.errors import SchemaError, UnsatisfiableSchemaError
from tests.grammars import accepts, grammar_of

# What a profile leaves to another one, or this version to a later one; all that is rejected must be rejected in every profile.
OUT_OF_ORDER = {"const obj order": "keys in another order than declared"}
PROFILES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "default": ({}, OUT_OF_ORDER | {"whitespace": "a carriage return apart from a newline"}),
    "permissive": ({"spelling": "permissive"}, OUT_OF_ORDER),
    "every text": ({"spelling": "permissive", "property_order": "any"}, {}),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_cases(shared_data: Path, profile: str) -> None:
    options, left_out = PROFILES[profile]
    wrong, compiled = [], 0
    for line in (shared_data / "cases-dev.jsonl").read_text().split("\n"):
        if not line:
            continue
        case = json.loads(line)
        try:
            grammar = grammar_of(case["schema"], **options)
        except UnsatisfiableSchemaError:
            wrong += [f"{case['name']}: called unsatisfiable" for _ in case["accepts"][:1]]
            continue
        except SchemaError:
            continue
        compiled += 1
        wrong += [f"{case['name']}: accepted {text}" for text in case["rejects"] if accepts(grammar, text)]
        if case["name"] not in left_out:
            wrong += [f"{case['name']}: refused {text}" for text in case["accepts"] if not accepts(grammar, text)]
    assert wrong == []
    assert compiled == 85
