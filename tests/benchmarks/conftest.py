"""Fixtures of the benchmarks' tests: an engine that behaves as its schema says, and a few schemas with instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FAKE_ENGINE = '''
import json
import os
import time

from benchmarks.engines.base import CompileRefusal, Sequence


class Anything:
    def __init__(self, refused):
        self.refused = refused

    def sequence(self):
        def fill(bitmask):
            bitmask[:] = -1
            for token_id in self.refused:
                bitmask[0, token_id >> 5] &= ~(1 << (token_id & 31))

        def accept(token_id):
            if token_id == ord("!"):
                raise ValueError("the engine breaks")
            return token_id != ord("?")

        return Sequence(fill, accept, lambda: "")


class Fake:
    """Accepts any document without a comma; "does" in the schema says what else happens."""

    version = "1"

    def __init__(self, vocabulary, tokenizer_file):
        pass

    def compile(self, schema):
        does = json.loads(schema).get("does")
        if does == "refuse":
            raise CompileRefusal("refused on request", "in full")
        if does == "raise":
            raise KeyError("odd")
        if does == "die":
            os._exit(3)
        if does == "hang":
            time.sleep(60)
        print("noise on stdout")
        return Anything([ord(",")])


ENGINE = Fake
'''


@pytest.fixture
def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dotted path of an engine for workers to load."""
    package = tmp_path / "engines_of_test"
    package.mkdir()
    (package / "fake.py").write_text(FAKE_ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "engines_of_test.fake"


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Three schemas that every engine compiles, one that some refuse, with instances of both kinds."""
    person = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    return [
        row("person", person, valid=[{"name": "Zoë", "age": 3}], invalid=[{"name": 3}, {"name": "A", "age": "old"}]),
        row("numbers", {"type": "array", "items": {"type": "integer"}}, valid=[[], [1, -20, 300]], invalid=[["1"], {}]),
        row("colour", {"enum": ["red", "green", 7, None]}, valid=["green", 7, None], invalid=["blue", 77]),
        row("negated", {"not": {"type": "string"}}, valid=[1], invalid=["a"]),
    ]


def row(name: str, schema: Any, valid: list[Any], invalid: list[Any]) -> dict[str, Any]:
    tests = [{"valid": flag, "data": data} for flag, instances in ((True, valid), (False, invalid)) for data in instances]
    return {"id": name, "schema": schema, "tests": tests}
