"""After `warm_up`, no kernel is compiled or loaded any more, whatever is generated: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import json, random
from constrained import BatchMatcher, Vocabulary, CompileOptions, compile_json_schema, compile_lark, warm_up
from constrained.tokens.jit import KERNELS
from tests.grammars import awkward_vocabulary, byte_vocabulary, random_choice
from tests.test_matcher import SCHEMAS

def compiled():
    return {f"{k.py_func.__module__}.{k.__name__}": len(k.signatures) for k in KERNELS}

vocabulary = awkward_vocabulary()
warm_up(vocabulary)
before = compiled()
more = {
    "unique": {"type": "array", "uniqueItems": True, "maxItems": 3, "contains": {"type": "integer"}},
    "counts": {"minProperties": 2, "maxProperties": 4, "propertyNames": {"maxLength": 5}},
    "formats": {"enum": [1, "a"], "not": {"const": 1}},
    "lengths": {"type": "string", "pattern": "^[a-z]+1*$", "maxLength": 9},
    "times": {"type": "string", "format": "ipv6"},
    "numbers": {"type": "number", "exclusiveMinimum": -3, "maximum": 1e9},
}
for text in ('start: "a"+ B\\nB: /[0-9]+/', 'start: %json {"type": "integer"} "x"'):
    grammar, pick = compile_lark(text, vocabulary), random.Random(text)
    for _ in range(3):
        matcher = grammar.matcher()
        for _ in range(12):
            if not matcher.is_terminated:
                assert matcher.accept_token(random_choice(matcher, vocabulary, pick))
for name, schema in (SCHEMAS | more).items():
    for options in (CompileOptions(), CompileOptions(spelling="permissive"), CompileOptions(property_order="any")):
        pick = random.Random(name)
        grammar = compile_json_schema(schema, vocabulary, options)
        batch = BatchMatcher(vocabulary)
        slots = [batch.add(grammar.matcher()) for _ in range(3)]
        for step in range(25):
            going = [slot for slot in slots if not batch.has_ended([slot])[0]]
            tokens = [random_choice(batch.matcher(slot), vocabulary, pick) for slot in going]
            assert batch.accept_tokens(going, tokens).all()
            batch.row_ids(slots), batch.tokens_to_end(slots)
        for slot in slots:
            matcher = batch.matcher(slot)
            matcher.forced_tokens()
            while not matcher.is_terminated:
                assert matcher.accept_token(matcher.closing_token())
after = compiled()
print(json.dumps({name: count for name, count in after.items() if before.get(name) != count}))
print(json.dumps(sum(before.values())))
"""


def test_nothing_is_compiled_after_the_warm_up() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    *_, new, total = done.stdout.splitlines()
    assert json.loads(new) == {}
    assert json.loads(total) > 15
