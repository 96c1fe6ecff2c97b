"""Which forward pass an engine takes: our own where the model's family has one and it computes the model exactly, else the
model's own code over our attention. Either is judged by the self-test before the first request.
"""

from __future__ import annotations

import logging

from constrained.decode.options import EngineOptions
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from constrained.decode.swaps import swap_modules
from constrained.errors import UnsupportedModelError

_log = logging.getLogger(__name__)


def prepare(runner: ModelRunner, options: EngineOptions) -> None:
    """Make the runner ready to compute, as fast as it may. Raises `UnsupportedModelError` where no way is exact."""
    if options.fuse:
        try:
            check_model(runner, lambda _: runner.fuse())
        except UnsupportedModelError as error:
            _log.warning("the fused forward pass is left out: %s", error)
            runner.unfuse()
    if not runner.is_fused:
        check_model(runner, swap_modules if options.pack_linears else None)
