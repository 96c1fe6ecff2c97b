"""A state machine of hypothesis: whatever is done to a matcher, it stands where a new one stands that reads the same text."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from constrained import CompiledGrammar, Matcher
from tests.grammars import awkward_vocabulary, grammar_of, random_choice
from tests.test_matcher import SCHEMAS, allowed_by_mask

VOCABULARY = awkward_vocabulary()
EOS = VOCABULARY.size - 1
UNIQUE: dict[str, Any] = {"type": "array", "items": {"enum": [1, 12, "a", {"a": 1}]}, "uniqueItems": True}
NAMED = SCHEMAS | {"unique": UNIQUE, "lists": {"type": "object", "additionalProperties": UNIQUE}}
_grammars: dict[str, CompiledGrammar] = {}


def grammar(name: str) -> CompiledGrammar:
    if name not in _grammars:
        _grammars[name] = grammar_of(NAMED[name], VOCABULARY)
    return _grammars[name]


class MatcherMachine(RuleBasedStateMachine):
    """`steps` is what the matcher accepted: token ids, or bytes."""

    @initialize(name=st.sampled_from(sorted(NAMED)), seed=st.integers(0, 2**32))
    def begin(self, name: str, seed: int) -> None:
        self.grammar, self.pick = grammar(name), random.Random(seed)
        self.matcher: Matcher = self.grammar.matcher()
        self.steps: list[int | bytes] = []

    def replay(self) -> Matcher:
        other = self.grammar.matcher()
        for step in self.steps:
            assert other.accept_bytes(step) if isinstance(step, bytes) else other.accept_token(step)
        return other

    def is_running(self) -> bool:
        return not self.matcher.is_terminated

    @precondition(is_running)
    @rule()
    def accept_an_allowed_token(self) -> None:
        self.steps.append(random_choice(self.matcher, VOCABULARY, self.pick))
        assert self.matcher.accept_token(self.steps[-1])  # type: ignore[arg-type]

    @precondition(is_running)
    @rule()
    def accept_the_bytes_of_an_allowed_token(self) -> None:
        data = VOCABULARY.token_bytes[random_choice(self.matcher, VOCABULARY, self.pick)]
        self.steps.append(data)
        assert self.matcher.accept_bytes(data)

    @precondition(is_running)
    @rule()
    def follow_the_closing(self) -> None:
        bound, token = self.matcher.min_tokens_to_end, self.matcher.closing_token()
        self.steps.append(token)
        assert self.matcher.accept_token(token)
        assert self.matcher.min_tokens_to_end < bound

    @precondition(is_running)
    @rule()
    def accept_what_is_forced(self) -> None:
        forced = self.matcher.forced_tokens()
        assert self.matcher.forced_bytes().startswith(b"".join(VOCABULARY.token_bytes[token] for token in forced))
        for token in forced:
            self.steps.append(token)
            assert self.matcher.accept_token(token)

    @rule(token=st.integers(-1, EOS + 1))
    def try_any_token(self, token: int) -> None:
        allowed = token in allowed_by_mask(self.matcher, VOCABULARY)
        assert self.matcher.accept_token(token) is allowed
        self.steps += [token] if allowed else []

    @rule(data=st.binary(max_size=3) | st.sampled_from([b'{"a":1', b"[1,1]", b'"', b", "]))
    def try_any_bytes(self, data: bytes) -> None:
        if self.matcher.accept_bytes(data) and self.is_running():
            self.steps.append(data)

    @rule(n=st.integers(0, 8))
    def roll_back(self, n: int) -> None:
        n = min(n, len(self.steps))
        self.matcher.rollback(n)
        del self.steps[len(self.steps) - n :]

    @rule()
    def go_on_with_a_fork(self) -> None:
        before, self.matcher = self.matcher, self.matcher.fork()
        if self.is_running():
            assert before.accept_token(before.closing_token())

    @invariant()
    def it_stands_where_a_new_one_does(self) -> None:
        other = self.replay()
        assert self.matcher.text == other.text
        assert (self.matcher.mask_row().words == other.mask_row().words).all()
        assert self.matcher.is_terminated == other.is_terminated
        assert self.matcher.is_accepting == other.is_accepting
        assert self.matcher.is_complete == other.is_complete
        assert self.matcher.forced_bytes() == other.forced_bytes()
        if self.is_running():
            assert self.matcher.min_tokens_to_end >= 1


MatcherMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25)
TestMatcher = MatcherMachine.TestCase
