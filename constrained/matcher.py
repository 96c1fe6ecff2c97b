"""`Matcher`: the position of one sequence in a grammar.

A matcher is cheap: it holds the steps accepted so far and the states that they led to. It is not safe between threads;
what it shares with other matchers of the same grammar is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.automaton import Run, State
from constrained.tokens.fewest import Spelling, spell, tokens_along
from constrained.tokens.rows import MaskRow, set_bits

if TYPE_CHECKING:
    from constrained.compiled import Engine
    from constrained.tokens.vocabulary import Vocabulary

MAX_NEXT = 4096  # tokens that one state remembers


class Matcher:
    """One sequence's position in a grammar; made by `CompiledGrammar.matcher`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._state: State = engine.automaton.initial
        # What each accept found and added, for rollback; the history is written out when it is asked for.
        self._states: list[State] = []
        self._steps: list[bytes] = []
        self._written = bytearray()
        self._num_written = 0
        # The closing that is being followed, and where in the history it begins.
        self._plan: tuple[int, Spelling] | None = None
        self._is_terminated = False
        # Set while the matcher is in a `BatchMatcher`: has it hand over what it did, before anything else is done here.
        self.give_back: Callable[[], None] | None = None

    # -- masks

    def fill_bitmask(self, bitmask: NDArray[np.int32], row: int) -> None:
        """Write the allowed tokens into `bitmask[row]`, int32 [batch, ceil(vocab_size / 32)].

        EOS bits are set where the document may end. Raises `ValueError` where the words are not as many,
        `IndexError` where there is no such row.
        """
        if self.give_back is not None:
            self.give_back()
        state = self._state
        if state.row is None and not self._is_terminated and self._engine.masks.fill(state, bitmask, row):
            return
        self.mask_row().fill(bitmask, row)

    def mask_row(self) -> MaskRow:
        """The allowed tokens as a shared, read-only row with an id (see `MaskRow`)."""
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return self._engine.nothing
        return self._state.row or self._engine.masks.row(self._state, self._history())

    # -- accepting

    def accept_token(self, token_id: int) -> bool:
        """Go on with one token; False, and nothing changed, where it is not allowed. EOS ends the document."""
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return False
        before, engine = self._state, self._engine
        after = before.next.get(token_id)
        if after is None:
            if before.keeps_text and 0 <= token_id < len(engine.num_characters) and engine.num_characters[token_id]:
                after = before
            elif token_id in engine.eos_token_ids:
                return self._terminate()
            else:
                after = self._advance_token(token_id)
                if after is None:
                    return False
        self._states.append(before)
        self._steps.append(engine.token_bytes[token_id])
        self._state = after
        return True

    def _advance_token(self, token_id: int) -> State | None:
        if not 0 <= token_id < len(self._engine.token_bytes):
            return None
        automaton, depends = self._engine.automaton, False
        after = automaton.step_token(self._state, token_id, self._engine.tables_at)
        if after is None:
            data = self._engine.token_bytes[token_id]
            if not data:
                return None
            after, depends = automaton.advance(self._state, data, self._history())
        if after is not None and not depends:
            if len(self._state.next) >= MAX_NEXT:
                self._state.next.clear()
            self._state.next[token_id] = after
        return after

    def _terminate(self) -> bool:
        if not self._state.is_accepting:
            return False
        self._move(self._state, b"")
        self._is_terminated = True
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Go on with all of `data` as one step; False, and nothing changed, where it is not allowed."""
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return not data
        after: State | None = self._state
        if data:
            after, _ = self._engine.automaton.advance(self._state, data, self._history())
            if after is None:
                return False
        self._move(after or self._state, data)
        return True

    def _move(self, after: State, data: bytes) -> None:
        self._states.append(self._state)
        self._steps.append(data)
        self._state = after

    def rollback(self, n: int) -> None:
        """Undo the last `n` accepts. Raises `ValueError` where there were fewer."""
        if self.give_back is not None:
            self.give_back()
        left = len(self._states) - n
        if not 0 <= left <= len(self._states):
            raise ValueError(f"cannot undo {n} accepts: there were {len(self._states)}")
        if n == 0:
            return
        if left < self._num_written:
            undone = sum(map(len, self._steps[left : self._num_written]))
            del self._written[len(self._written) - undone :]
            self._num_written = left
            if self._plan is not None and len(self._written) < self._plan[0]:
                self._plan = None
        self._state = self._states[left]
        del self._states[left:], self._steps[left:]
        self._is_terminated = False

    def fork(self) -> Matcher:
        """An independent matcher at the same position, with the same past."""
        if self.give_back is not None:
            self.give_back()
        twin = Matcher(self._engine)
        twin._state = self._state
        twin._states, twin._steps = list(self._states), list(self._steps)
        twin._written, twin._num_written = bytearray(self._written), self._num_written
        twin._plan = self._plan
        twin._is_terminated = self._is_terminated
        return twin

    # -- where it stands

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that the matcher's tokens are of."""
        return self._engine.vocabulary

    @property
    def is_terminated(self) -> bool:
        """Whether the document was ended by an EOS token."""
        if self.give_back is not None:
            self.give_back()
        return self._is_terminated

    @property
    def is_accepting(self) -> bool:
        """Whether the document may end here."""
        if self.give_back is not None:
            self.give_back()
        return self._state.is_accepting

    @property
    def is_complete(self) -> bool:
        """Whether the document may end here and nothing but its end can follow."""
        if self.give_back is not None:
            self.give_back()
        state = self._state
        if state.is_complete is None:
            state.is_complete = state.is_accepting and not self._engine.masks.next_bytes(state, self._history())
        return state.is_complete

    @property
    def text(self) -> bytes:
        """All bytes accepted so far."""
        if self.give_back is not None:
            self.give_back()
        return bytes(self._history())

    def _history(self) -> bytearray:
        if self._num_written < len(self._steps):
            self._written += b"".join(self._steps[self._num_written :])
            self._num_written = len(self._steps)
        return self._written

    # -- what is forced

    def forced_bytes(self) -> bytes:
        """The longest run of bytes that every completion begins with (at most `automaton.forced.MAX_BYTES`)."""
        if self.give_back is not None:
            self.give_back()
        return b"" if self._is_terminated else self._forced().data

    def forced_tokens(self) -> list[int]:
        """The first tokens of `forced_bytes` as the vocabulary's tokenizer spells them, as far as they hold whatever follows.

        Each may be accepted in turn. Empty where nothing is forced, or where all of it may be spelled otherwise with what
        comes behind; see `tokens.speller` for what that rests on.
        """
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return []
        state = self._state
        if state.forced_tokens is not None:
            return list(state.forced_tokens)
        run = self._forced()
        tokens = self._engine.speller.stable_tokens(run.data, run.following) if run.data else []
        if run.is_settled:
            state.forced_tokens = tuple(tokens)
        return tokens

    def _forced(self) -> Run:
        run = self._state.forced
        if run is None:
            run = self._engine.forced_run(self._state, self._history())
            if run.is_settled:
                self._state.forced = run
        return run

    # -- ending

    @property
    def min_tokens_to_end(self) -> int:
        """An upper bound of the tokens of a shortest completion, EOS included; 0 once terminated.

        Each token of a planned closing (`closing_token`, `closing_row`) makes it smaller by one at least.
        """
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return 0
        state = self._state
        if self._plan is None and state.tokens_to_end is not None:
            return state.tokens_to_end
        planned = self._planned()
        if planned is not None:
            spelling, position = planned
            return int(spelling.counts[position]) + 1
        if state.tokens_to_end is not None:
            return state.tokens_to_end
        num_tokens = spell(self._engine.trie, self._closing()).num_tokens + 1
        if state.closing is not None:  # then it does not depend on what led here
            state.tokens_to_end = num_tokens
        return num_tokens

    def closing_token(self) -> int:
        """The next token of a shortest completion; an EOS token where the document is complete.

        The completion is planned once and kept while tokens go along with it, also after other tokens were rolled back.
        """
        if self.give_back is not None:
            self.give_back()
        spelling, position = self._ending()
        return int(spelling.best[position]) if position < len(spelling.data) else min(self._engine.eos_token_ids)

    def closing_row(self, budget: int | None = None) -> MaskRow:
        """The tokens that go along with the planned completion so that it ends within `budget` tokens, EOS included.

        By default the budget is `min_tokens_to_end`. EOS bits are set where the document may end. Raises `ValueError` for a
        budget that is smaller.
        """
        if self.give_back is not None:
            self.give_back()
        if self._is_terminated:
            return self._engine.nothing
        spelling, position = self._ending()
        needed = int(spelling.counts[position]) + 1
        budget = needed if budget is None else budget
        if budget < needed:
            raise ValueError(f"the document cannot be ended within {budget} tokens: it takes {needed}")
        words = np.zeros(len(self._engine.nothing.words), np.uint32)
        set_bits(words, tokens_along(self._engine.trie, spelling, position, budget - 1))
        if self._state.is_accepting:
            set_bits(words, np.array(sorted(self._engine.eos_token_ids), np.int32))
        return self._engine.store.intern(words)

    def fill_closing_bitmask(self, bitmask: NDArray[np.int32], row: int, budget: int | None = None) -> None:
        """Write `closing_row(budget)` into `bitmask[row]`."""
        self.closing_row(budget).fill(bitmask, row)

    def _planned(self) -> tuple[Spelling, int] | None:
        """The plan and the place in it, where it was made on the way here and followed since."""
        if self._plan is None:
            return None
        begun, spelling = self._plan
        since = self._history()[begun:]
        return (spelling, len(since)) if spelling.data.startswith(since) else None

    def _ending(self) -> tuple[Spelling, int]:
        planned = self._planned()
        if planned is not None:
            return planned
        spelling = spell(self._engine.trie, self._closing())
        self._plan = len(self._history()), spelling
        return spelling, 0

    def _closing(self) -> bytes:
        return self._engine.closings.of(self._state, self._history())

    # -- what `BatchMatcher` needs; none of it makes the batch hand over

    @property
    def state(self) -> State:
        """The present state."""
        return self._state

    @property
    def open_key(self) -> bytes | None:
        """What the future may depend on beside the state (`Automaton.open_key`)."""
        return self._engine.automaton.open_key(self._state, self._history())

    @property
    def is_apart(self) -> bool:
        """Whether more than state and open key decides what may follow (`Automaton.awaits_item`)."""
        return self._engine.automaton.awaits_item(self._state)

    @property
    def is_final(self) -> bool:
        """`is_terminated`, as far as the matcher itself went."""
        return self._is_terminated

    @property
    def has_plan(self) -> bool:
        """Whether a closing was planned, so that `min_tokens_to_end` may be less than the state's."""
        return self._plan is not None

    def catch_up(self, states: Sequence[State], token_ids: Sequence[int], *, is_final: bool) -> None:
        """Take over accepts that were made elsewhere; `states` are those on the way, from the present one to the new one."""
        self._states += states[:-1]
        self._steps += [self._engine.token_bytes[token] for token in token_ids]
        self._state = states[-1]
        self._is_terminated = is_final
