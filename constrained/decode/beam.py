"""Beam search: the n likeliest whole outputs that a search of a given width finds, for callers that need no stream.

Runs above the engine: every hypothesis is a sequence of one token that asks for the likeliest next ones, and the prefix
cache lets the hypotheses share all that they have in common. Scores are log-probabilities under the grammar's masks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any, Protocol

from constrained.decode.async_engine import AsyncEngine
from constrained.decode.request import MOST_TOP_LOGPROBS, FinishReason, SamplingParams
from constrained.decode.sequence import MaskRowLike, MatcherLike
from constrained.errors import BudgetError, RequestError


class ForkableMatcher(MatcherLike, Protocol):
    """A matcher of which several hypotheses can go on."""

    def fork(self) -> ForkableMatcher: ...


class ForkableGrammar(Protocol):
    """A compiled grammar whose matchers fork."""

    @property
    def vocabulary(self) -> Any: ...

    @property
    def min_tokens(self) -> int: ...

    def matcher(self) -> ForkableMatcher: ...


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens, the sum of their log-probabilities, how it ended, and its rank's `score`."""

    token_ids: tuple[int, ...]
    data: bytes
    logprob: float
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class _Beam:
    token_ids: tuple[int, ...]
    logprob: float
    matcher: ForkableMatcher | None


class _Look:
    """A place in a grammar from which only the next token is asked for: no budget, nothing forced, no end."""

    is_complete = False
    is_terminated = False
    min_tokens_to_end = 0

    def __init__(self, at: ForkableMatcher) -> None:
        self._at = at

    def mask_row(self) -> MaskRowLike:
        return self._at.mask_row()

    def accept_token(self, token_id: int, /) -> bool:
        return True

    def accept_bytes(self, data: bytes, /) -> bool:
        """A look begins where it is."""
        return not data

    def rollback(self, n: int, /) -> None:
        """Nothing was accepted."""

    def closing_token(self) -> int:
        return self._at.closing_token()

    def forced_tokens(self) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class _Place:
    """A place within a grammar, as a grammar."""

    vocabulary: Any
    at: ForkableMatcher
    min_tokens: int = 1

    def matcher(self) -> MatcherLike:
        return _Look(self.at)


async def beam_search(
    engine: AsyncEngine,
    prompt_token_ids: Seq[int],
    grammar: ForkableGrammar | None = None,
    *,
    width: int = 4,
    n: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """The `n` best of the outputs found, best first: sum of log-probabilities divided by length ** `length_penalty`.

    Under a grammar every output is a whole document within `max_tokens`; free text that reaches `max_tokens` is cut.
    Raises `RequestError` for a width or `n` that cannot be, `BudgetError`, and what `AsyncEngine.submit` raises.
    """
    if not 1 <= width <= MOST_TOP_LOGPROBS // 2:
        raise RequestError(f"width is {width}; from 1 to {MOST_TOP_LOGPROBS // 2} is possible", "width")
    if not 1 <= n <= width:
        raise RequestError(f"n is {n}; from 1 to the width, {width}, is possible", "n")
    if grammar is not None and max_tokens < grammar.min_tokens:
        raise BudgetError(f"max_tokens is {max_tokens}, the smallest document may take {grammar.min_tokens}", "max_tokens")
    search = _Search(engine, list(prompt_token_ids), grammar, width, max_tokens, length_penalty)
    return (await search.run())[:n]


class _Search:
    def __init__(
        self,
        engine: AsyncEngine,
        prompt: list[int],
        grammar: ForkableGrammar | None,
        width: int,
        max_tokens: int,
        length_penalty: float,
    ) -> None:
        self._engine, self._prompt, self._grammar = engine, prompt, grammar
        self._width, self._max_tokens, self._length_penalty = width, max_tokens, length_penalty
        self._done: list[Hypothesis] = []

    async def run(self) -> list[Hypothesis]:
        beams = [_Beam((), 0.0, None if self._grammar is None else self._grammar.matcher())]
        while beams:
            grown = [beam for more in await asyncio.gather(*map(self._grow, beams)) for beam in more]
            grown.sort(key=lambda beam: beam.logprob, reverse=True)
            beams = []
            for beam in grown:
                if len(beams) == self._width:
                    break
                if not self._is_done(beam):
                    beams.append(beam)
            self._done.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
            if len(self._done) >= self._width and (not beams or self._done[self._width - 1].score >= self._best_of(beams)):
                break
        return self._done

    async def _grow(self, beam: _Beam) -> list[_Beam]:
        """The likeliest ways to go on by one token that the budget allows."""
        top = await self._likeliest(beam)
        beams = [after for token, logprob in top if (after := self._after(beam, token, logprob)) is not None]
        if not beams and beam.matcher is not None:
            # None of them leaves room for the end of the document. What closes it is no likelier than the last of them.
            closing = self._after(beam, beam.matcher.closing_token(), top[-1][1])
            beams = [closing] if closing is not None else []
        return beams

    def _after(self, beam: _Beam, token: int, logprob: float) -> _Beam | None:
        matcher = None if beam.matcher is None else beam.matcher.fork()
        if matcher is not None and not (matcher.accept_token(token) and _fits(matcher, self._left(beam) - 1)):
            return None
        return _Beam((*beam.token_ids, token), beam.logprob + logprob, matcher)

    async def _likeliest(self, beam: _Beam) -> tuple[tuple[int, float], ...]:
        grammar = None
        if beam.matcher is not None and self._grammar is not None:
            grammar = _Place(self._grammar.vocabulary, beam.matcher)
        params = SamplingParams(temperature=0, max_tokens=1, logprobs=2 * self._width)
        generation = self._engine.submit([*self._prompt, *beam.token_ids], params, grammar)
        chunks = [chunk async for chunk in generation]
        if chunks[-1].error is not None:
            raise chunks[-1].error
        return chunks[0].logprobs[0].top

    def _left(self, beam: _Beam) -> int:
        return self._max_tokens - len(beam.token_ids)

    def _is_done(self, beam: _Beam) -> bool:
        """Whether the beam has ended; it is kept as an output then."""
        ends = self._engine.model.eos_token_ids
        matcher, last = beam.matcher, beam.token_ids[-1]
        has_ended = last in ends if matcher is None else matcher.is_terminated or matcher.is_complete
        if not has_ended and len(beam.token_ids) < self._max_tokens:
            return False
        texts = self._engine.model.vocabulary.token_bytes
        data = b"".join(texts[token] for token in beam.token_ids if token not in ends)
        reason: FinishReason = "stop" if has_ended else "length"
        self._done.append(Hypothesis(beam.token_ids, data, beam.logprob, self._score(beam), reason))
        return True

    def _best_of(self, beams: list[_Beam]) -> float:
        """The best that any of these could still score: a log-probability only falls, the longest output divides it by most."""
        return max(self._scored(beam.logprob, max(len(beam.token_ids), self._longest)) for beam in beams)

    def _score(self, beam: _Beam) -> float:
        return self._scored(beam.logprob, len(beam.token_ids))

    def _scored(self, logprob: float, length: int) -> float:
        return float(logprob / length**self._length_penalty)

    @property
    def _longest(self) -> int:
        return self._max_tokens if self._length_penalty > 0 else 0


def _fits(matcher: MatcherLike, remaining: int) -> bool:
    return matcher.is_terminated or matcher.is_complete or matcher.min_tokens_to_end <= remaining
