"""A schema without one of its assertions takes all that it took, and what it takes beyond that was invalid."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constrained.errors import SchemaError
from tests.conformance.judging import EVERY_TEXT, Judge, Unjudgeable, maskbench
from tests.conformance.making import made, removable, without
from tests.grammars import accepts, awkward_vocabulary, grammar_of
from tests.oracles import walked

DOCUMENTS = 4


def weakenings(schema: Any, pick: random.Random) -> Iterator[str]:
    """What is wrong about some of the ways to leave out an assertion; nothing for each that is right."""
    vocabulary, judge = awkward_vocabulary(), Judge(schema)
    try:
        strict, every = grammar_of(schema, vocabulary), grammar_of(schema, vocabulary, **EVERY_TEXT)
    except SchemaError:
        return
    texts = [walked(strict.matcher(), pick, pick.choice([None, 10])) for _ in range(DOCUMENTS)]
    texts += [walked(every.matcher(), pick, pick.choice([None, 10])) for _ in range(DOCUMENTS)]
    places = removable(schema)
    for place in pick.sample(places, min(3, len(places))):
        weaker = without(schema, place)
        try:
            weak = grammar_of(weaker, vocabulary, **EVERY_TEXT)
        except SchemaError as error:
            yield f"{place}: refused: {error}"
            continue
        yield from (f"{place}: refused {text!r}" for text in texts if not accepts(weak, text))
        beyond = [walked(weak.matcher(), pick, pick.choice([None, 10])) for _ in range(DOCUMENTS)]
        yield from (f"{place}: misjudged {text!r}" for text in beyond if accepts(every, text) != judge.accepts(text))
        yield ""


@pytest.mark.parametrize("seed", range(8))
def test_made_schemas(seed: int) -> None:
    pick, tried, wrong = random.Random(seed), 0, []
    for _ in range(40):
        schema = made(pick)
        for fault in weakenings(schema, pick):
            tried += 1
            wrong += [(json.dumps(schema), fault)] if fault else []
    assert wrong == []
    assert tried > 10


def test_real_schemas(shared_data: Path) -> None:
    pick, tried, wrong = random.Random(11), 0, []
    for line in pick.sample(maskbench(shared_data), 30):
        case = json.loads(line)
        try:
            for fault in weakenings(case["schema"], pick):
                tried += 1
                wrong += [(case["id"], fault)] if fault else []
        except Unjudgeable:
            continue
    assert wrong == []
    assert tried > 30
