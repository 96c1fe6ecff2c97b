"""Bounds on what a grammar remembers: no running matcher is stopped, nothing changes but the memory; and many threads."""

from __future__ import annotations

import gc
import json
import random
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from constrained import CompiledGrammar, CompileOptions, compile_json_schema, matcher
from constrained.automaton.sizes import memory_bytes
from constrained.options import Limits
from tests.grammars import awkward_vocabulary, byte_vocabulary, grammar_of, random_choice
from tests.test_matcher import SCHEMAS


def limited(schema: Any, **limits: int) -> CompiledGrammar:
    return compile_json_schema(schema, byte_vocabulary(), CompileOptions(limits=Limits(**limits)))


def read(grammar: CompiledGrammar, value: Any) -> None:
    running = grammar.matcher()
    assert running.accept_bytes(json.dumps(value).encode())


def test_what_an_object_takes() -> None:
    shared = list(range(10_000))
    own = np.zeros(1000, np.int64)
    assert 8000 < memory_bytes({"a": own, "b": [own], "c": own[:10]}) < 9000
    assert memory_bytes([shared, own], [shared]) < 9000 < memory_bytes([shared, own])


def test_memory_is_reported_and_grows_with_what_is_read() -> None:
    grammar = grammar_of(SCHEMAS["open"])
    before = grammar.memory_bytes
    assert 10_000 < before < 2_000_000
    read(grammar, {f"key {i}": {"x": i} for i in range(200)})
    assert before + 10_000 < grammar.memory_bytes < 50_000_000


def test_a_large_schema_takes_little() -> None:
    """A schema of 100 kB with all its rows for one document: under 50 MB."""
    properties = {f"property number {i}": {"type": ["string", "integer"], "title": "x" * 40} for i in range(1000)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    assert len(json.dumps(schema)) > 100_000
    grammar = grammar_of(schema)
    running = grammar.matcher()
    while not running.is_complete:
        running.mask_row()
        assert running.accept_token(running.closing_token())
    assert grammar.memory_bytes < 50_000_000


@pytest.mark.parametrize("limits", [{"max_states": 60}, {"max_memory_bytes": 400_000}])
def test_past_a_bound_new_matchers_begin_anew_and_running_ones_go_on(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("constrained.compiled.FIRST_LOOK", 16)
    grammar = limited(SCHEMAS["open"], **limits)
    running = grammar.matcher()
    text = json.dumps({f"k{i}": {"a": None} for i in range(60)}).encode()
    assert running.accept_bytes(text[:200])
    sizes = []
    for i in range(40):
        read(grammar, {f"some {i}": {f"other {i} {k}": k for k in range(20)}})
        sizes.append(grammar.memory_bytes)
        assert running.accept_token(text[200 + i])
    assert running.accept_bytes(text[240:])
    assert running.is_complete
    assert min(sizes[1:]) < max(sizes[:-1]), "nothing was ever forgotten"
    assert max(sizes) < 3_000_000


def test_a_state_remembers_only_so_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MAX_NEXT", 5)
    grammar = grammar_of({"type": "string"})
    running = grammar.matcher()
    assert running.accept_token(ord('"'))
    for byte in b"abcdefghijklmnop":
        assert running.accept_token(byte)
        assert len(running.state.next) <= 5
    assert running.text == b'"abcdefghijklmnop'


Trace = list[tuple[int, bytes, int]]


def trace(grammar: CompiledGrammar, seed: int) -> Trace:
    """A random walk: the tokens, the masks' words and the bounds on the way. It depends on the masks alone."""
    pick, running, seen = random.Random(seed), grammar.matcher(), Trace()
    for _ in range(30):
        if running.is_terminated:
            break
        token = random_choice(running, awkward_vocabulary(), pick)
        seen.append((token, running.mask_row().words.tobytes(), running.min_tokens_to_end))
        running.forced_tokens()
        assert running.accept_token(token)
    return seen


@pytest.mark.parametrize("name", SCHEMAS)
def test_many_threads_see_what_one_sees(name: str) -> None:
    seeds = [i % 5 for i in range(12)]
    alone = [trace(grammar_of(SCHEMAS[name], awkward_vocabulary()), seed) for seed in range(5)]
    shared, start = grammar_of(SCHEMAS[name], awkward_vocabulary()), threading.Barrier(len(seeds))

    def work(seed: int) -> Trace:
        start.wait()
        return trace(shared, seed)

    with ThreadPoolExecutor(len(seeds)) as threads:
        assert list(threads.map(work, seeds)) == [alone[seed] for seed in seeds]


def test_a_grammar_goes_with_its_last_matcher() -> None:
    """Its states lead to each other in circles, and yet no garbage collector is needed to free them."""
    grammar = grammar_of({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}})
    running = grammar.matcher()
    for byte in b'{"a": ["x", "y"], "b": {"c": [1]}, "d": 2}':
        running.mask_row()
        assert running.accept_bytes(bytes([byte]))
    automaton, nodes = weakref.ref(running._engine.automaton), weakref.ref(vars(grammar)["_nodes"])
    gc.disable()
    try:
        del grammar, running
        assert automaton() is None
        assert nodes() is None
    finally:
        gc.enable()
