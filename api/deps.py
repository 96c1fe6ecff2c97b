"""What routes take from the app by dependency injection. Coroutines: the framework runs plain functions in another thread."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from api.responses_store import Responses, ResponseStore
from api.service import Service


async def get_service(request: Request) -> Service:
    """The service that the app's lifespan made."""
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(get_service)]


async def get_responses(request: Request) -> Responses:
    """The responses that the app keeps for the key of a request."""
    store: ResponseStore = request.app.state.responses
    return Responses(store, request.scope.get("key"))


ResponsesDep = Annotated[Responses, Depends(get_responses)]
