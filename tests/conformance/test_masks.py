"""Masks of MaskBench's schemas over a whole small vocabulary: brute force, completions, rollback, tokenisations, orders."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constrained import CompiledGrammar, Matcher
from constrained.errors import SchemaError
from constrained.grammar.dialects import DRAFTS
from tests.conformance.judging import Judge, Unjudgeable, maskbench
from tests.conformance.making import made
from tests.grammars import accepts, awkward_vocabulary, grammar_of, random_choice
from tests.oracles import allowed_by_mask, allowed_by_trying, close, tokens_of, walked

VOCABULARY = awkward_vocabulary()
ANY_ORDER: dict[str, Any] = {"property_order": "any"}
SAMPLE = 40


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in random.Random(31).sample(maskbench(shared_data), SAMPLE)]


def compiled(cases: list[dict[str, Any]], **options: Any) -> Iterator[tuple[dict[str, Any], CompiledGrammar]]:
    for case in cases:
        try:
            yield case, grammar_of(case["schema"], VOCABULARY, **options)
        except SchemaError:
            continue


@pytest.mark.parametrize("options", [{}, {"spelling": "permissive", "property_order": "any"}], ids=["default", "every text"])
def test_a_mask_is_what_brute_force_finds(cases: list[dict[str, Any]], options: dict[str, Any]) -> None:
    pick = random.Random(1)
    for case, grammar in compiled(cases, **options):
        matcher = grammar.matcher()
        for _ in range(25):
            assert allowed_by_mask(matcher, VOCABULARY) == allowed_by_trying(matcher, VOCABULARY), (case["id"], matcher.text)
            assert matcher.accept_token(random_choice(matcher, VOCABULARY, pick))
            if matcher.is_terminated:
                break


@pytest.mark.parametrize("draft", DRAFTS)
def test_masks_of_made_schemas_in_every_draft(draft: str) -> None:
    pick, num_masks = random.Random(draft), 0
    for _ in range(120):
        schema = made(pick, depth=2)
        try:
            grammar = grammar_of({"$schema": draft} | schema if isinstance(schema, dict) else schema, VOCABULARY)
        except SchemaError:
            continue
        matcher = grammar.matcher()
        for _ in range(15):
            assert allowed_by_mask(matcher, VOCABULARY) == allowed_by_trying(matcher, VOCABULARY), (schema, matcher.text)
            assert matcher.accept_token(random_choice(matcher, VOCABULARY, pick))
            num_masks += 1
            if matcher.is_terminated:
                break
    assert num_masks > 300


@pytest.mark.parametrize("options", [{}, ANY_ORDER], ids=["schema", "any"])
def test_every_allowed_token_has_a_valid_completion(cases: list[dict[str, Any]], options: dict[str, Any]) -> None:
    pick, completed = random.Random(2), 0
    for case, grammar in compiled(cases, **options):
        judge, matcher = Judge(case["schema"]), grammar.matcher()
        for _ in range(pick.randrange(30)):
            assert matcher.accept_token(random_choice(matcher, VOCABULARY, pick))
            if matcher.is_terminated:
                break
        allowed = tokens_of(matcher.mask_row())
        for token in pick.sample(allowed, min(len(allowed), 60)):
            other = matcher.fork()
            assert other.accept_token(token)
            close(other)
            try:
                assert judge.accepts(other.text), (case["id"], other.text)
                completed += 1
            except Unjudgeable:
                pass
    assert completed > 10 * SAMPLE


def test_what_was_taken_back_leaves_no_trace(cases: list[dict[str, Any]]) -> None:
    pick = random.Random(3)
    for case, grammar in compiled(cases):
        matcher, steps = grammar.matcher(), []
        for _ in range(40):
            if matcher.is_terminated or pick.random() < 0.2:
                undone = pick.randint(0, len(steps))
                matcher.rollback(undone)
                del steps[len(steps) - undone :]
            else:
                steps.append(random_choice(matcher, VOCABULARY, pick))
                assert matcher.accept_token(steps[-1])
            assert_same(matcher, replayed(grammar, steps), case["id"])


def replayed(grammar: CompiledGrammar, steps: list[int]) -> Matcher:
    matcher = grammar.matcher()
    assert all(map(matcher.accept_token, steps))
    return matcher


def assert_same(left: Matcher, right: Matcher, name: str) -> None:
    assert left.text == right.text
    assert allowed_by_mask(left, VOCABULARY) == allowed_by_mask(right, VOCABULARY), (name, left.text)
    assert (left.is_accepting, left.is_terminated, left.is_complete) == (
        right.is_accepting, right.is_terminated, right.is_complete,
    ), (name, left.text)  # fmt: skip
    assert left.forced_bytes() == right.forced_bytes(), (name, left.text)


def test_a_document_goes_through_in_any_tokens(cases: list[dict[str, Any]]) -> None:
    pick = random.Random(4)
    for case, grammar in compiled(cases, **ANY_ORDER):
        for more in (5, None):
            text = walked(grammar.matcher(), pick, more)
            matcher = grammar.matcher()
            while (begun := len(matcher.text)) < len(text):
                fitting = [
                    token
                    for token, data in enumerate(VOCABULARY.token_bytes)
                    if data and text.startswith(data, begun)
                ]  # fmt: skip
                allowed = allowed_by_mask(matcher, VOCABULARY)
                assert set(fitting) <= allowed, (case["id"], text, matcher.text)
                assert matcher.accept_token(pick.choice(fitting))
            assert matcher.is_accepting, (case["id"], text)


def test_both_orders_agree_on_values(cases: list[dict[str, Any]]) -> None:
    pick, compared = random.Random(5), 0
    for case, grammar in compiled(cases):
        try:
            any_order = grammar_of(case["schema"], VOCABULARY, **ANY_ORDER)
        except SchemaError:
            continue
        for more in (0, 10, None):
            text = walked(grammar.matcher(), pick, more)
            assert accepts(any_order, text), (case["id"], text)
            text = walked(any_order.matcher(), pick, more)
            assert accepts(grammar, reordered(text, grammar.property_order)), (case["id"], text)
            compared += 2
    assert compared > 3 * SAMPLE


def reordered(text: bytes, order: tuple[str, ...]) -> str:
    """The document with its keys in an order, its fractions as they are written."""
    value = in_order(json.loads(text, parse_float=lambda digits: f"\0{digits}\0"), order)
    return re.sub(r'"\\u0000(.*?)\\u0000"', r"\1", json.dumps(value))


def in_order(value: Any, order: tuple[str, ...], at: str = "") -> Any:
    """The value with the keys of each object as they stand in `order`, those that it does not know behind."""
    if isinstance(value, list):
        return [in_order(item, order, f"{at}/*") for item in value]
    if not isinstance(value, dict):
        return value
    places = {name: f"{at}/{name.replace('~', '~0').replace('/', '~1')}" for name in value}
    known = sorted((name for name in value if places[name] in order), key=lambda name: order.index(places[name]))
    names = [*known, *(name for name in value if name not in known)]
    return {name: in_order(value[name], order, places[name]) for name in names}
