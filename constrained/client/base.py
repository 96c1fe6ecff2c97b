"""What a stream shows without waiting, the same for both clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from constrained.client.run import Run
from constrained.stream import Status
from schemas.events import DoneEvent, StartEvent

T = TypeVar("T")


class StreamBase(Generic[T]):
    """The state of a run so far. Nothing here reads from the network; the consumers of the stream do."""

    def __init__(self, run: Run[T]) -> None:
        self._run = run

    @property
    def start(self) -> StartEvent:
        """The first event: run id, model, schema, order of the fields. Raises the run's failure where none came."""
        if self._run.start is None:
            raise self._run.failure()
        return self._run.start

    @property
    def done(self) -> DoneEvent | None:
        """The last event of a run that ended by itself (usage, timings, reasons), once it has come."""
        outcome = self._run.outcome
        return outcome if isinstance(outcome, DoneEvent) else None

    @property
    def partial(self) -> Any:
        """`partial_of(0)`."""
        return self.partial_of(0)

    def partial_of(self, choice: int) -> Any:
        """One choice's document so far, as a live read-only view shaped by the model: what is not there reads as `UNSET`."""
        return self._run.partial(choice)

    def status(self, choice: int = 0) -> Mapping[str, Status]:
        """Where each path that was met stands: next, streaming or complete; a live, read-only view."""
        return self._run.fold(choice).status

    @property
    def last_event_id(self) -> str:
        """The id of the last event that came."""
        return self._run.last_event_id

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._run.ended
