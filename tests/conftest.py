"""What all tests share: offline operation, thread counts, hypothesis profiles, the real model, the shared data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

# Set before any test imports a library that reads them. A spinning OpenMP thread of one xdist worker would slow the other.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from constrained.decode.model import LoadedModel

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps those tests of a file that need the model or the browser on one worker: they share what is costly to start."""
    for item in items:
        if any(item.get_closest_marker(name) for name in ("model", "browser")):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the test data, read where it lies and never committed: `$CONSTRAINED_SHARED/data` or `../shared/data`."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("CONSTRAINED_SHARED", beside)) / "data"
    if not folder.is_dir():
        why = f"no folder {folder.name!r} in ../shared; set CONSTRAINED_SHARED to the folder that holds it"
        pytest.fail(why) if IN_CI else pytest.skip(why)
    return folder


@pytest.fixture(scope="session")
def real_model() -> LoadedModel:
    """The default model in this machine's own dtype, loaded once for each worker; converted first where it must be."""
    return _load(None)


@pytest.fixture(scope="session")
def float32_model() -> LoadedModel:
    """The default model in float32, for equality between batch sizes: bfloat16 changes near-tie choices with the batch."""
    return _load("float32")


def _load(dtype: str | None) -> LoadedModel:
    import torch

    from constrained.decode.model import load_model

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    return load_model(dtype=dtype)
