"""Ways to read a document that differ in what comes behind an open value are made one; nothing else may change by that."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from constrained import CompiledGrammar, CompileOptions, Vocabulary, compile_json_schema
from constrained.automaton import ways
from constrained.automaton.cells import Cells
from constrained.automaton.locals import Locals
from constrained.automaton.threads import Thread
from constrained.options import Limits
from tests.grammars import accepts, awkward_vocabulary, grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying, close

NEVER = 1 << 30
REF = {"$ref": "#/$defs/n"}


def recursive(*several: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"$defs": {"n": {"anyOf": [*several]}}, **REF, **others}


ARRAYS = recursive(*({"type": "array", "items": REF, "maxItems": most} for most in (2, 3)), {"type": "null"})
OBJECTS = recursive(
    {"type": "object", "properties": {"a": REF, "b": REF}, "required": ["b"], "additionalProperties": False},
    {"type": "object", "properties": {"a": REF}, "additionalProperties": REF},
    {"type": "integer", "minimum": 0},
)
MIXED = recursive(
    {"type": "object", "properties": {"a": {"type": "array", "items": REF, "minItems": 1}}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "array", "items": REF, "maxItems": 2}}, "maxProperties": 2},
    {"type": "object", "properties": {"a": {"type": "array", "items": REF}, "b": {"type": "null"}}, "minProperties": 1},
)
DISTINCT = recursive(
    {"type": "array", "items": REF, "uniqueItems": True},
    {"type": "array", "items": REF, "maxItems": 2},
    {"type": "array", "items": {"type": ["null", "array"]}, "maxItems": 3},
    {"type": "null"},
)


def choice(allowed: set[int], vocabulary: Vocabulary, pick: random.Random) -> int:
    """One of the tokens that are no end, one that opens a frame more often than not."""
    tokens = sorted(allowed - vocabulary.eos_token_ids)
    opening = [token for token in tokens if vocabulary.token_bytes[token][-1:] in b'[{:"']
    return pick.choice(opening if opening and pick.random() < 0.7 else tokens)


def compiled(schema: Any, from_how_many: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> CompiledGrammar:
    """A grammar whose ways are merged from so many on, while the patch holds."""
    monkeypatch.setattr(ways, "MANY", from_how_many)
    return compile_json_schema(schema, awkward_vocabulary(), CompileOptions(**options))


@pytest.mark.parametrize("schema", [ARRAYS, OBJECTS, MIXED, DISTINCT], ids=["arrays", "objects", "mixed", "distinct"])
@pytest.mark.parametrize(
    "options", [{}, {"whitespace": "indented"}, {"property_order": "any"}], ids=["flexible", "indented", "any"]
)
def test_masks_and_ends_are_those_of_the_ways_apart(monkeypatch: pytest.MonkeyPatch, schema: Any, options: Any) -> None:
    vocabulary, pick, num_merged = awkward_vocabulary(), random.Random(3), 0
    apart, merged = compiled(schema, NEVER, monkeypatch, **options), compiled(schema, 2, monkeypatch, **options)
    for _ in range(40):
        one, other = apart.matcher(), merged.matcher()
        for _ in range(20):
            monkeypatch.setattr(ways, "MANY", NEVER)
            allowed, num_ways = allowed_by_mask(one, vocabulary), len(one._state.threads)
            end = one.min_tokens_to_end
            monkeypatch.setattr(ways, "MANY", 2)
            assert allowed_by_mask(other, vocabulary) == allowed, other.text
            assert other.min_tokens_to_end == end, other.text
            num_merged += len(other._state.threads) < num_ways
            if allowed <= vocabulary.eos_token_ids or num_ways > 64:
                break
            token = choice(allowed, vocabulary, pick)
            assert other.accept_token(token)
            monkeypatch.setattr(ways, "MANY", NEVER)
            assert one.accept_token(token), other.text
        monkeypatch.setattr(ways, "MANY", 2)
        close(other)
    assert num_merged > 0 or schema is DISTINCT or options.get("whitespace") == "indented"  # there few ways meet again


@pytest.mark.parametrize("schema", [ARRAYS, OBJECTS, MIXED, DISTINCT], ids=["arrays", "objects", "mixed", "distinct"])
def test_masks_are_what_trying_says(monkeypatch: pytest.MonkeyPatch, schema: Any) -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(5)
    matcher = compiled(schema, 2, monkeypatch).matcher()
    for _ in range(16):
        allowed = allowed_by_mask(matcher, vocabulary)
        assert allowed == allowed_by_trying(matcher, vocabulary), matcher.text
        if allowed <= vocabulary.eos_token_ids:
            break
        assert matcher.accept_token(choice(allowed, vocabulary, pick))


@pytest.mark.parametrize("depth", [3, 30])
def test_ways_do_not_multiply_with_depth(depth: int) -> None:
    grammar = grammar_of(ARRAYS, limits=Limits(max_alternatives=8))
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"[" * depth + b"null,null")
    assert matcher.fork().accept_bytes(b"]" * depth)
    assert matcher.accept_bytes(b",null")
    assert not matcher.fork().accept_bytes(b",")
    assert matcher.accept_bytes(b"],null,null],null" + b"]" * (depth - 2))
    assert matcher.is_complete


def test_ways_are_made_one_before_a_value_multiplies_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 readings of the object, 60 of its member: 3,600 pairs, of which no step ever sees more than 120."""
    values = {"anyOf": [{"type": "array", "items": {"type": "integer"}, "maxItems": most} for most in range(2, 62)]}
    readings = [{"required": [f"k{index}"]} for index in range(60)]
    grammar = grammar_of({"type": "object", "properties": {"a": values}, "anyOf": readings}, property_order="any")
    before: list[int] = []
    taken_apart: list[int] = []
    merged, split = ways.merged, Cells.split

    def counted(threads: list[Thread], cells: Cells, locals_: Locals) -> list[Thread]:
        before.append(len(threads))
        return merged(threads, cells, locals_)

    def noted(self: Cells, cell: int, level: int) -> Any:
        taken_apart.append(cell)
        return split(self, cell, level)

    monkeypatch.setattr(ways, "merged", counted)
    monkeypatch.setattr(Cells, "split", noted)
    for text, is_valid in (('{"a": [1, 2], "k7": 3}', True), ('{"a": [], "k60": 3}', False), ('{"a": [true]', False)):
        assert accepts(grammar, text) == is_valid
    assert max(before) <= 120
    assert len(taken_apart) < sum(before) / 20  # a stack is looked at for what it is merged to, not once for each thread


def test_what_is_merged_stays_apart_where_frames_below_differ() -> None:
    """Two ways on the outside, two on the inside: four pairs, of which two are possible."""
    inner = {letter: {"type": "object", "properties": {"x": {"const": letter}}, "maxProperties": 2} for letter in "ab"}
    readings = [
        {"type": "object", "properties": {"v": inner[letter], "w": {"const": letter}}, "required": ["v", "w"]}
        for letter in "ab"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "MANY", 2)
        grammar = grammar_of({"anyOf": readings})
        for first in "ab":
            for last in "ab":
                text = json.dumps({"v": {"x": first, "y": 1}, "w": last})
                assert accepts(grammar, text) == (first == last), text


@pytest.mark.parametrize("name", ["Github_trivial---o63308", "Github_medium---o3626"])
def test_real_schemas_with_many_ways(shared_data: Path, name: str) -> None:
    """GeoJSON, and a language of queries: more than 2,000 ways to read where each level multiplies them."""
    with gzip.open(shared_data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        row = next(found for line in lines if (found := json.loads(line))["id"] == name)
    grammar = compile_json_schema(row["schema"], awkward_vocabulary(), CompileOptions(property_order="any"))
    for test in row["tests"]:
        assert accepts(grammar, json.dumps(test["data"])) == test["valid"]
