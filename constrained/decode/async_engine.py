"""The engine's asyncio face: submit, iterate chunks, cancel, pause, steer, close.

Knows event loops and nothing of models. One engine may serve several loops; each step wakes each loop once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Sequence as Seq

from constrained.decode.engine import Engine
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.sequence import GrammarLike, Sequence
from constrained.decode.stats import EngineStats
from constrained.decode.stepper import Delivery
from constrained.errors import InternalError

# Why a sequence is paused; it goes on when no reason is left.
_CALLER, _READER = "caller", "reader"


class Generation:
    """The chunks of one sequence, in order; the last has a `finish_reason`. For one reader, on the loop that submitted.

    A reader that falls behind gets what has piled up as one chunk. Where `max_unread` tokens lie there, the sequence pauses
    until they are taken: it never slows the others.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine) -> None:
        self.loop = loop
        self._engine = engine
        self._pending: list[Chunk] = []
        self._num_unread = 0
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._holds: set[str] = set()
        self._sequence: Sequence | None = None
        self.take: Callable[[Chunk], None] | None = None  # whoever has the chunks pushed

    def start(self, sequence: Sequence) -> None:
        self._sequence = sequence

    def cancel(self) -> None:
        """End before the next step; the slot is free then. Idempotent, from any thread."""
        if self._sequence is not None:
            self._engine.cancel(self._sequence)

    async def pause(self) -> None:
        """Take no more steps until `resume`. On return all chunks so far are there to be read, and nothing is under way."""
        self._holds.add(_CALLER)
        await asyncio.wrap_future(self._engine.pause(self._started))

    def resume(self) -> None:
        self._let_go(_CALLER)

    @property
    def context(self) -> list[int]:
        """All that the model sees at present, prompt and output; exact while paused."""
        return list(self._started.tokens)

    async def steer(self, token_ids: Seq[int]) -> None:
        """Let the model see `token_ids` in place of its context, and go on from the same place in the grammar.

        The output and the budget so far stay; blocks of the KV memory that still hold are found again. Pause first where
        the new context is made from the present one. Raises `ContextLengthError` where the rest would not fit,
        `RequestError` where the sequence has ended.
        """
        await asyncio.wrap_future(self._engine.steer(self._started, token_ids))

    def deliver_to(self, take: Callable[[Chunk], None]) -> None:
        """Have `take` called for each chunk, on the loop that submitted, in place of iteration: no task is woken for it.

        It must neither wait nor raise. What has come before goes first.
        """
        for chunk in self._pending:
            take(chunk)
        self._pending, self._num_unread, self.take = [], 0, take
        self._let_go(_READER)

    def put(self, chunk: Chunk) -> None:
        """Keep a chunk for the iteration."""
        self._pending.append(chunk)
        self._num_unread += len(chunk.token_ids)
        self._arrived.set()
        if self._num_unread > self._engine.options.max_unread and _READER not in self._holds and chunk.finish_reason is None:
            self._holds.add(_READER)
            self._engine.pause(self._started)

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Chunk:
        if self._has_ended:
            raise StopAsyncIteration
        await self._arrived.wait()
        self._arrived.clear()
        chunk = _joined(self._pending)
        self._pending, self._num_unread = [], 0
        self._has_ended = chunk.finish_reason is not None
        self._let_go(_READER)
        return chunk

    def _let_go(self, hold: str) -> None:
        if hold in self._holds:
            self._holds.remove(hold)
            if not self._holds and not self._has_ended:
                self._engine.resume(self._started)

    @property
    def _started(self) -> Sequence:
        if self._sequence is None:
            raise InternalError("the generation has no sequence yet")
        return self._sequence


class AsyncEngine:
    """An `Engine` whose chunks arrive on event loops. Construction checks the model and blocks while it does."""

    def __init__(self, model: ServedModel, options: EngineOptions | None = None) -> None:
        self._engine = Engine(model, _deliver, options)

    def submit(
        self,
        prompt_token_ids: Seq[int],
        params: SamplingParams,
        grammar: GrammarLike | None = None,
        *,
        prefix: bytes = b"",
    ) -> Generation:
        """Queue one sequence; call it where an event loop runs.

        `prefix` is the beginning of the document, where the prompt ends with it; only what comes after it is given out.
        `max_tokens` is clipped to what the context leaves after the prompt. Raises `ContextLengthError`, `BudgetError`,
        `RequestError` (the caller can mend it), `OverloadedError` (the queue is full, or the engine closes) and
        `InternalError` (the engine's thread died).
        """
        generation = Generation(asyncio.get_running_loop(), self._engine)
        generation.start(self._engine.submit(prompt_token_ids, params, grammar, generation, prefix))
        return generation

    @property
    def model(self) -> ServedModel:
        return self._engine.model

    def stats(self) -> EngineStats:
        return self._engine.stats()

    async def close(self) -> None:
        """Stop after the present step; whatever has not ended is cancelled."""
        await asyncio.to_thread(self._engine.close)


def _deliver(delivery: Delivery) -> None:
    """On the engine's thread: one wake-up per loop and step."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[Generation, Chunk]]] = defaultdict(list)
    for sequence, chunk in delivery:
        generation: Generation = sequence.owner
        by_loop[generation.loop].append((generation, chunk))
    for loop, chunks in by_loop.items():
        try:
            loop.call_soon_threadsafe(_hand_over, chunks)
        except RuntimeError:
            # The loop is closed: nobody can read these sequences any more.
            for generation, _ in chunks:
                generation.cancel()


def _hand_over(chunks: list[tuple[Generation, Chunk]]) -> None:
    for generation, chunk in chunks:
        (generation.take or generation.put)(chunk)


def _joined(chunks: list[Chunk]) -> Chunk:
    """Consecutive chunks of one sequence as one."""
    last = chunks[-1]
    if len(chunks) == 1:
        return last
    data = b"".join(chunk.data for chunk in chunks)
    token_ids = tuple(token for chunk in chunks for token in chunk.token_ids)
    logprobs = tuple(entry for chunk in chunks for entry in chunk.logprobs)
    return Chunk(data, token_ids, last.finish_reason, last.error, last.usage, logprobs, last.stop_string)
