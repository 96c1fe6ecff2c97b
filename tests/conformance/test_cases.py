"""Cases as raw text: spellings, orders and duplicates that no JSON value shows."""

from __future__ import annotations

import json
from pathlib import Path

from constrained.errors import SchemaError, UnsatisfiableSchemaError
from tests.grammars import accepts, grammar_of

# What the default profile leaves to the permissive one, or this version to a later one.
NOT_IN_THIS_PROFILE = {
    "const obj order": "keys in another order than declared",
    "number range exp": "an exponent beside bounds",
    "exponent under a lower bound": "an exponent beside bounds",
    "whitespace": "a carriage return",
}


def test_the_cases(shared_data: Path) -> None:
    wrong, compiled = [], 0
    for line in (shared_data / "cases-dev.jsonl").read_text().split("\n"):
        if not line:
            continue
        case = json.loads(line)
        try:
            grammar = grammar_of(case["schema"])
        except UnsatisfiableSchemaError:
            wrong += [f"{case['name']}: called unsatisfiable" for _ in case["accepts"][:1]]
            continue
        except SchemaError:
            continue
        compiled += 1
        wrong += [f"{case['name']}: accepted {text}" for text in case["rejects"] if accepts(grammar, text)]
        if case["name"] not in NOT_IN_THIS_PROFILE:
            wrong += [f"{case['name']}: refused {text}" for text in case["accepts"] if not accepts(grammar, text)]
    assert wrong == []
    assert compiled == 75
