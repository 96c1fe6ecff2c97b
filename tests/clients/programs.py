"""Runs a program of another environment against a service, and reads the JSON object on its last line."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import IN_CI

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent
NODE_FOLDER = ROOT / "tests" / "node"
DEADLINE_S = 300


def python_program(name: str, url: str) -> dict[str, Any]:
    """The outcome of a program that needs the clients' environment (`make clients`)."""
    python = ROOT / ".venv-clients" / "bin" / "python"
    if not python.exists():
        absent("there is no .venv-clients; run `make clients`")
    return _outcome([str(python), str(PROGRAMS / name), url])


def node_program(name: str, url: str) -> dict[str, Any]:
    """The outcome of a program under Node (`make clients`)."""
    node = shutil.which("node")
    if node is None or not (NODE_FOLDER / "node_modules").is_dir():
        absent("there is no node, or no tests/node/node_modules; run `make clients` where node and npm are installed")
    return _outcome([str(node), str(NODE_FOLDER / name), url])


def typescript_faults(name: str) -> str:
    """What the TypeScript compiler finds in a file beside the Node programs (`make clients`)."""
    compiler = NODE_FOLDER / "node_modules" / ".bin" / "tsc"
    if shutil.which("node") is None or not compiler.exists():
        absent("there is no node, or no TypeScript in tests/node/node_modules; run `make clients`")
    options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext"]
    command = [str(compiler), *options, str(NODE_FOLDER / name)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S).stdout


def curl(*arguments: str) -> str:
    """What curl prints."""
    if shutil.which("curl") is None:
        absent("there is no curl")
    command = ["curl", "--silent", "--show-error", "--no-buffer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout


def absent(why: str) -> None:
    pytest.fail(why) if IN_CI else pytest.skip(why)


def _outcome(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))
