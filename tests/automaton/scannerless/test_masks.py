"""Rows put together from parts, in both ways of making them, against brute force over a vocabulary of pieces of texts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from constrained import CompiledGrammar, Vocabulary, compile_lark
from constrained.automaton.scannerless import masks, parts
from constrained.automaton.scannerless.scan import BYTE_0, COLUMNS, ENDS, open_edges
from constrained.automaton.tables import Table
from constrained.errors import GrammarFuelError
from constrained.tokens.trie import Trie
from tests.grammars import random_choice
from tests.oracles import allowed_by_mask, allowed_by_trying
from tests.test_lark_grammars import CALLS, GRAMMARS, PERSON

TEXTS = {
    "python": 'def f(a, b): return a + b if a else None\nx = foo(1, "two", [3, 4.5])[0].bar\nif not x == y and z: pass # c\n',
    "sql": "SELECT name, age FROM people WHERE (age > 12 AND name = 'bob') OR x < 3 ORDER BY name DESC;",
    "arithmetic": "(1 + foo * 3.5) -  -bar * ((2) + 3) * x",
    "json": '{"a": [1, 2.5, {"b": "hello"}],  "c": null, "d": {"e": true}}',
    "keywords": "if ifthen then  then = then;if x then if = y;x",
    "palindromes": "abaabbaababaabbaaba",
    "calls": 'f ( {"name": "a)", "n": 1, "x": null} )#x)\ng("é\\"") #\nh(12)\nh(null)',
}


def pieces(text: str) -> Vocabulary:
    """Every byte, and pieces of a text: the short ones, and longer ones by chance."""
    data, pick = text.encode(), random.Random(text)
    longest = [12 if pick.random() < 0.1 else 4 for _ in data]
    found = {data[i : i + n] for i in range(len(data)) for n in range(2, longest[i]) if i + n <= len(data)}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(found) + [b""]
    return Vocabulary.from_bytes(tokens, [len(tokens) - 1])


def compiled(name: str, vocabulary: Vocabulary) -> CompiledGrammar:
    if name == "calls":
        return compile_lark(CALLS, vocabulary, schemas={"PERSON": PERSON})
    return compile_lark(GRAMMARS[name][0], vocabulary)


@pytest.fixture(params=[0, masks.FEW], ids=["by terminals", "by states too"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "FEW", request.param)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", TEXTS)
def test_masks_along_a_text_and_beside_it_are_what_brute_force_finds(name: str) -> None:
    vocabulary, pick = pieces(TEXTS[name]), random.Random(name)
    grammar = compiled(name, vocabulary)
    for start in range(0, 60, 12):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(TEXTS[name].encode()[:start])
        for _ in range(5):
            assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), matcher.text
            assert matcher.accept_token(random_choice(matcher, vocabulary, pick))
            if matcher.is_terminated:
                break


def test_a_walk_with_little_room_for_unknown_steps_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROOM", 2)
    vocabulary = pieces(TEXTS["sql"])
    matcher = compiled("sql", vocabulary).matcher()
    for _ in range(20):
        assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), matcher.text
        assert matcher.accept_token(random_choice(matcher, vocabulary, random.Random(1)))


def test_places_that_are_reached_in_many_ways_come_out_once() -> None:
    runs = [b"a" * length for length in range(1, 40)]
    vocabulary = Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256) if byte != 97), *runs, b""], [294])
    matcher = compile_lark('start: A+ "b"\nA: /a+/', vocabulary).matcher()
    assert allowed_by_mask(matcher, vocabulary) == set(range(255, 294))
    assert matcher.accept_bytes(b"aaa")
    assert allowed_by_mask(matcher, vocabulary) == {97, *range(255, 294)}


def test_a_walk_that_breaks_off_leaves_nothing_behind() -> None:
    trie, table = Trie.build([b"a", b"aa", b"ab", b"aab"]), Table(COLUMNS)
    start, broken = table.add(), True

    def fill(row: int, byte: int) -> None:
        nonlocal broken
        if row > start and broken:
            broken = False
            raise GrammarFuelError("too much", "grammar", "A")
        after = table.add()
        table.array[after, ENDS] = 1
        table.array[row, BYTE_0 + byte] = after

    walked = parts.Parts(trie, 1)
    with pytest.raises(GrammarFuelError):
        walked.walk(walked.root, start, table, fill)
    found = walked.walk(walked.root, start, table, fill)
    words = np.zeros(1, np.uint32)
    found.put(words)
    assert words[0] == 0b1111
    assert not found.exits  # all that follows is set already
    assert not walked._is_exit.any()


def test_edges_are_open_where_some_string_below_is_missing() -> None:
    trie = Trie.build([b"a", b"ab", b"abc", b"b", b"ba", b"c"])
    words = np.zeros(1, np.uint32)
    edges = np.arange(len(trie.edge_byte), dtype=np.int32)

    def found() -> list[int]:
        return open_edges(edges, words, trie.first, trie.end, trie.edge_node, trie.ids).tolist()

    assert found() == edges.tolist()
    words[0] = 0b110110  # all but "a" and "b" themselves
    assert [trie.edge_byte[edge] for edge in found()] == [97, 98]
    words[0] = 0b110011  # all but "abc" and "b"
    assert [trie.edge_byte[edge] for edge in found()] == [97, 98, 98, 99]
