"""What each sequence may say next, worked out on a helper thread while the model's forward pass runs.

A choice is a mask row, or the one token that the budget leaves, or nothing to heed (no grammar), or the exception that
this sequence's grammar raised. A sequence that tries drafts has one choice for each of them and one after the last.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Seq
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from constrained.decode.advance import must_close
from constrained.decode.sequence import MaskRowLike, Sequence
from constrained.errors import InternalError


@dataclass(frozen=True, slots=True)
class Closing:
    """Only the shortest completion is left: its next token."""

    token_id: int


Choice = MaskRowLike | Closing | Exception | None
Pending = list[Future[list[Choice]]]


class ChoiceWorker:
    """One helper thread. Matchers are not thread-safe: until its future is done, a sequence's matcher is the thread's alone."""

    def __init__(self) -> None:
        self.busy_ms = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="constrained-masks")

    def start(self, sequences: Seq[Sequence], drafts: Seq[Seq[int]]) -> Pending:
        """For each sequence the future of its choices, in order. No future raises."""
        pending: Pending = [Future() for _ in sequences]
        constrained = []
        for sequence, guesses, future in zip(sequences, drafts, pending, strict=True):
            if sequence.matcher is None:
                future.set_result(_free_choices(sequence, len(guesses)))
            else:
                constrained.append((sequence, guesses, future))
        if constrained:
            self._thread.submit(self._work, constrained)
        return pending

    def close(self) -> None:
        self._thread.shutdown()

    def _work(self, asked: Seq[tuple[Sequence, Seq[int], Future[list[Choice]]]]) -> None:
        for sequence, drafts, future in asked:
            started = time.perf_counter()
            choices = _choices(sequence, drafts)
            self.busy_ms += (time.perf_counter() - started) * 1e3
            future.set_result(choices)


def wait_for(pending: Pending, patience_s: float) -> list[list[Choice] | None]:
    """The choices that are there within `patience_s`; None where they are not. Some always are: nothing stands still."""
    if not all(future.done() for future in pending):
        wait(pending, timeout=patience_s)
        if not any(future.done() for future in pending):
            wait(pending, return_when="FIRST_COMPLETED")
    return [future.result() if future.done() else None for future in pending]


def _free_choices(sequence: Sequence, num_drafts: int) -> list[Choice]:
    """The choices of free text: all tokens, but for its end as long as that is held back."""
    num_held = sequence.params.min_tokens - sequence.num_output if sequence.open_row is not None else 0
    return [sequence.open_row if i < num_held else None for i in range(1 + num_drafts)]


def _choices(sequence: Sequence, drafts: Seq[int]) -> list[Choice]:
    """The choice at the present position, then after each draft; the matcher stands where it stood afterwards."""
    matcher, num_accepted = sequence.matcher, 0
    choices: list[Choice] = [_choice(sequence)]
    if matcher is None or not drafts:
        return choices
    try:
        for token in drafts:
            if not matcher.accept_token(token):
                raise InternalError(f"the grammar refuses the draft {token}, which it had allowed")
            num_accepted += 1
            choices.append(matcher.mask_row())
    except Exception as error:
        choices += [error] * (1 + len(drafts) - len(choices))
    if num_accepted:
        matcher.rollback(num_accepted)
    return choices


def _choice(sequence: Sequence) -> Choice:
    matcher = sequence.matcher
    if matcher is None:
        return None
    try:
        return Closing(matcher.closing_token()) if must_close(sequence, matcher) else matcher.mask_row()
    except Exception as error:
        return error
