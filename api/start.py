"""From a job to a run whose bytes become pieces of an answer: what the OpenAI-compatible endpoints share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from api.pieces import ContentReader, Piece, Reader, TypedReader, with_logprobs
from api.runs import Run
from api.service import Job, Service
from api.sources import TextSource
from api.tools import ToolPlan, placed
from constrained.errors import GrammarError, RequestError, SchemaError
from constrained.options import CompileOptions

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar


async def start(
    service: Service,
    job: Job,
    endpoint: str,
    plan: ToolPlan | None = None,
    typed: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Run[Piece], CompiledGrammar | None]:
    """The run of a job, and its grammar; with `typed` operations of the native protocol stand before the text.

    `names` are those that the endpoint has for fields of a job which an error may name.
    """
    grammar = None if job.options is None else await _grammar(service, job.schema, job.options, plan)
    make_reader = _reader(grammar, plan, typed)
    if job.params.logprobs is not None:
        make_reader = with_logprobs(make_reader)
    try:
        return await service.start(job, grammar, endpoint, make_reader), grammar
    except RequestError as error:
        error.field = names.get(error.field or "", error.field)
        raise


def _reader(grammar: CompiledGrammar | None, plan: ToolPlan | None, typed: bool) -> Callable[[], Reader]:
    if grammar is None:
        return ContentReader
    if plan is not None:
        return plan.reader(grammar)
    return (lambda: TypedReader(grammar.root)) if typed else ContentReader


async def _grammar(service: Service, schema: Any, options: CompileOptions, plan: ToolPlan | None) -> CompiledGrammar:
    """The grammar of a job; where the schema of a tool is at fault, the error says of which."""
    try:
        return await service.grammar(schema, options)
    except GrammarError as error:
        if isinstance(schema, TextSource):
            error.source = schema.place
        raise
    except SchemaError:
        for place, parameters in plan.schemas if plan is not None else ():
            try:
                await service.grammar(parameters, options)
            except SchemaError as error:
                raise placed(error, place) from error
        raise
