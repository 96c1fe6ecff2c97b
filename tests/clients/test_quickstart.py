"""Every block of docs/quickstart.md does what it says: clients over a synthetic engine, the service with the model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.api.server import Served, served, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.clients.programs import DEADLINE_S, ROOT, absent
from tests.ports import free_port

PAGE = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8000"
CITY = {"city": "Osaka – 大阪", "size": "large"}
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
INSTALL, READY, STREAM, CHECK = (text for language, text in BLOCKS if language == "sh")
PYTHON, OPENAI = (text for language, text in BLOCKS if language == "python")
(JAVASCRIPT,) = (text for language, text in BLOCKS if language == "js")


@pytest.fixture(scope="module")
def city() -> Iterator[Served]:
    with served(SyntheticBackend(compact(CITY))) as service:
        yield service


def outcome(service: Served, command: list[str], program: str) -> str:
    """What a block prints that is read from standard input, its address replaced."""
    assert ADDRESS in program
    text = program.replace(ADDRESS, service.url)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=DEADLINE_S, cwd=ROOT, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_is_one_of_these() -> None:
    assert len(BLOCKS) == 7


def test_ready(city: Served) -> None:
    outcome(city, ["sh"], READY)


def test_the_first_stream(city: Served) -> None:
    lines = outcome(city, ["sh"], STREAM).splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert (names[0], names[-1], set(names)) == ("start", "done", {"start", "delta", "done"})
    assert any('"op":"set","path":"/size","value":"large"' in line for line in lines)


def test_python(city: Served) -> None:
    assert outcome(city, [sys.executable, "-"], PYTHON) == f"{CITY['city']}city='{CITY['city']}' size='large'\n"


def test_openai(city: Served) -> None:
    assert outcome(city, [sys.executable, "-"], OPENAI) == f"{compact(CITY)}city='{CITY['city']}' size='large'\n"


def test_javascript(city: Served) -> None:
    node = shutil.which("node")
    if node is None:
        absent("there is no node")
    told = json.loads(outcome(city, [str(node), "--input-type=module", "-"], JAVASCRIPT))
    assert told == {"fields": {"/city": CITY["city"], "/size": "large"}, "valid": True}


def test_check(city: Served) -> None:
    told = json.loads(outcome(city, ["sh"], CHECK))
    assert told["supported"] is True
    assert {found["keyword"]: found["status"] for found in told["keywords"]}["uniqueItems"] == "enforced"


@pytest.mark.model
def test_install_and_serve() -> None:
    *made, serve = INSTALL.splitlines()
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line.removeprefix("make ") for line in made] == ["install", "model"]
    assert {"install", "model"} <= set(targets)
    port = free_port()
    program, *arguments = serve.split()
    assert (program, arguments[-1]) == (".venv/bin/constrained", "8000")
    command = [sys.executable, "-m", "constrained", *arguments[:-1], str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: process.poll() is not None or _is_ready(port), DEADLINE_S)  # its kernels may have to be compiled
        assert process.poll() is None
        streamed = STREAM.replace(ADDRESS, f"http://127.0.0.1:{port}")
        text = subprocess.run(["sh", "-c", streamed], capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
        assert '"status":"complete","valid":true' in text
    finally:
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False
