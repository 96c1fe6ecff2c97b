"""One contract in four places: the models, the exported files, the service's OpenAPI document and the client."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from api.app import create_app
from constrained.cli import app as commands
from constrained.client import AsyncClient, Client, wire
from constrained.stream import ops as stream_ops
from schemas import export
from schemas.events import EVENTS, EventName
from schemas.requests import CheckRequest, StructuredRequest
from schemas.socket import LINE
from tests.api.synthetic import SyntheticBackend
from tests.client.builders import deltas, done, error, snapshot, start
from tests.clients.programs import typescript_faults

DEFINITIONS = export.json_schema()["$defs"]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """What the service says of itself."""
    return create_app(None, SyntheticBackend()).openapi()


@pytest.mark.parametrize("path", export.files(), ids=lambda path: path.name)
def test_the_files_are_what_the_models_say(path: Path) -> None:
    assert path.read_text("utf-8") == export.files()[path], "run `python -m schemas.export`"


def test_the_export_is_a_schema_that_takes_lines_and_nothing_else() -> None:
    schema = export.json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    frames = [start(), *deltas('{"a":[1,', '"two",true]}'), snapshot(9, {}, [""], {"": "streaming"}), done(), error()]
    for frame in frames:
        id_, name, data = (line.partition(": ")[2] for line in frame.decode().strip().split("\n"))
        line = {"event": name, "id": id_, "data": json.loads(data)}
        assert list(validator.iter_errors(line)) == []
        assert LINE.validate_python(line).event == name
        for broken in ({**line, "event": "progress"}, {**line, "more": 1}, {**line, "data": {}}):
            assert not validator.is_valid(broken)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_service_documents_the_same(document: dict[str, Any], name: str) -> None:
    ours = json.loads(json.dumps(DEFINITIONS[name]).replace("#/$defs/", "#/components/schemas/"))
    assert document["components"]["schemas"][name] == ours


def test_the_stream_endpoints_show_typed_events(document: dict[str, Any]) -> None:
    for path, method in (("/v1/structured/stream", "post"), ("/v1/structured/{run}/events", "get")):
        content = document["paths"][path][method]["responses"]["200"]["content"]
        shown = {arm["$ref"].rpartition("/")[2] for arm in content["text/event-stream"]["schema"]["anyOf"]}
        assert shown == {model.__name__ for model in EVENTS.values()}
        assert content["application/x-ndjson"]["schema"]["$ref"].endswith("/Line")


def test_every_event_and_every_op_is_exported() -> None:
    assert (
        set(EVENTS)
        == set(get_args(EventName))
        == {model.__name__[:-4].lower() for model in export.members(export.UNIONS["Line"][1])}
    )
    ops = {DEFINITIONS[model.__name__]["properties"]["op"]["const"] for model in export.members(export.UNIONS["Op"][1])}
    assert ops == set(stream_ops._READERS)


def test_the_options_of_the_client_are_the_fields_of_the_requests() -> None:
    given_otherwise = {"messages", "prompt", "schema", "regex", "choice", "grammar"}
    fields = {field.alias or name for name, field in StructuredRequest.model_fields.items()}
    assert set(get_type_hints(wire.Options)) - {"timeout"} == fields - given_otherwise
    assert set(get_type_hints(wire.CheckOptions)) - {"timeout"} == set(CheckRequest.model_fields) - {"schema_"}
    assert set(get_type_hints(wire.StreamOptions)) == set(get_type_hints(wire.Options)) | {"via"}


def test_the_client_calls_what_the_service_has(document: dict[str, Any]) -> None:
    calls = {("post", wire.STREAM_PATH), ("post", wire.STRUCTURED_PATH), ("post", wire.CHECK_PATH), ("get", wire.MODELS_PATH)}
    calls |= {("post", wire.run_path("{run}", action)) for action in ("cancel", "steer", "edit")}
    calls.add(("get", wire.run_path("{run}", "events")))
    for method, path in calls:
        assert method in document["paths"][path.replace("%7B", "{").replace("%7D", "}")]


def test_both_clients_have_the_same_calls() -> None:
    def calls(client: type[Any]) -> dict[str, list[str]]:
        methods = inspect.getmembers(client, inspect.isfunction)
        return {name.removeprefix("a"): list(inspect.signature(call).parameters) for name, call in methods if name[0] != "_"}

    assert calls(Client) == calls(AsyncClient)


def test_typescript_takes_the_types() -> None:
    assert typescript_faults("protocol_types.ts") == ""


def test_the_command_prints_either_form() -> None:
    run = CliRunner()
    assert json.loads(run.invoke(commands, ["protocol"]).stdout) == export.json_schema()
    assert run.invoke(commands, ["protocol", "--typescript"]).stdout.strip() == export.typescript().strip()
