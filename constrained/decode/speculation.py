"""How tokens are guessed ahead, so that one pass of the model can confirm several of them.

A guess is only taken where it is what the sequence's own draw says at that place: with the same seed the output is the
same token by token with and without speculation, and so is its distribution. (Rejection sampling of a certain guess,
Leviathan et al., arXiv 2211.17192, with the sequence's own uniform numbers.)
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Protocol

from constrained.decode.advance import must_close
from constrained.decode.sequence import Sequence
from constrained.errors import OptionError


@dataclass(frozen=True, slots=True)
class Speculation:
    """Up to `num_tokens` guesses a step while at most `max_batch` sequences decode: beyond, the model has better to do.

    Prompt lookup looks for the last `longest` to `shortest` tokens earlier in prompt and output.
    """

    num_tokens: int = 8
    max_batch: int = 4
    longest: int = 4
    shortest: int = 2

    def __post_init__(self) -> None:
        bounds = {
            "num_tokens": 1 <= self.num_tokens <= 15,
            "max_batch": self.max_batch >= 1,
            "shortest": self.shortest >= 1,
            "longest": self.longest >= self.shortest,
        }
        for name, holds in bounds.items():
            if not holds:
                raise OptionError(f"{getattr(self, name)} is out of range", name)


class Speculator(Protocol):
    """Guesses what follows; what it says is checked against grammar, budget and model."""

    def propose(self, sequences: Seq[Sequence], num_tokens: int) -> list[list[int]]:
        """At most `num_tokens` guesses for each sequence."""

    def forget(self, sequence: Sequence) -> None:
        """The sequence has ended."""

    def close(self) -> None:
        """Give back what it holds."""


class PromptLookup:
    """Guesses that the text goes on as it did where its last tokens stood before (arXiv 2304.04487)."""

    def __init__(self, options: Speculation) -> None:
        self._longest, self._shortest = options.longest, options.shortest
        self._indices: dict[Sequence, _NgramIndex] = {}

    def propose(self, sequences: Seq[Sequence], num_tokens: int) -> list[list[int]]:
        """The newest earlier place that agrees with the longest end."""
        return [self._index(sequence).propose(sequence.tokens, num_tokens) for sequence in sequences]

    def forget(self, sequence: Sequence) -> None:
        self._indices.pop(sequence, None)

    def close(self) -> None:
        self._indices.clear()

    def _index(self, sequence: Sequence) -> _NgramIndex:
        if sequence not in self._indices:
            self._indices[sequence] = _NgramIndex(range(self._longest, self._shortest - 1, -1))
        return self._indices[sequence]


class _NgramIndex:
    """Where each n-gram of one sequence's tokens ends, brought up to date as they grow."""

    def __init__(self, lengths: Seq[int]) -> None:
        self._lengths = lengths
        self._ends: dict[tuple[int, ...], int] = {}
        self._num_seen = 0
        self._last_seen = -1

    def propose(self, tokens: list[int], num_tokens: int) -> list[int]:
        if len(tokens) <= self._num_seen or tokens[self._num_seen - 1] != self._last_seen:
            self._ends, self._num_seen = {}, 0  # the context was replaced
        # The end of the text itself is no place to go on from, so the last token is not entered yet.
        for end in range(self._num_seen + 1, len(tokens)):
            for length in self._lengths:
                if length <= end:
                    self._ends[tuple(tokens[end - length : end])] = end
        self._num_seen = len(tokens) - 1
        self._last_seen = tokens[self._num_seen - 1]
        for length in self._lengths:
            found = self._ends.get(tuple(tokens[-length:])) if length <= len(tokens) else None
            if found is not None:
                return _continued(tokens, found, num_tokens)
        return []


def _continued(tokens: list[int], start: int, num_tokens: int) -> list[int]:
    """The tokens from `start`; past the end, a repetition goes on as it began."""
    period = len(tokens) - start
    return [tokens[start + i % period] for i in range(num_tokens)]


def allowed_drafts(sequence: Sequence, drafts: Seq[int]) -> list[int]:
    """As many of `drafts` as grammar and budget allow one after the other, before the end; the matcher stays where it is."""
    matcher = sequence.matcher
    drafts = drafts[: max(0, sequence.remaining - 1)]
    if matcher is None or not drafts:
        return list(drafts)
    if must_close(sequence, matcher):
        return []
    allowed: list[int] = []
    num_accepted = 0
    try:
        for token in drafts:
            if not matcher.accept_token(token):
                break
            num_accepted += 1
            has_ended = matcher.is_terminated or matcher.is_complete
            if has_ended or matcher.min_tokens_to_end >= sequence.remaining - num_accepted:
                break
            allowed.append(token)
    finally:
        if num_accepted:
            matcher.rollback(num_accepted)
    return allowed
