"""Going on with a run in another way: the user says something more, or corrects a value that is final.

Either way each sequence ends before its next step, and another begins with the document so far: its tokens follow the prompt,
its bytes are accepted by the grammar, and what was told stays told. What can be refused is refused before anything ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from api.backend import Backend, Messages
from api.edits import check_path, edited_text
from api.recording import LiveRun
from api.runs import Successor
from api.seeds import varied
from constrained.decode.request import SamplingParams
from constrained.errors import ConstrainedError, EndedRunError, RequestError
from constrained.stream import DeltaStream, Op

if TYPE_CHECKING:
    from api.service import Job

SEED_STRIDE = 1_000_003
"""How far apart the seeds of a choice's sequences lie, so that no two choices meet."""


class Steering:
    """Steers one run. One command at a time; the others wait."""

    def __init__(self, backend: Backend, live: LiveRun) -> None:
        self._backend = backend
        self._live = live

    async def steer(self, text: str, choice: int | None = None) -> int:
        """Let `text` join the conversation; the last operation told before it."""
        async with self._live.lock:
            choices = self._going_on(choice)
            job = replace(self._live.job, prompt=await self._prompt_with(text))
            await asyncio.gather(*(self._live.run.take_over(each, self._going_on_with(each, job)) for each in choices))
            self._live.job = job
            self._live.recorder.settle()
            return self._live.feed.seq

    async def edit(self, path: str, value: Any, choice: int = 0) -> int:
        """Correct the value at `path`; the operation that says so."""
        async with self._live.lock:
            self._going_on(choice)
            check_path(self._live.feed.fold_of(choice), path)
            text = bytes(self._live.run.outcomes[choice].text)
            await asyncio.to_thread(edited_text, self._live.grammar, text, path, value)
            told: list[int] = []
            refused: list[ConstrainedError] = []
            await self._live.run.take_over(choice, self._editing(choice, path, value, told, refused))
            if refused:
                raise refused[0]
            return told[0]

    def _going_on(self, choice: int | None) -> list[int]:
        """The choices that are meant and have not ended."""
        outcomes = self._live.run.outcomes
        if choice is not None and choice >= len(outcomes):
            raise RequestError(f"The run has {len(outcomes)} choices, counted from 0; {choice} was asked for", "choice")
        meant = range(len(outcomes)) if choice is None else [choice]
        choices = [each for each in meant if outcomes[each].finish_reason is None]
        if not choices:
            raise EndedRunError("The run has ended; what is said now reaches nobody", "run")
        return choices

    async def _prompt_with(self, text: str) -> Messages | str:
        """The prompt with one more user turn; where the chat template takes no two in a row, at the end of the last one."""
        prompt = self._live.job.prompt
        if isinstance(prompt, str):
            return f"{prompt}\n\n{text}"
        turns = [*prompt, {"role": "user", "content": text}]
        try:
            await asyncio.to_thread(self._backend.encode, turns, self._live.job.told, b"", self._live.job.telling)
        except RequestError:
            if prompt[-1]["role"] != "user":
                raise
            return [*prompt[:-1], {"role": "user", "content": f"{prompt[-1]['content']}\n\n{text}"}]
        return turns

    def _going_on_with(self, choice: int, job: Job) -> Callable[[bytes], Awaitable[Successor[Op]]]:
        async def succeed(text: bytes) -> Successor[Op]:
            return await self._successor(choice, job, text)

        return succeed

    def _editing(
        self, choice: int, path: str, value: Any, told: list[int], refused: list[ConstrainedError]
    ) -> Callable[[bytes], Awaitable[Successor[Op]]]:
        """The document may have grown since the edit was checked; where it no longer fits, the run goes on without it."""

        async def succeed(text: bytes) -> Successor[Op]:
            try:
                edited = await asyncio.to_thread(edited_text, self._live.grammar, text, path, value)
                translator = await asyncio.to_thread(self._reread, edited)
                following = await self._successor(choice, self._live.job, edited)
            except ConstrainedError as error:
                refused.append(error)
                return await self._successor(choice, self._live.job, text)
            self._live.recorder.tell_edit(choice, path, translator)
            told.append(self._live.feed.seq)
            return Successor(following.generation, edited, translator)

        return succeed

    def _reread(self, text: bytes) -> DeltaStream:
        stream = DeltaStream(self._live.grammar.root)
        stream.feed(text)
        return stream

    async def _successor(self, choice: int, job: Job, text: bytes) -> Successor[Op]:
        """The generation that goes on behind `text`."""
        prompt_token_ids = await asyncio.to_thread(self._backend.encode, job.prompt, job.told, text, job.telling)
        params = self._params(choice, job)
        return Successor(self._backend.submit(prompt_token_ids, params, self._live.grammar, prefix=text))

    def _params(self, choice: int, job: Job) -> SamplingParams:
        """What is left of the budget, and a seed that draws anew."""
        spent = self._live.run.outcomes[choice].usage.completion_tokens
        return replace(
            job.params,
            max_tokens=max(1, job.params.max_tokens - spent),
            seed=varied(job.params.seed, choice + SEED_STRIDE * spent),
        )
