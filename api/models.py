"""What the service tells of itself: its model, its health, its metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.deps import ServiceDep
from constrained.errors import NotReadyError, ShuttingDownError
from schemas.openai import ModelCard, ModelList
from schemas.requests import ErrorBody

router = APIRouter(tags=["service"])


@router.get("/v1/models")
async def models(service: ServiceDep) -> ModelList:
    """The model that is served."""
    return ModelList(data=[_card(service.backend.name, service.backend.context_len, service.started_at)])


@router.get("/v1/models/{model:path}", responses={"4XX": {"model": ErrorBody}})
async def model(model: str, service: ServiceDep) -> ModelCard:
    """One model by its name."""
    service.check_model(model)
    return _card(service.backend.name, service.backend.context_len, service.started_at)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(service: ServiceDep) -> dict[str, str]:
    """The model is loaded and the engine takes requests; else 503."""
    if service.is_draining:
        raise ShuttingDownError("The service is shutting down")
    if not service.is_ready:
        raise NotReadyError("The engine has failed; the service must be started anew")
    return {"status": "ready", "model": service.backend.name}


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Prometheus text format."""
    return Response(request.app.state.metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})


def _card(name: str, context_len: int, created: int) -> ModelCard:
    return ModelCard(id=name, created=created, owned_by="constrained", context_len=context_len)
