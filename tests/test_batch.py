"""Matchers in a batch do what they do alone: accept, refuse, roll back, end; whoever uses them, and whatever is forgotten."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

from constrained import BatchMatcher, CompiledGrammar, Matcher
from constrained import batch as batch_module
from tests.grammars import awkward_vocabulary, byte_vocabulary, grammar_of, random_choice
from tests.test_matcher import SCHEMAS, cached_grammar

EOS = awkward_vocabulary().size - 1
UNIQUE = {"type": "array", "items": {"enum": [1, 2, "x", "y", {"a": 1}]}, "uniqueItems": True, "minItems": 1}
NAMES = [*SCHEMAS, "unique"]
OBSERVED = ("is_terminated", "is_accepting", "is_complete", "text", "min_tokens_to_end")


def new_matcher(name: str) -> Matcher:
    if name != "unique":
        return cached_grammar(name).matcher()
    return _unique().matcher()


@cache
def _unique() -> CompiledGrammar:
    return grammar_of({"anyOf": [UNIQUE, {"type": "object", "additionalProperties": UNIQUE}]}, awkward_vocabulary())


class Pairs:
    """A batch, and beside each of its matchers one that goes alone."""

    def __init__(self, capacity: int) -> None:
        self.batch = BatchMatcher(awkward_vocabulary(), capacity)
        self.alone: dict[int, Matcher] = {}

    def add(self, name: str) -> None:
        slot = self.batch.add(new_matcher(name))
        assert slot not in self.alone
        self.alone[slot] = new_matcher(name)

    def check(self) -> None:
        slots = list(self.alone)
        assert len(self.batch) == len(slots)
        rows = [matcher.mask_row() for matcher in self.alone.values()]
        ids = self.batch.row_ids(slots)
        for slot, row, row_id in zip(slots, rows, ids, strict=True):
            found = self.batch.mask_row(slot)
            assert (found.words == row.words).all()
            assert found.id == row_id
        bounds = [matcher.min_tokens_to_end for matcher in self.alone.values()]
        assert self.batch.tokens_to_end(slots).tolist() == bounds
        ended = [matcher.is_terminated or matcher.is_complete for matcher in self.alone.values()]
        assert self.batch.has_ended(slots).tolist() == ended

    def accept(self, pick: random.Random) -> None:
        """One token each: most of them allowed, some ends, some nonsense."""
        slots = pick.sample(list(self.alone), pick.randrange(1, len(self.alone) + 1))
        tokens = [self.choose(self.alone[slot], pick) for slot in slots]
        expected = [self.alone[slot].accept_token(token) for slot, token in zip(slots, tokens, strict=True)]
        assert self.batch.accept_tokens(np.array(slots), tokens).tolist() == expected

    def choose(self, matcher: Matcher, pick: random.Random) -> int:
        if matcher.is_terminated or pick.random() < 0.05:
            return pick.choice([EOS, -1, EOS + 1, pick.randrange(EOS)])
        return matcher.closing_token() if pick.random() < 0.2 else random_choice(matcher, awkward_vocabulary(), pick)

    def rollback(self, pick: random.Random) -> None:
        slot = pick.choice(list(self.alone))
        while (n := pick.randrange(6)) > 0:
            try:
                self.alone[slot].rollback(n)
            except ValueError:
                with pytest.raises(ValueError, match="cannot undo"):
                    self.batch.rollback(slot, n)
                break
            self.batch.rollback(slot, n)

    def use_alone(self, pick: random.Random) -> None:
        """The matcher in the batch is used by itself; also one that somebody has held for long."""
        slot = pick.choice(list(self.alone))
        inside, alone = self.batch.matcher(slot), self.alone[slot]
        for name in OBSERVED:
            assert getattr(inside, name) == getattr(alone, name)
        assert inside.forced_tokens() == alone.forced_tokens()
        if not alone.is_terminated:
            token = alone.closing_token()
            assert inside.closing_token() == token
            if pick.random() < 0.5:
                assert inside.accept_token(token)
                assert alone.accept_token(token)

    def replace(self, pick: random.Random) -> None:
        slot = pick.choice(list(self.alone))
        alone, outside = self.alone.pop(slot), self.batch.remove(slot)
        for name in OBSERVED:
            assert getattr(outside, name) == getattr(alone, name)
        self.add(pick.choice(NAMES))


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_does_what_its_matchers_do_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(batch_module, "TRAIL_LEN", 3)
        monkeypatch.setattr(batch_module, "MAX_STATES", 40)
    pick, pairs = random.Random(seed), Pairs(1 + seed)
    for name in [*NAMES, "open", "keys", "unique", "unique"]:
        pairs.add(name)
    for _ in range(120):
        pairs.accept(pick)
        if pick.random() < 0.3:
            pick.choice([pairs.rollback, pairs.use_alone, pairs.replace])(pick)
        if pick.random() < 0.5:
            pairs.check()


def warm(pairs: list[tuple[Matcher, list[int]]], batch: BatchMatcher) -> None:
    """Every matcher through its tokens, once, in the batch."""
    for matcher, tokens in pairs:
        slot = batch.add(matcher)
        for token in tokens:
            batch.row_ids([slot])
            assert batch.accept_tokens([slot], [token]).all()
        batch.remove(slot)


def test_what_was_seen_once_is_never_asked_of_a_matcher_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [(b'{"name":"bob","age":42}', "person"), (b'["x",true]', "union"), (b"[[1.5e3]]", "anything")]
    batch = BatchMatcher(awkward_vocabulary(), 4)
    warm([(cached_grammar(name).matcher(), [*text, EOS]) for text, name in texts], batch)
    slots = {batch.add(cached_grammar(name).matcher()): text for text, name in texts}
    batch.row_ids(list(slots))

    def never(*_: Any) -> bool:
        raise AssertionError("asked a matcher")

    monkeypatch.setattr(Matcher, "accept_token", never)
    monkeypatch.setattr(Matcher, "mask_row", never)
    for i in range(max(map(len, slots.values())) + 1):
        going = [slot for slot, text in slots.items() if i <= len(text)]
        assert (batch.row_ids(going) >= 0).all()
        assert batch.accept_tokens(going, [[*slots[slot], EOS][i] for slot in going]).all()
    for slot, text in slots.items():
        assert batch.matcher(slot).text == text
        assert batch.matcher(slot).is_terminated


def test_a_matcher_is_in_one_batch_at_most_and_of_its_vocabulary() -> None:
    batch, matcher = BatchMatcher(awkward_vocabulary(), 1), cached_grammar("person").matcher()
    slot = batch.add(matcher)
    with pytest.raises(ValueError, match="in a batch already"):
        BatchMatcher(awkward_vocabulary()).add(matcher)
    with pytest.raises(ValueError, match="another vocabulary"):
        batch.add(grammar_of(True, byte_vocabulary()).matcher())
    assert batch.remove(slot) is matcher
    with pytest.raises(ValueError, match="slot 0 is empty"):
        batch.accept_tokens([slot], [ord("{")])
    assert BatchMatcher(awkward_vocabulary()).add(matcher) == 0
