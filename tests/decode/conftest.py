"""One tiny model and one vocabulary for all tests of the engine."""

from __future__ import annotations

import pytest

from tests.decode.mocks import TinyModel


@pytest.fixture(scope="session")
def tiny() -> TinyModel:
    return TinyModel()
