"""Values that are changed a little: MaskBench's schemas judge each as `jsonschema` does, in any order and every spelling.

Its own instances and documents of random walks are the values, and what a few random changes make of them.
`CONSTRAINED_MUTATED_SCHEMAS` is how many schemas (default: 60), `CONSTRAINED_MUTATED_SEED` which.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from constrained import CompiledGrammar
from constrained.errors import SchemaError
from tests.conformance.judging import EVERY_TEXT, Judge, Unjudgeable, maskbench
from tests.grammars import accepts, awkward_vocabulary, grammar_of
from tests.oracles import walked

SCHEMAS = int(os.environ.get("CONSTRAINED_MUTATED_SCHEMAS", "60"))
SEED = int(os.environ.get("CONSTRAINED_MUTATED_SEED", "1"))
LEAVES: list[Any] = [None, True, False, 0, 1, -1, 1.5, 10**20, "", "a", "é", [], {}, [1, 1], {"a": 1}]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each member and item, as (container, key or index)."""
    for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(member)


def changed(value: Any, pick: random.Random) -> Any:
    """A copy with one change: a leaf, a key, an item more or less, or another order."""
    root = [copy.deepcopy(value)]
    container, key = pick.choice([(root, 0), *places(root[0])])
    here = container[key]
    kind = pick.randrange(6)
    if kind == 0:
        container[key] = copy.deepcopy(pick.choice(LEAVES))
    elif kind == 1 and container is not root:
        del container[key]
    elif isinstance(here, dict) and here:
        name = pick.choice(list(here))
        here[pick.choice([name + "x", name[1:], "a"])] = here[name] if kind < 4 else here.pop(name)
    elif isinstance(here, list) and here:
        here.insert(pick.randrange(len(here) + 1), copy.deepcopy(pick.choice([*here, *LEAVES])))
    elif isinstance(here, str):
        container[key] = pick.choice([here + "x", here[1:], here.upper(), here * 2])
    elif isinstance(here, int | float) and not isinstance(here, bool) and abs(here) < 1e200:
        container[key] = pick.choice([here + 1, -here, here * 1000, here + 0.5])
    return root[0]


def plain(text: str | bytes) -> Any:
    """A JSON value with floats as fractions, those beyond all floats as 1.5."""
    return json.loads(text, parse_float=lambda digits: number if isfinite(number := float(digits)) else 1.5)


def values(case: Any, grammar: CompiledGrammar, pick: random.Random) -> Iterator[Any]:
    """Instances, documents, and changes of both."""
    found = [test["data"] for test in case["tests"]]
    found += [plain(walked(grammar.matcher(), pick, more)) for more in (0, 10, None, None)]
    yield from found
    for _ in range(40):
        value = pick.choice(found)
        for _ in range(pick.randint(1, 3)):
            value = changed(value, pick)
        yield value


def test_changed_values_are_judged_as_jsonschema_judges_them(shared_data: Path) -> None:
    lines, pick = maskbench(shared_data), random.Random(SEED)
    wrong, verdicts = [], {True: 0, False: 0}
    for line in pick.sample(lines, SCHEMAS):
        case = json.loads(line)
        try:
            grammar = grammar_of(case["schema"], awkward_vocabulary(), **EVERY_TEXT)
            judge = Judge(case["schema"])
            for value in values(case, grammar, pick):
                text = json.dumps(value)
                verdict = judge.accepts(text)
                verdicts[verdict] += 1
                if accepts(grammar, text) != verdict:
                    wrong.append((case["id"], verdict, text))
        except (SchemaError, Unjudgeable):
            continue
    assert wrong == []
    assert min(verdicts.values()) > SCHEMAS
