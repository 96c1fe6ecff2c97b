"""What a stream shows without waiting, the same for both clients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from constrained.client.errors import BufferingWarning, ProtocolError
from constrained.client.run import Cancelled, Disconnected, Run
from constrained.client.session import Session
from constrained.stream import Status
from schemas.events import DoneEvent, StartEvent

T = TypeVar("T")


class StreamBase(Generic[T]):
    """The state of a run so far. Nothing here reads from the network; the consumers of the stream do."""

    def __init__(self, session: Session[T]) -> None:
        self._session = session
        self._run: Run[T] = session.run
        self._has_warned = False

    @property
    def run_id(self) -> str:
        """The run's id, by which it can be joined. Raises the run's failure where it never came."""
        if self._run.id is None:
            raise self._run.failure()
        return self._run.id

    @property
    def start(self) -> StartEvent:
        """The first event: run id, model, schema, order of the fields. Raises the run's failure where none came.

        Who joins behind an event gets none: then a `ValueError`.
        """
        if self._run.start is not None:
            return self._run.start
        if self._run.joined_behind:
            raise ValueError("this stream joined behind an event; the start came before it")
        raise self._run.failure()

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

    def _expect_open(self) -> None:
        """A closed stream steers nothing; the service answers for a run that has ended by itself."""
        if isinstance(self._run.outcome, Cancelled | Disconnected | ProtocolError):
            raise self._run.failure()

    def _expect_outliving(self) -> str:
        if not self._session.outlives:
            raise ValueError("this run ends with its reader; start it with resumable=True to detach from it")
        return self.run_id

    def _warn_of_buffering(self) -> None:
        if self._session.gauge.verdict is not None and not self._has_warned:
            self._has_warned = True
            warnings.warn(self._session.gauge.verdict, BufferingWarning, stacklevel=5)
