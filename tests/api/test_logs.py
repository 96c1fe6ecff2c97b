"""Logs: one JSON object a line with the id of its request, and no word of a prompt unless it is asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from api.logs import JsonFormatter, WithRequest
from api.settings import Settings
from tests.api.server import ask, served, wait_until
from tests.api.synthetic import SyntheticBackend

SECRET = "the-secret-of-the-prompt"


class Lines(logging.Handler):
    """Keeps what a handler would write."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(WithRequest())
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler = Lines()
    logger = logging.getLogger("api")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_answer_is_one_line_with_its_request(lines: list[str]) -> None:
    with served(SyntheticBackend(), Settings()) as service:
        body = ask({"type": "string"}, SECRET)
        service.client.post("/v1/structured", json=body, headers={"x-request-id": "abc"})
        wait_until(lambda: len(lines) == 2)
    started, answered = (json.loads(line) for line in lines)
    assert (started["message"], started["request_id"], started["endpoint"]) == ("run started", "abc", "structured")
    assert (answered["message"], answered["request_id"]) == ("POST /v1/structured 200", "abc")
    assert (answered["status"], answered["method"], answered["caller"]) == (200, "POST", "127.0.0.1")
    assert answered["duration_ms"] >= answered["first_byte_ms"] > 0
    assert answered["bytes"] > 0
    assert SECRET not in "".join(lines)


def test_prompts_are_logged_where_that_is_asked_for(lines: list[str]) -> None:
    with served(SyntheticBackend(), Settings(log_prompts=True)) as service:
        service.client.post("/v1/structured", json=ask({"type": "string"}, SECRET))
        wait_until(lambda: len(lines) == 2)
    assert json.loads(lines[0])["prompt"] == [{"role": "user", "content": SECRET}]


def test_a_failed_run_is_logged_with_its_request_and_without_its_prompt(lines: list[str]) -> None:
    with served(SyntheticBackend(), Settings()) as service:
        body = ask({"type": "string"}, f"{SECRET} fail")
        service.client.post("/v1/structured", json=body, headers={"x-request-id": "abc"})
        wait_until(lambda: len(lines) == 3)
    failed = next(json.loads(line) for line in lines if '"level": "error"' in line)
    assert failed["request_id"] == "abc"
    assert "the step broke" in failed["exception"]
    assert SECRET not in "".join(lines)


def test_a_line_is_one_line() -> None:
    record = logging.makeLogRecord({"msg": "a\nb %s", "args": ("ü",), "levelname": "INFO", "name": "x", "path": object})
    (line,) = JsonFormatter().format(record).splitlines()
    entry = json.loads(line)
    assert (entry["message"], entry["level"], entry["logger"]) == ("a\nb ü", "info", "x")
    assert "request_id" not in entry
