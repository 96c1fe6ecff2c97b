"""What docs/protocol.md shows is what the service sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from constrained.stream import Fold, from_wire
from schemas import export
from schemas.events import EVENTS
from schemas.socket import CLIENT_MESSAGE, MessageOp
from tests.api.server import Sent, Served, read_events, served
from tests.api.synthetic import SyntheticBackend

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text("utf-8")
CHANGING = ("run", "usage", "timings")


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


DOCUMENT = re.findall(r"The model writes `(.*?)`", PAGE)[0]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(DOCUMENT, token_bytes=4)) as running:
        yield running


def lasting(events: list[Sent]) -> list[tuple[str, str, Any]]:
    """Events without what differs from run to run."""
    return [
        (event.id.rpartition(":")[2], event.name, {key: value for key, value in event.data.items() if key not in CHANGING})
        for event in events
    ]


def test_the_example_is_what_is_sent(service: Served) -> None:
    shown = list(read_events(block("sse").splitlines()))
    answer = service.client.post("/v1/structured/stream", json=json.loads(block("json")))
    assert lasting(shown) == lasting(list(read_events(answer.text.split("\n")[:-1])))
    assert {event.id.rpartition(":")[0] for event in shown} == {shown[0].data["run"]}


def test_the_example_folds_to_its_document() -> None:
    fold = Fold()
    for event in read_events(block("sse").splitlines()):
        for op in event.data.get("ops", ()):
            fold.apply(from_wire(op))
    assert fold.value == json.loads(DOCUMENT)


def test_the_messages_of_the_socket_are_messages() -> None:
    messages = [CLIENT_MESSAGE.validate_json(line) for line in block("jsonl").splitlines()]
    assert {message.op for message in messages} == set(get_args(MessageOp))


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the name in their first cell."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip("` "): re.findall(r"`(\w+)`(\??)", row[1]) for row in cells}


def test_every_event_and_op_is_told_with_its_fields() -> None:
    events = {name: {field.alias or key for key, field in model.model_fields.items()} for name, model in EVENTS.items()}
    assert {name: {field for field, _ in fields} for name, fields in rows("Events").items()} == events
    ops = {model.model_fields["op"].default: model.model_fields for model in export.members(export.UNIONS["Op"][1])}
    for name, fields in rows("Operations").items():
        assert {field for field, _ in fields} == set(ops[name]) - {"op"}
        assert all(ops[name][field].is_required() != bool(optional) for field, optional in fields)
    assert set(rows("Operations")) == set(ops)


def test_every_call_is_one_of_the_service(service: Served) -> None:
    paths = service.client.get("/openapi.json").json()["paths"]
    calls = re.findall(r"^\| `(POST|GET) (/\S+)`", PAGE, re.MULTILINE)
    assert len(calls) > 6
    for method, path in calls:
        assert method.lower() in paths[path]


def test_every_link_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", PAGE) if "://" not in link]
    assert links
    assert all((Path(__file__).resolve().parents[2] / "docs" / link).exists() for link in links)
