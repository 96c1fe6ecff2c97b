"""What each sequence may say next, worked out on a helper thread while the model's forward pass runs.

A choice is a mask row, or the one token that the budget leaves, or nothing to heed (no grammar), or the exception that
this sequence's grammar raised.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Seq
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from constrained.decode.sequence import MaskRowLike, Sequence


@dataclass(frozen=True, slots=True)
class Closing:
    """The budget is down to the shortest completion: its next token."""

    token_id: int


Choice = MaskRowLike | Closing | Exception | None


class ChoiceWorker:
    """One helper thread. Matchers are not thread-safe: until the future is done, they are its alone."""

    def __init__(self) -> None:
        self.busy_ms = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="constrained-masks")

    def start(self, sequences: Seq[Sequence]) -> Future[list[Choice]]:
        """The choices of `sequences`, in their order. The future never raises for the sake of one sequence."""
        if any(sequence.matcher is not None for sequence in sequences):
            return self._thread.submit(self._work, sequences)
        done: Future[list[Choice]] = Future()
        done.set_result([None] * len(sequences))
        return done

    def close(self) -> None:
        self._thread.shutdown()

    def _work(self, sequences: Seq[Sequence]) -> list[Choice]:
        started = time.perf_counter()
        choices = [_choice(sequence) for sequence in sequences]
        self.busy_ms += (time.perf_counter() - started) * 1e3
        return choices


def _choice(sequence: Sequence) -> Choice:
    matcher = sequence.matcher
    if matcher is None:
        return None
    try:
        if sequence.tokens_to_end is None:
            sequence.tokens_to_end = matcher.min_tokens_to_end
        if sequence.tokens_to_end >= sequence.remaining:
            return Closing(matcher.closing_token())
        return matcher.mask_row()
    except Exception as error:
        return error
