"""What docs/client.md shows runs, and what its tables say is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import constrained.client
from constrained.client import Timeouts
from tests.api.server import Served, served
from tests.api.synthetic import SyntheticBackend
from tests.client.test_service import ADA

MANUAL = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")


class Backend(SyntheticBackend):
    """Gives Ada where a document is asked for, and the shortest text where a text is."""

    def _document(self, grammar: Any) -> bytes:
        return self._shortest(grammar, b"") if grammar.is_text else super()._document(grammar)


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(Backend(ADA.model_dump_json(), token_bytes=1, delay_s=0.001)) as running:
        yield running


def test_the_examples_run(service: Served, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", MANUAL, re.DOTALL)
    assert len(blocks) > 9
    names: dict[str, Any] = {"__name__": "manual"}
    for block in blocks:
        code = block.replace("Client(", f"Client({service.url!r}, ").replace("http://127.0.0.1:8000", service.url)
        exec(compile(code, "docs/client.md", "exec", dont_inherit=True), names)
    for client in ("client", "patient"):
        names[client].close()
    assert names["person"] == names["Person"].model_validate(ADA.model_dump())
    printed = capsys.readouterr().out
    assert "Grace" in printed.splitlines()
    assert "AA-0000 calm" in printed.splitlines()
    assert any({"DeltaEvent", "DoneEvent"} == set(re.findall(r"\w+", line)) for line in printed.splitlines())
    assert "gave up" not in printed


def test_the_defaults_of_the_limits_are_told() -> None:
    told = dict(re.findall(r"^\| `(\w+_s)` \|.*\| (\w+) \|$", MANUAL, re.MULTILINE))
    assert told == {field.name: "none" if field.default is None else f"{field.default:g}" for field in fields(Timeouts)}


def test_every_error_that_is_told_is_one() -> None:
    told = re.findall(r"`(\w+(?:Error|Warning))", MANUAL)
    assert len(told) > 12
    assert all(hasattr(constrained.client, name) for name in told)


def test_every_link_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", MANUAL) if "://" not in link]
    assert links
    assert all((Path(__file__).parents[2] / "docs" / link).exists() for link in links)
