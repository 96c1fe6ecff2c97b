"""The decoding loop: one thread that schedules, computes, samples and delivers, step by step.

Knows nothing of asyncio or HTTP. Other threads only submit, cancel, pause, steer, ask for stats and close; what they want
of a sequence is done between two steps.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Seq
from concurrent.futures import Future
from time import perf_counter
from typing import Any

from constrained.decode.admission import admit
from constrained.decode.blocks import BlockManager
from constrained.decode.draft_model import DraftModel
from constrained.decode.options import EngineOptions, ServedModel
from constrained.decode.preparation import prepare
from constrained.decode.request import SamplingParams
from constrained.decode.runner import ModelRunner
from constrained.decode.scheduler import Scheduler, Work
from constrained.decode.sequence import GrammarLike, Sequence
from constrained.decode.speculation import PromptLookup, Speculation, Speculator, allowed_drafts
from constrained.decode.stats import EngineStats
from constrained.decode.steering import Command, Steering
from constrained.decode.stepper import Delivery, Stepper
from constrained.errors import InternalError, OverloadedError

_log = logging.getLogger(__name__)


class Engine:
    """`deliver` is called on the engine's thread, once per step, with every chunk of that step."""

    def __init__(self, model: ServedModel, deliver: Callable[[Delivery], None], options: EngineOptions | None = None) -> None:
        self.model = model
        self.options = options or EngineOptions()
        limits = self.options.limits
        self._runner = ModelRunner(model.hf, model.name, self.options.kv_bytes, limits.max_running * model.context_len)
        prepare(self._runner, self.options, model.context_len)
        self._blocks = BlockManager(self._runner.num_blocks, self._runner.block_len, self.options.prefix_caching)
        self.max_len = min(model.context_len, self._blocks.capacity, self._runner.max_positions or model.context_len)
        self._scheduler = Scheduler(self._blocks, limits)
        self._stepper = Stepper(model, self.options, self._runner, self._scheduler)
        self._steering = Steering(self._scheduler, self.max_len)
        self._speculator = self._make_speculator()
        self._deliver = deliver
        self._inbox: deque[Sequence] = deque()
        self._commands: deque[Command] = deque()
        self._wake = threading.Condition()
        self._is_closing = False
        self._death: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="constrained-engine", daemon=True)
        self._thread.start()

    def submit(
        self,
        prompt_token_ids: Seq[int],
        params: SamplingParams,
        grammar: GrammarLike | None = None,
        owner: Any = None,
        prefix: bytes = b"",
    ) -> Sequence:
        """Queue one sequence; see `admit` for what is refused. Raises `OverloadedError` where the queue is full."""
        sequence = admit(self.model, self.max_len, prompt_token_ids, params, grammar, owner, prefix)
        with self._wake:
            self._check_open()
            self._inbox.append(sequence)
            self._wake.notify()
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """The sequence ends before the next step, unless it has ended already."""
        sequence.is_cancelled = True
        with self._wake:
            self._wake.notify()

    def pause(self, sequence: Sequence) -> Future[None]:
        """Take no more steps for it until `resume`; its slot is free then, its blocks stay known while memory allows."""
        return self._command(lambda: self._steering.pause(sequence))

    def resume(self, sequence: Sequence) -> Future[None]:
        return self._command(lambda: self._steering.resume(sequence))

    def steer(self, sequence: Sequence, token_ids: Seq[int]) -> Future[None]:
        """Let it go on after `token_ids` in place of all that the model saw so far, from the same place in its grammar.

        The budget and the output so far stay. The future raises `ContextLengthError` where the rest of the document would
        not fit, `RequestError` where the sequence has ended.
        """
        return self._command(lambda: self._steering.steer(sequence, token_ids))

    def close(self) -> None:
        """Stop after the present step; what has not ended is cancelled. Idempotent; waits for the thread."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def stats(self) -> EngineStats:
        stepper, scheduler = self._stepper, self._scheduler
        return EngineStats(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting) + len(self._inbox),
            paused=len(scheduler.paused),
            free_blocks=self._blocks.num_free,
            total_blocks=self._blocks.num_blocks,
            steps=stepper.num_steps,
            tokens=stepper.num_tokens,
            prefill_tokens=stepper.num_prefill,
            cached_tokens=scheduler.num_cached,
            preemptions=scheduler.num_preemptions,
            sat_out=stepper.num_sat_out,
            row_uploads=stepper.rows.num_uploads,
            mask_ms=stepper.worker.busy_ms,
            **stepper.clock.sums,
        )

    def step(self) -> None:
        """One iteration: settle what needs no model, compute, sample, move on."""
        clock, began = self._stepper.clock, perf_counter()
        clock.start()
        self._settle()
        plan = self._scheduler.schedule()
        self._add_drafts(plan.work)
        clock.lap("schedule_ms")
        if plan.work:
            self._stepper.run(plan)
            self._scheduler.pace.note(plan.num_decoding, plan.num_prefill, perf_counter() - began)
        else:
            self._await_masks()
        clock.stop()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with self._runner.on_device():
                while self._await_work():
                    self.step()
                    self._flush()
        except BaseException as error:
            _log.exception("the engine's thread died")
            self._death = error
        finally:
            self._end_all()
            self._stepper.worker.close()
            self._runner.close()
            if self._speculator is not None:
                self._speculator.close()

    def _await_work(self) -> bool:
        """Sleep until there is something to do; False when closing."""
        with self._wake:
            while not (self._inbox or self._commands or self._scheduler.has_work or self._is_closing or self._any_cancelled()):
                self._wake.wait()
            arrived, commands = list(self._inbox), list(self._commands)
            self._inbox.clear()
            self._commands.clear()
            for sequence in arrived:
                self._scheduler.add(sequence)
            is_open = not self._is_closing
        for command in commands:
            command.run()
        for sequence in arrived:
            if not sequence.is_cancelled:
                self._stepper.jump(sequence)
        self._flush()
        return is_open

    def _any_cancelled(self) -> bool:
        return any(sequence.is_cancelled for sequence in self._scheduler.paused)

    def _end_all(self) -> None:
        """Nobody is left waiting: every sequence gets its last chunk, also when the thread died."""
        with self._wake:
            self._is_closing = True
            left = [*self._scheduler.sequences, *self._inbox]
            commands = list(self._commands)
            self._inbox.clear()
            self._commands.clear()
        death = self._death
        error = None if death is None else InternalError(f"the engine's thread died: {death!r}")
        if error is not None:
            error.__cause__ = death
        for sequence in left:
            self._stepper.end(sequence, error)
        for command in commands:
            command.refuse(error or OverloadedError("the engine is closing down"))
        self._flush()

    def _flush(self) -> None:
        delivery, self._stepper.outbox = self._stepper.outbox, []
        for sequence, chunk in delivery:
            if chunk.finish_reason is not None and self._speculator is not None:
                self._speculator.forget(sequence)
        if delivery:
            self._deliver(delivery)

    def _command(self, action: Callable[[], None]) -> Future[None]:
        command = Command(action)
        with self._wake:
            if self._is_closing:
                command.refuse(OverloadedError("the engine is closing down"))
            else:
                self._commands.append(command)
                self._wake.notify()
        return command.future

    def _check_open(self) -> None:
        if self._death is not None:
            raise InternalError(f"the engine's thread died: {self._death!r}") from self._death
        if self._is_closing:
            raise OverloadedError("the engine is closing down")
        num_waiting = len(self._inbox) + len(self._scheduler.waiting)
        if num_waiting >= self.options.max_waiting:
            raise OverloadedError(f"{num_waiting} sequences wait already, the most that may; try again later")

    # -- the parts of a step ---------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """End what is cancelled or out of time; a document is closed first, which needs no step of the model."""
        for sequence in self._scheduler.sequences:
            if sequence.is_cancelled or (sequence.is_late and sequence.matcher is None):
                self._stepper.end(sequence)
            elif sequence.is_late and not sequence.is_thinking:
                self._stepper.jump(sequence)

    def _make_speculator(self) -> Speculator | None:
        options = self.options
        if options.draft_model is not None:
            return DraftModel(options.draft_model, self.model, options)
        return PromptLookup(options.speculation) if options.speculation is not None else None

    def _add_drafts(self, work: list[Work]) -> None:
        options, speculator = self.options.speculation or Speculation(), self._speculator
        sampling = [w for w in work if w.samples]
        if speculator is None or not 0 < len(sampling) <= options.max_batch or len(sampling) < len(work):
            return
        try:
            guesses = speculator.propose([w.sequence for w in sampling], options.num_tokens)
        except Exception:
            _log.exception("speculation failed; the engine goes on without it")
            self._speculator = None
            return
        for w, drafts in zip(sampling, guesses, strict=True):
            self._scheduler.add_drafts(w, _drafts_for(w, drafts))

    def _await_masks(self) -> None:
        """All that runs sits out: sleep until one mask is there."""
        thinking = [s.thinking for s in self._scheduler.running if s.thinking is not None]
        if thinking:
            self._stepper.worker.wait_any(thinking)


def _drafts_for(work: Work, drafts: list[int]) -> list[int]:
    try:
        return allowed_drafts(work.sequence, drafts)
    except Exception:
        # The masks, which are asked next, will fail for this sequence alone and say why.
        return []
