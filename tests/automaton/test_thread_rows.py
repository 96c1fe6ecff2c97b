"""Rows of single threads: what is kept of them, and where they are written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constrained.automaton.automaton import Automaton
from constrained.automaton.masks import Masks
from constrained.automaton.tables import Storage, StringTries
from constrained.compiled import CompiledGrammar
from tests.grammars import awkward_vocabulary, grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "number"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}


def parts(grammar: CompiledGrammar) -> tuple[Automaton, Masks]:
    automaton, masks = grammar._engine.automaton, grammar._engine.masks
    assert isinstance(automaton, Automaton)
    assert isinstance(masks, Masks)
    return automaton, masks


def test_rows_do_not_become_more_with_depth() -> None:
    grammar = grammar_of(TREE, awkward_vocabulary(), whitespace="compact")
    matcher = grammar.matcher()
    _, masks = parts(grammar)
    counts = []
    for _ in range(40):
        for byte in b'{"name":"a","size":1.5,"below":[':
            allowed_by_mask(matcher, awkward_vocabulary())
            assert matcher.accept_token(byte)
        counts.append(len(masks._rows))
    assert counts[-1] == counts[12], "from some depth on nothing is new"
    assert len(set(counts[:3])) > 1
    assert allowed_by_mask(matcher, awkward_vocabulary()) == allowed_by_trying(matcher, awkward_vocabulary())


def test_tables_grow_in_the_middle_of_a_document() -> None:
    properties = {f"key {index}": {"type": ["string", "integer"]} for index in range(60)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    grammar = grammar_of(schema, awkward_vocabulary(), whitespace="compact")
    automaton, masks = parts(grammar)
    rows, threads = masks._rows._rows.capacity, automaton.threads.table.capacity
    matcher, again = grammar.matcher(), grammar_of(schema, awkward_vocabulary(), whitespace="compact").matcher()
    for byte in ("{" + ",".join(f'"{key}":{index}' for index, key in enumerate(properties)) + "}").encode():
        words = again.mask_row().words
        bitmask = np.zeros((1, len(words)), np.int32)
        matcher.fill_bitmask(bitmask, 0)
        assert (bitmask[0] == words).all()
        assert matcher.accept_token(byte)
        assert again.accept_token(byte)
    assert masks._rows._rows.capacity > rows
    assert automaton.threads.table.capacity > threads
    assert matcher.is_complete


@pytest.mark.parametrize("document", [b"", b'{"a', b'{"a":1,"b":"x"}'])
def test_a_row_goes_where_it_is_asked_for_and_nowhere_else(document: bytes) -> None:
    vocabulary = awkward_vocabulary()
    matcher = grammar_of({"type": "object"}, vocabulary).matcher()
    assert matcher.accept_bytes(document)
    for _ in range(2):  # before its row was seen, and after
        narrow = np.zeros((2, vocabulary.num_words - 1), np.int32)
        with pytest.raises(ValueError):
            matcher.fill_bitmask(narrow, 0)
        bitmask = np.full((3, vocabulary.num_words), -1, np.int32)
        with pytest.raises(IndexError):
            matcher.fill_bitmask(bitmask, 3)
        assert (narrow == 0).all()
        assert (bitmask == -1).all()
        matcher.fill_bitmask(bitmask, 1)
        assert (bitmask[[0, 2]] == -1).all()
        assert (bitmask[1] == matcher.mask_row().words).all()
        wide = np.zeros((3, 2 * vocabulary.num_words), np.int32)[:, ::2]  # not in one piece
        matcher.fill_bitmask(wide, -1)
        assert (wide[2] == matcher.mask_row().words).all()


@pytest.mark.parametrize(("first", "last"), [(1, 6), (1, 1), (2, 4), (5, 6), (6, 6)])
def test_a_part_of_a_trie_is_the_trie_of_a_part(first: int, last: int) -> None:
    names = ["name", "names", "na", "x", "é", "éa"]
    tags = [(name, tag) for tag, name in enumerate(names, 1)]
    tries = StringTries(Storage(4096))
    whole = tries.add(tags, fallback=False)
    begun = tries.table.size
    part = tries.part(whole, first, last)
    copied = tries.table.array[begun : tries.table.size].copy()
    assert part & ((1 << 28) - 1) == begun
    alone = StringTries(Storage(4096))
    alone.table.add((0, 1, -1, 0, 0))
    alone.table.size = begun
    alone.add([(name, tag) for name, tag in tags if first <= tag <= last], fallback=False)
    assert (copied == alone.table.array[begun : alone.table.size]).all()
