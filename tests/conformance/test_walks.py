"""Random walks over MaskBench's schemas, free and within tight budgets: each ends in a document that `jsonschema` accepts.

`CONSTRAINED_WALKS` is how many (default: 300), `CONSTRAINED_WALKS_SEED` which.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from constrained.errors import SchemaError
from tests.conformance.judging import Judge, Unjudgeable, maskbench
from tests.grammars import awkward_vocabulary, grammar_of
from tests.oracles import walked

WALKS = int(os.environ.get("CONSTRAINED_WALKS", "300"))
SEED = int(os.environ.get("CONSTRAINED_WALKS_SEED", "1"))
WALKS_OF_A_SCHEMA = 6
PROFILES: list[dict[str, Any]] = [
    {},
    {"property_order": "any"},
    {"spelling": "permissive"},
    {"whitespace": "compact", "property_order": "any"},
    {"whitespace": "indented"},
]


def test_walks_end_in_valid_documents_within_their_budgets(shared_data: Path) -> None:
    lines, vocabulary, pick = maskbench(shared_data), awkward_vocabulary(), random.Random(SEED)
    walks, unjudged, wrong = 0, 0, []
    while walks < WALKS:
        case, options = json.loads(pick.choice(lines)), pick.choice(PROFILES)
        try:
            grammar = grammar_of(case["schema"], vocabulary, **options)
            judge = Judge(case["schema"])
        except SchemaError:
            continue
        for turn in range(WALKS_OF_A_SCHEMA):
            walks += 1
            try:
                text = walked(grammar.matcher(), pick, None if turn % 2 else pick.randrange(30))
                if not judge.accepts(text):
                    wrong.append((case["id"], options, text))
            except (AssertionError, SchemaError) as error:  # what is refused is refused before the first token
                wrong.append((case["id"], options, str(error)))
            except Unjudgeable:
                unjudged += 1
    assert wrong == [], json.dumps([*map(str, wrong)], indent=1)
    assert unjudged < walks / 20
