"""What each sequence may say next, worked out on a helper thread while the model's forward pass runs.

A choice is a mask row, or the one token that the budget leaves, or nothing to heed (no grammar), or the exception that
this sequence's grammar raised. A sequence that tries drafts has one choice for each of them and one after the last. Where
the forward pass itself finds the greedy tokens (`Greedy`), it is told the mask rows as soon as all are known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Condition, Thread
from typing import cast

import numpy as np

from constrained.decode.advance import must_close
from constrained.decode.mask_kernels import NO_ROWS, UNKNOWN, announce, greedy_rows
from constrained.decode.rows import ALL_TOKENS, RowTable
from constrained.decode.sequence import MaskRowLike, Sequence, ThinkingLike
from constrained.errors import InternalError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Closing:
    """Only the shortest completion is left: its next token."""

    token_id: int


Choice = MaskRowLike | Closing | Exception | None


class Asked:
    """The choices of one step's sequences, in order: None until they are there. `progress` tells of each that comes.

    `greedy` are the rows that the forward pass may judge.
    """

    def __init__(self, sequences: Seq[Sequence], drafts: Seq[Seq[int]], progress: Condition) -> None:
        self.sequences, self.drafts = sequences, drafts
        self.greedy = NO_ROWS
        self.choices: list[list[Choice] | None] = [
            _free_choices(sequence, len(guesses)) if sequence.matcher is None else None
            for sequence, guesses in zip(sequences, drafts, strict=True)
        ]
        self.num_missing = self.choices.count(None)
        self._progress = progress

    def open_slots(self) -> list[int]:
        """Of each row of logits, as far as it is known at once: those of greedy text that may be any."""
        slots = []
        for sequence, guesses, choices in zip(self.sequences, self.drafts, self.choices, strict=True):
            if choices is None or not sequence.is_plain_greedy:
                slots += [UNKNOWN] * (1 + len(guesses))
            else:
                slots += [ALL_TOKENS if choice is None else UNKNOWN for choice in choices]
        return slots

    def wait(self, patience_s: float) -> list[list[Choice] | None]:
        """The choices that are there within `patience_s`; None where they are not. Some always are: nothing stands still."""
        if self.num_missing:
            with self._progress:
                self._progress.wait_for(lambda: not self.num_missing, patience_s)
                self._progress.wait_for(lambda: self.num_missing < len(self.choices))
        return list(self.choices)

    def put(self, index: int, choices: list[Choice]) -> None:
        with self._progress:
            self.choices[index] = choices
            self.num_missing -= 1
            self._progress.notify_all()


class Thinking:
    """The work on one sequence's choices that a step did not wait for."""

    def __init__(self, asked: Asked, index: int, progress: Condition) -> None:
        self._asked, self._index, self._progress = asked, index, progress

    def done(self) -> bool:
        return self._asked.choices[self._index] is not None

    def wait(self) -> None:
        with self._progress:
            self._progress.wait_for(self.done)


class ChoiceWorker:
    """One helper thread. Matchers are not thread-safe: until its choices are there, a sequence's matcher is the thread's."""

    def __init__(self, rows: RowTable) -> None:
        self.busy_ms = 0.0
        self._rows = rows
        self._progress = Condition()
        self._queue: SimpleQueue[Asked | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="constrained-masks", daemon=True)
        self._thread.start()

    def start(self, sequences: Seq[Sequence], drafts: Seq[Seq[int]], *, for_pass: bool = False) -> Asked:
        """Begin with the choices of each sequence, `for_pass` where the forward pass judges rows. None of it raises."""
        asked = Asked(sequences, drafts, self._progress)
        if for_pass:
            asked.greedy = greedy_rows(self._rows.words, np.array(asked.open_slots(), np.int64))
        if asked.num_missing:
            self._queue.put(asked)
        return asked

    def thinking(self, asked: Asked, index: int) -> Thinking:
        return Thinking(asked, index, self._progress)

    def wait_any(self, thinking: Seq[ThinkingLike]) -> None:
        """Return when one of them at least is done."""
        with self._progress:
            self._progress.wait_for(lambda: any(each.done() for each in thinking))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (asked := self._queue.get()) is not None:
            started = time.perf_counter()
            for i, sequence in enumerate(asked.sequences):
                if sequence.matcher is not None:
                    asked.put(i, _choices(sequence, asked.drafts[i]))
            if asked.greedy is not NO_ROWS:
                self._announce(asked)
            self.busy_ms += (time.perf_counter() - started) * 1e3

    def _announce(self, asked: Asked) -> None:
        """Tell the forward pass which rows it may judge. One that it is not told is judged afterwards."""
        rows, index = dict[int, MaskRowLike](), 0
        for sequence, choices in zip(asked.sequences, asked.choices, strict=True):
            for i, choice in enumerate(choices or ()):
                if sequence.is_plain_greedy and _is_row(choice):
                    rows[index + i] = cast(MaskRowLike, choice)
            index += len(choices or ())
        try:
            slots = np.array(self._rows.slots(list(rows.values())), np.int64)
            announce(asked.greedy.slots, np.array(list(rows), np.int64), slots)
        except Exception:
            _log.exception("mask rows could not be put into the table beside the forward pass")


def _is_row(choice: Choice) -> bool:
    return choice is not None and not isinstance(choice, (Closing, Exception))


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
