"""The engine's asyncio face: submit, iterate chunks, cancel, close.

Knows event loops and nothing of models. One engine may serve several loops; each step wakes each loop once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence as Seq

from constrained.decode.engine import Delivery, Engine
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.sequence import GrammarLike, Sequence
from constrained.decode.stats import EngineStats


class Generation:
    """The chunks of one sequence, in order; the last has a `finish_reason`. For one reader, on the loop that submitted.

    A reader that falls behind gets what has piled up as one chunk; it never slows the batch.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._pending: list[Chunk] = []
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._sequence: Sequence | None = None

    def start(self, sequence: Sequence) -> None:
        self._sequence = sequence

    def cancel(self) -> None:
        """End before the next step; the slot is free then. Idempotent, from any thread."""
        if self._sequence is not None:
            self._sequence.is_cancelled = True

    def put(self, chunk: Chunk) -> None:
        self._pending.append(chunk)
        self._arrived.set()

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Chunk:
        if self._has_ended:
            raise StopAsyncIteration
        await self._arrived.wait()
        self._arrived.clear()
        chunk = _joined(self._pending)
        self._pending = []
        self._has_ended = chunk.finish_reason is not None
        return chunk


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
        generation = Generation(asyncio.get_running_loop())
        generation.start(self._engine.submit(prompt_token_ids, params, grammar, generation, prefix))
        return generation

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
        generation.put(chunk)


def _joined(chunks: list[Chunk]) -> Chunk:
    """Consecutive chunks of one sequence as one."""
    last = chunks[-1]
    if len(chunks) == 1:
        return last
    data = b"".join(chunk.data for chunk in chunks)
    token_ids = tuple(token for chunk in chunks for token in chunk.token_ids)
    return Chunk(data, token_ids, last.finish_reason, last.error, last.usage)
