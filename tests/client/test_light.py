"""The client loads what it needs and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest

import constrained.client

PROGRAM = """
import sys
import constrained.client
from constrained.client import *
found = sorted({"torch", "numba", "numpy", "fastapi", "starlette", "uvicorn", "transformers", "api"} & sys.modules.keys())
print(*found)
"""


def test_importing_the_client_loads_nothing_heavy() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("name", constrained.client.__all__)
def test_what_is_exported_is_documented(name: str) -> None:
    assert getattr(constrained.client, name).__doc__
