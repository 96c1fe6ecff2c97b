"""The JavaScript client: its own tests under Node against a live service, its types, and the snippets of its page in docs/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.server import Served, served
from tests.api.synthetic import SyntheticBackend
from tests.clients.programs import absent

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENT = ROOT / "api" / "static" / "constrained.js"
DOCS = ROOT / "docs" / "javascript.md"
DEADLINE_S = 300


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(token_bytes=2)) as service:
        yield service


def node(*arguments: str, **environment: str) -> str:
    """What Node prints; shown where it fails."""
    program = shutil.which("node")
    if program is None:
        absent("there is no node")
    command = [str(program), *arguments]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_under_node(service: Served, name: str) -> None:
    version = int(node("--version").lstrip("v").partition(".")[0])
    # Node 18 has no WebSocket, Node 22 has one without a switch.
    switches = ["--experimental-websocket"] if version in (20, 21) else []
    node(*switches, "--test", "--test-reporter=spec", name, SERVICE_URL=service.url)


def test_the_types_hold() -> None:
    compiler = HERE / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        absent("there is no TypeScript; run `make clients`")
    node(str(compiler), "--project", str(HERE))


@pytest.mark.parametrize("name", ["constrained.js", "constrained.d.ts", "constrained-form.js", "form/view.js", "form/form.css"])
def test_the_service_serves_it_and_a_browser_asks_whether_it_is_new(service: Served, name: str) -> None:
    answer = service.client.get(f"/static/{name}")
    assert answer.text == (CLIENT.parent / name).read_text("utf-8")
    assert answer.headers["cache-control"] == "no-cache"
    again = service.client.get(f"/static/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")


SNIPPETS = re.findall(r"```js\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_the_snippets_run_and_print_what_they_say(service: Served, tmp_path: Path, snippet: str) -> None:
    program = snippet.replace("./constrained.js", CLIENT.as_uri()).replace("http://127.0.0.1:8000", service.url)
    assert program.count(CLIENT.as_uri()) == program.count(service.url) == 1
    file = tmp_path / "snippet.mjs"
    file.write_text(program, "utf-8")
    printed = node(str(file))
    for said in re.findall(r"console\.log\(.*\); // (\S+ \S+)\n", snippet):
        assert said in printed.splitlines()


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == 4
