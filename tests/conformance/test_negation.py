"""A schema and its negation: of any document exactly one of both takes it, and that as `jsonschema` judges it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import referencing
import referencing.jsonschema

from constrained import CompiledGrammar
from constrained.errors import SchemaError, UnsatisfiableSchemaError
from tests.conformance.judging import EVERY_TEXT, Judge, Unjudgeable, maskbench
from tests.conformance.making import CONSTANTS, made
from tests.conformance.test_mutations import changed, plain
from tests.grammars import accepts, awkward_vocabulary, grammar_of
from tests.oracles import walked


def compiled(schema: Any, registry: Any) -> CompiledGrammar | None:
    """None where nothing meets the schema."""
    try:
        return grammar_of(schema, awkward_vocabulary(), registry=registry, **EVERY_TEXT)
    except UnsatisfiableSchemaError:
        return None


def faults(schema: Any, values: list[Any], pick: random.Random) -> tuple[int, list[str]]:
    """How many documents were judged, and what is wrong with them. Raises `SchemaError` and `Unjudgeable`."""
    specification = referencing.jsonschema.DRAFT202012
    resource = referencing.Resource.from_contents(schema, default_specification=specification)
    registry: referencing.Registry[Any] = referencing.Registry().with_resource("urn:schema", resource)
    dialect = {"$schema": schema["$schema"]} if isinstance(schema, dict) and "$schema" in schema else {}
    both = [compiled(schema, registry), compiled(dialect | {"not": {"$ref": "urn:schema"}}, registry)]
    texts = [text.decode() for grammar in both if grammar for text in documents(grammar, pick)]
    values = [*values, *map(plain, texts)]
    texts += [json.dumps(changed(pick.choice(values), pick)) for _ in range(10)] + [json.dumps(value) for value in values]
    judge, wrong = Judge(schema), []
    for text in texts:
        verdicts = [grammar is not None and accepts(grammar, text) for grammar in both]
        valid = judge.accepts(text)
        if verdicts != [valid, not valid]:
            wrong.append(f"{verdicts}, is {valid}: {text}")
    return len(texts), wrong


def documents(grammar: CompiledGrammar, pick: random.Random) -> list[bytes]:
    return [walked(grammar.matcher(), pick, more) for more in (0, 8, None)]


@pytest.mark.parametrize("seed", range(8))
def test_made_schemas(seed: int) -> None:
    pick, judged, wrong = random.Random(seed), 0, []
    for _ in range(25):
        schema = made(pick, 2)
        try:
            count, found = faults(schema, CONSTANTS, pick)
        except SchemaError:
            continue
        judged += count
        wrong += [(json.dumps(schema), fault) for fault in found]
    assert wrong == []
    assert judged > 300


def test_real_schemas(shared_data: Path) -> None:
    pick, judged, wrong = random.Random(12), 0, []
    for line in pick.sample(maskbench(shared_data), 40):
        case = json.loads(line)
        try:
            count, found = faults(case["schema"], [test["data"] for test in case["tests"]] or [{}], pick)
        except (SchemaError, Unjudgeable):
            continue
        judged += count
        wrong += [(case["id"], fault) for fault in found]
    assert wrong == []
    assert judged > 300
