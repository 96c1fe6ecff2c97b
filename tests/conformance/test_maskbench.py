"""Real schemas: a sample of MaskBench. No invalid instance is accepted, no valid one in declared order refused."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from constrained.errors import SchemaError
from tests.grammars import accepts, grammar_of

SAMPLE = 250


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = file.read().strip().split("\n")
    return [json.loads(line) for line in random.Random(20).sample(lines, SAMPLE)]


def test_instances_are_judged_right(sample: list[dict[str, Any]]) -> None:
    wrong, compiled = [], 0
    for case in sample:
        try:
            grammar = grammar_of(case["schema"])
        except SchemaError:
            continue
        compiled += 1
        validator = jsonschema.validators.validator_for(case["schema"], default=jsonschema.Draft202012Validator)(case["schema"])
        for test in case["tests"]:
            if validator.is_valid(test["data"]) != test["valid"]:
                continue  # the flag rests on a format, which jsonschema does not check
            verdict = accepts(grammar, json.dumps(test["data"]))
            if verdict and not test["valid"]:
                wrong.append(f"{case['id']}: accepted {test['data']!r}")
            if test["valid"] and not verdict and not out_of_order(case["schema"], test["data"]):
                wrong.append(f"{case['id']}: refused {test['data']!r}")
    assert wrong == []
    assert compiled > SAMPLE // 2


def out_of_order(schema: Any, value: Any) -> bool:
    """Whether some object of `value` has a key after one that the schema, anywhere, declares after it."""
    orders: list[list[str]] = []

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict):
                orders.append(
                    [*part["properties"], *(name for name in part.get("required", []) if name not in part["properties"])]
                )
            for member in part.values():
                collect(member)
        elif isinstance(part, list):
            for item in part:
                collect(item)

    def in_order(keys: list[str], order: list[str]) -> bool:
        places = [order.index(key) if key in order else len(order) for key in keys]
        return places == sorted(places)

    def wrong(part: Any) -> bool:
        if isinstance(part, dict):
            fitting = [order for order in orders if set(order) & set(part)]
            return any(not in_order(list(part), order) for order in fitting) or any(map(wrong, part.values()))
        return isinstance(part, list) and any(map(wrong, part))

    collect(schema)
    return wrong(value)
