"""What callers may do to a running sequence between two steps: pause it, resume it, change what the model sees."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from concurrent.futures import Future

from constrained.decode.scheduler import Scheduler
from constrained.decode.sequence import Sequence
from constrained.errors import ContextLengthError, RequestError


class Command:
    """An action for the engine's thread; `future` tells that it is done, or why it was refused."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self.future: Future[None] = Future()

    def run(self) -> None:
        try:
            self._action()
        except Exception as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(None)

    def refuse(self, error: Exception) -> None:
        self.future.set_exception(error)


class Steering:
    """Runs on the engine's thread, between two steps. `max_len` bounds the tokens of one sequence."""

    def __init__(self, scheduler: Scheduler, max_len: int) -> None:
        self._scheduler = scheduler
        self._max_len = max_len

    def pause(self, sequence: Sequence) -> None:
        self._scheduler.pause(sequence)

    def resume(self, sequence: Sequence) -> None:
        self._scheduler.resume(sequence)

    def steer(self, sequence: Sequence, token_ids: Seq[int]) -> None:
        if sequence.finish_reason is not None:
            raise RequestError("the sequence has ended: nothing is left to steer", "context")
        if not token_ids:
            raise RequestError("the context holds no token", "context")
        if sequence.thinking is not None:
            sequence.thinking.wait()
        room, needed = self._max_len - len(token_ids), sequence.tokens_to_end or 1
        if room < needed:
            raise ContextLengthError(
                f"the context has {len(token_ids)} tokens, at most {self._max_len} fit: it leaves {room}, {needed} are needed",
                "context",
            )
        sequence.usage.prompt_tokens = max(sequence.usage.prompt_tokens, len(token_ids) - sequence.num_output)
        sequence.max_tokens = min(sequence.max_tokens, sequence.num_output + room)
        if sequence.shaper is not None:
            sequence.shaper.see(token_ids)
        self._scheduler.replace(sequence, list(token_ids))
