"""The service that most tests share: a synthetic backend which gives an example of each request's schema."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.server import Served, served
from tests.api.synthetic import SyntheticBackend


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend()) as running:
        yield running


@pytest.fixture(scope="module")
def dictated() -> Iterator[Served]:
    """A service whose documents a test dictates by `backend.reset`."""
    with served(SyntheticBackend("null")) as running:
        yield running
