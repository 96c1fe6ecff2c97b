"""Random schemas of arrays whose items may have to differ, in unions and in each other: masks against every token tried."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from constrained.automaton import ways
from constrained.errors import UnsatisfiableSchemaError
from tests.automaton.test_next_items import VOCABULARY
from tests.grammars import grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying, close

LEAVES: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": "string", "minLength": 1},
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": "^a*b?$"},
    {"enum": ["a", "b", ""]},
    {"enum": ["a", "ab", "b", 1, None]},
    {"type": "integer"},
    {"type": "integer", "minimum": 0, "maximum": 3},
    {"type": "number"},
    {"type": ["string", "null"]},
]


def random_schema(pick: random.Random, depth: int) -> dict[str, Any]:
    kind = pick.random()
    if depth == 0 or kind < 0.3:
        return pick.choice(LEAVES)
    if kind < 0.7:
        array: dict[str, Any] = {"type": "array", "uniqueItems": pick.random() < 0.8, "items": random_schema(pick, depth - 1)}
        others = {"maxItems": pick.randrange(1, 5), "minItems": 1, "contains": pick.choice(LEAVES), "prefixItems": LEAVES[1:2]}
        return array | {name: value for name, value in others.items() if pick.random() < 0.2}
    if kind < 0.85:
        members = {"a": random_schema(pick, depth - 1), "b": pick.choice(LEAVES)}
        return {"type": "object", "properties": members, "additionalProperties": pick.random() < 0.5}
    return {pick.choice(["anyOf", "oneOf"]): [random_schema(pick, depth - 1) for _ in range(2)]}


@pytest.mark.parametrize("whitespace", ["flexible", "compact", "indented"])
@pytest.mark.parametrize("from_how_many", [2, 48])
def test_masks_are_what_trying_says(monkeypatch: pytest.MonkeyPatch, whitespace: Any, from_how_many: int) -> None:
    monkeypatch.setattr(ways, "MANY", from_how_many)
    pick, num_steps = random.Random(from_how_many), 0
    for _ in range(40):
        schema = random_schema(pick, 3)
        try:
            matcher = grammar_of(schema, VOCABULARY, whitespace=whitespace).matcher()
        except UnsatisfiableSchemaError:
            continue
        for _ in range(20):
            allowed, tried = allowed_by_mask(matcher, VOCABULARY), allowed_by_trying(matcher, VOCABULARY)
            assert allowed == tried, (json.dumps(schema), matcher.text)
            tokens = sorted(allowed - VOCABULARY.eos_token_ids)
            if not tokens:
                break
            long = [token for token in tokens if token >= 256]
            assert matcher.accept_token(pick.choice(long if long and pick.random() < 0.6 else tokens))
            num_steps += 1
        close(matcher)
    assert num_steps > 200
