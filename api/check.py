"""`POST /v1/schemas/check`: whether a schema compiles, and what becomes of each keyword."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

import constrained
from api.compile_options import compile_options
from api.deps import ServiceDep
from api.errors import error_info
from api.wire import JsonRoute, canonical_json
from schemas.requests import CheckRequest, CheckResponse, ErrorBody, KeywordReport

router = APIRouter(
    prefix="/v1/schemas",
    route_class=JsonRoute,
    tags=["schemas"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.post("/check")
async def check(body: CheckRequest, service: ServiceDep) -> CheckResponse:
    """Compile only. A schema that is refused is an answer here, not an error."""
    options = service.within_limits(compile_options(body, body.schema_))
    canonical_json(body.schema_)
    report = await asyncio.to_thread(constrained.check_json_schema, body.schema_, options)
    grammar = await service.grammar(body.schema_, options) if report.supported else None
    return CheckResponse(
        supported=report.supported,
        schema_hash=grammar.schema_hash if grammar else None,
        keywords=[KeywordReport.model_validate(found, from_attributes=True) for found in report.keywords],
        order=list(report.order),
        min_bytes=grammar.min_bytes if grammar else None,
        error=error_info(report.error) if report.error else None,
    )
