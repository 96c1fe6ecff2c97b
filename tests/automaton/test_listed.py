"""Objects whose places are laid out at once: what may come is what it is when each place is made by itself."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from constrained import Matcher
from constrained.automaton.locals import Locals
from constrained.automaton.tables import BEHIND
from tests.grammars import awkward_vocabulary, grammar_of
from tests.oracles import allowed_by_mask, close

VALUES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"enum": ["a", "b", 1]},
    {"type": ["null", "boolean"]},
    {"type": "array", "items": {"type": "boolean"}},
    {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
    {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": False},
    False,
    {},
]
NAMES = ["a", "b", "ab", "name", "", 'a"b', "é"]


def random_object(pick: random.Random) -> dict[str, Any]:
    """An object of some properties, none of which is required without a value."""
    names = pick.sample(NAMES, pick.randrange(len(NAMES)))
    properties = {name: pick.choice(VALUES) for name in names}
    required = [name for name in names if properties[name] is not False and pick.random() < 0.4]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": pick.choice([True, False, {"type": "integer"}]),
    }


@pytest.mark.parametrize("seed", range(60))
def test_masks_and_ends_are_those_of_places_made_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(seed)
    schema = random_object(pick)
    laid_out = grammar_of(schema, awkward_vocabulary(), whitespace="compact")
    with monkeypatch.context() as patch:
        one_by_one = grammar_of(schema, awkward_vocabulary(), whitespace="compact")
        for _ in range(4):
            matchers = (laid_out.matcher(), one_by_one.matcher())
            for _ in range(25):
                patch.undo()
                allowed, closing = look(matchers[0])
                patch.setattr(Locals, "_lays_out", lambda *_: False)
                assert look(matchers[1]) == (allowed, closing), matchers[0].text
                token = pick.choice(sorted(allowed))
                patch.undo()
                assert matchers[0].accept_token(token)
                patch.setattr(Locals, "_lays_out", lambda *_: False)
                assert matchers[1].accept_token(token)
                if matchers[0].is_terminated:
                    break
    assert any(one_by_one._engine.automaton.locals._states)
    assert None not in one_by_one._engine.automaton.locals._states
    close(laid_out.matcher())


def look(matcher: Matcher) -> tuple[set[int], int]:
    return allowed_by_mask(matcher, awkward_vocabulary()), matcher.min_tokens_to_end


def test_a_place_says_what_it_is() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"], "type": "object"}
    grammar = grammar_of(schema, awkward_vocabulary())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'{"a":"x","b":1,"c":2}')
    locals_ = grammar._engine.automaton.locals
    places = [locals_.state(index) for index in range(len(locals_))]
    kinds = [type(place).__name__ for place in places]
    # Of two properties: before a key and behind a member with 0, 1 or 2 past; colon and value of either, and of a free key.
    assert {name: kinds.count(name) for name in ("ObjectKey", "ObjectNext", "ObjectColon")} == {
        "ObjectKey": 3,
        "ObjectNext": 3,
        "ObjectColon": 3,
    }


def test_rows_of_scalars_keep_what_they_stand_for() -> None:
    properties = {
        f"p{i}": {"type": "string", "maxLength": i} if i % 2 else {"type": "integer", "minimum": i} for i in range(40)
    }
    grammar = grammar_of({"type": "object", "properties": {**properties, "s": {"type": "string"}}}, awkward_vocabulary())
    document = {name: "" if "maxLength" in schema else 99 for name, schema in properties.items()}
    matcher = grammar.matcher()
    assert matcher.accept_bytes(json.dumps({**document, "s": "x"}).encode())
    assert grammar.min_bytes == len("{}")  # measured after all were met
    places = grammar._engine.automaton.locals
    assert len(places._leaf_rows) >= 41
    for (leaf, depth), row in places._leaf_rows.items():
        assert set(places.edge_rows.edges_of(row, BEHIND)) == set(places._value(leaf.node, BEHIND, depth))
