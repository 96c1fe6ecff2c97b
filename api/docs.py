"""The OpenAPI document, with the models of what streams carry, which no route returns as such."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas import export
from schemas.openai import ChatCompletionChunk
from schemas.responses import TypedDeltaEvent, TypedStartEvent

STREAMED: tuple[type[BaseModel], ...] = (ChatCompletionChunk, TypedStartEvent, TypedDeltaEvent)
REF = "#/components/schemas/{model}"


def streamed(what: str, *models: type[BaseModel]) -> dict[str, Any]:
    """An answer that streams the JSON of `models` as server-sent events, as the document describes it."""
    references = [{"$ref": REF.format(model=model.__name__)} for model in models]
    return {"description": what, "content": {"text/event-stream": {"schema": {"anyOf": references}}}}


def streamed_events(what: str) -> dict[str, Any]:
    """An answer that streams the events of a run, in each of the transports."""
    answer = streamed(what, *export.members(export.UNIONS["Event"][1]))
    answer["content"]["application/x-ndjson"] = {"schema": {"$ref": REF.format(model="Line")}}
    return answer


def install(app: FastAPI) -> None:
    """Add the stream models to the document of `app`."""
    make_document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = make_document()
        streamed: list[tuple[type[BaseModel], Literal["validation"]]] = [(model, "validation") for model in STREAMED]
        of_streams = models_json_schema(streamed, ref_template=REF)[1]["$defs"]
        for name, schema in {**of_streams, **export.definitions(REF)}.items():
            document["components"]["schemas"].setdefault(name, schema)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
