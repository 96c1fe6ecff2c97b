"""What the first and the last events of a run say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.errors import error_info
from api.feed import Entry
from api.runs import Run, finish_reason_of, timings_of, usage_of
from api.wire import to_json
from constrained.errors import ConstrainedError, InternalError
from constrained.stream import DeltaStream, Op
from schemas.events import DoneEvent, ErrorEvent, StartEvent, Wire

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar


def wire_json(event: Wire) -> str:
    """The JSON of an event's data."""
    return to_json(event.model_dump(by_alias=True))


def start_event(run: Run[Op], model: str, grammar: CompiledGrammar) -> StartEvent:
    """The schema is that of the values: of a text, that of a string which holds it."""
    return StartEvent(
        run=run.id,
        model=model,
        schema_=grammar.schema,
        schema_hash=grammar.schema_hash,
        order=list(grammar.property_order),
        choices=len(run.outcomes),
    )


def done_entry(run: Run[Op], seq: int, verdicts: list[bool]) -> Entry:
    complete = all(outcome.finish_reason == "stop" for outcome in run.outcomes)
    event = DoneEvent(
        seq=seq,
        finish_reason=finish_reason_of(run.outcomes),
        finish_reasons=[outcome.finish_reason or "cancelled" for outcome in run.outcomes],
        status="complete" if complete else "incomplete",
        valid=all(verdicts),
        closed_by_budget=any(outcome.usage.closed_by_budget for outcome in run.outcomes),
        usage=usage_of(run.outcomes),
        timings=timings_of(run.outcomes),
    )
    return Entry(seq, "done", 0, wire_json(event))


def failed_entry(run: Run[Op], seq: int, error: Exception) -> Entry:
    """The end of a run that failed; it names the place that was being written."""
    translator = run.translators[run.failed_choice]
    open_paths = translator.open_paths if isinstance(translator, DeltaStream) else ()
    return error_entry(seq, error, open_paths[-1] if open_paths else None)


def error_entry(seq: int, error: Exception, path: str | None = None) -> Entry:
    return Entry(seq, "error", 0, wire_json(error_event(seq, error, path)))


def error_event(seq: int, error: Exception, path: str | None = None) -> ErrorEvent:
    info = error_info(error)
    return ErrorEvent(
        seq=seq,
        code=info.code or InternalError.code,
        message=info.message,
        path=path,
        retriable=isinstance(error, ConstrainedError) and error.retriable,
    )
