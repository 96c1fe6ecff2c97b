"""`Matcher`: the position of one sequence in a grammar.

A matcher is cheap: it holds the bytes accepted so far and the states that they led to. It is not safe between threads;
what it shares with other matchers of the same grammar is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.automaton import State
from constrained.errors import InternalError
from constrained.tokens.greedy import greedy_tokens
from constrained.tokens.rows import MaskRow

if TYPE_CHECKING:
    from constrained.compiled import Engine

MAX_FORCED_BYTES = 4096


class Matcher:
    """One sequence's position in a grammar; made by `CompiledGrammar.matcher`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._state: State = engine.automaton.initial
        self._history = bytearray()
        # What each accept found: the state, and the number of bytes; for rollback.
        self._past: list[tuple[State, int]] = []
        self.is_terminated = False

    # -- masks

    def fill_bitmask(self, bitmask: NDArray[np.int32], row: int) -> None:
        """Write the allowed tokens into `bitmask[row]`, int32 [batch, ceil(vocab_size / 32)].

        EOS bits are set where the document may end.
        """
        bitmask[row] = self.mask_row().words

    def mask_row(self) -> MaskRow:
        """The allowed tokens as a shared, read-only row with an id (see `MaskRow`)."""
        if self.is_terminated:
            return self._engine.nothing
        return self._state.row or self._engine.masks.row(self._state, self._history)

    # -- accepting

    def accept_token(self, token_id: int) -> bool:
        """Go on with one token; False, and nothing changed, where it is not allowed. EOS ends the document."""
        if self.is_terminated:
            return False
        after = self._state.next.get(token_id)
        if after is None:
            if token_id in self._engine.eos_token_ids:
                return self._terminate()
            after = self._advance_token(token_id)
            if after is None:
                return False
        data = self._engine.token_bytes[token_id]
        self._past.append((self._state, len(data)))
        self._state = after
        self._history += data
        return True

    def _advance_token(self, token_id: int) -> State | None:
        if not 0 <= token_id < len(self._engine.token_bytes):
            return None
        data = self._engine.token_bytes[token_id]
        if not data:
            return None
        after, depends = self._engine.automaton.advance(self._state, data, self._history)
        if after is not None and not depends:
            self._state.next[token_id] = after
        return after

    def _terminate(self) -> bool:
        if not self._state.is_accepting:
            return False
        self._past.append((self._state, 0))
        self.is_terminated = True
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Go on with all of `data` as one step; False, and nothing changed, where it is not allowed."""
        if self.is_terminated:
            return not data
        if data:
            after, _ = self._engine.automaton.advance(self._state, data, self._history)
            if after is None:
                return False
            self._past.append((self._state, len(data)))
            self._state = after
            self._history += data
        else:
            self._past.append((self._state, 0))
        return True

    def rollback(self, n: int) -> None:
        """Undo the last `n` accepts. Raises `ValueError` where there were fewer."""
        if not 0 <= n <= len(self._past):
            raise ValueError(f"cannot undo {n} accepts: there were {len(self._past)}")
        for _ in range(n):
            self._state, length = self._past.pop()
            del self._history[len(self._history) - length :]
            self.is_terminated = False

    def fork(self) -> Matcher:
        """An independent matcher at the same position, with the same past."""
        twin = Matcher(self._engine)
        twin._state = self._state
        twin._history = bytearray(self._history)
        twin._past = list(self._past)
        twin.is_terminated = self.is_terminated
        return twin

    # -- where it stands

    @property
    def is_accepting(self) -> bool:
        """Whether the document may end here."""
        return self._state.is_accepting

    @property
    def is_complete(self) -> bool:
        """Whether the document may end here and nothing but its end can follow."""
        state = self._state
        if state.is_complete is None:
            state.is_complete = state.is_accepting and not self._engine.masks.next_bytes(state, self._history)
        return state.is_complete

    @property
    def text(self) -> bytes:
        """All bytes accepted so far."""
        return bytes(self._history)

    def forced_bytes(self) -> bytes:
        """The longest run of bytes that every completion begins with (at most `MAX_FORCED_BYTES`)."""
        state, found = self._state, bytearray()
        while not state.is_accepting and len(found) < MAX_FORCED_BYTES and not self.is_terminated:
            history = self._history + found
            options = self._engine.masks.next_bytes(state, history)
            if len(options) != 1:
                break
            after, _ = self._engine.automaton.advance(state, bytes(options), history)
            if after is None:
                raise InternalError(f"the only byte that may follow, {options[0]:#04x}, may not follow")
            found += bytes(options)
            state = after
        return bytes(found)

    # -- ending

    @property
    def min_tokens_to_end(self) -> int:
        """An upper bound of the tokens of a shortest completion, EOS included; 0 once terminated."""
        if self.is_terminated:
            return 0
        state = self._state
        if state.tokens_to_end is not None:
            return state.tokens_to_end
        num_tokens = len(greedy_tokens(self._engine.trie, self._closing())) + 1
        if state.closing is not None:  # then it does not depend on what led here
            state.tokens_to_end = num_tokens
        return num_tokens

    def closing_token(self) -> int:
        """The next token of a shortest completion; an EOS token where the document is complete."""
        closing = self._closing()
        return greedy_tokens(self._engine.trie, closing)[0] if closing else min(self._engine.eos_token_ids)

    def _closing(self) -> bytes:
        return self._engine.closings.of(self._state, self._history)
