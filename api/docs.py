"""The OpenAPI document, with the models of what streams carry, which no route returns as such."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas.events import EVENTS
from schemas.openai import ChatCompletionChunk
from schemas.responses import TypedDeltaEvent, TypedStartEvent

STREAMED: tuple[type[BaseModel], ...] = (*EVENTS.values(), ChatCompletionChunk, TypedStartEvent, TypedDeltaEvent)
REF = "#/components/schemas/{model}"


def streamed(what: str, *models: type[BaseModel]) -> dict[str, Any]:
    """An answer that streams the JSON of `models` as server-sent events, as the document describes it."""
    references = [{"$ref": REF.format(model=model.__name__)} for model in models]
    return {"description": what, "content": {"text/event-stream": {"schema": {"anyOf": references}}}}


def install(app: FastAPI) -> None:
    """Add the stream models to the document of `app`."""
    make_document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = make_document()
        streamed: list[tuple[type[BaseModel], Literal["validation"]]] = [(model, "validation") for model in STREAMED]
        for name, schema in models_json_schema(streamed, ref_template=REF)[1]["$defs"].items():
            document["components"]["schemas"].setdefault(name, schema)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
