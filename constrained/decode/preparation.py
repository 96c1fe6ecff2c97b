"""Which forward pass an engine takes: our own where the model's family has one and it computes the model exactly, else the
model's own code over our attention, on a CUDA device with decode steps that are recorded. All are judged by the self-test
before the first request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from constrained.decode.graphs import CudaRecorder
from constrained.decode.options import EngineOptions
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from constrained.decode.swaps import swap_modules
from constrained.errors import UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_log = logging.getLogger(__name__)


def prepare(runner: ModelRunner, options: EngineOptions, context_len: int) -> None:
    """Make the runner ready to compute, as fast as it may. Raises `UnsupportedModelError` where no way is exact."""
    with runner.on_device():
        _prepare(runner, options, context_len)


def _prepare(runner: ModelRunner, options: EngineOptions, context_len: int) -> None:
    if options.fuse:
        try:
            check_model(runner, lambda _: runner.fuse())
        except UnsupportedModelError as error:
            _log.warning("the fused forward pass is left out: %s", error)
            runner.unfuse()
    if runner.is_fused:
        return
    for what, begin in _quick_ways(runner, options, context_len):
        try:
            check_model(runner, partial(_change, options, begin))
        except Exception as error:
            _log.warning("%s left out: %s", what, error)
        else:
            return
    check_model(runner, partial(_change, options, runner.gather))


def _quick_ways(runner: ModelRunner, options: EngineOptions, context_len: int) -> list[tuple[str, Callable[[], None]]]:
    """What a CUDA device may be too odd for, the quickest first; whatever goes wrong there, the next is tried."""
    ways: list[tuple[str, Callable[[], None]]] = []
    if options.cuda_graphs and runner.device.type == "cuda":
        recorder = CudaRecorder(runner.device)
        ways.append(("CUDA graphs are", lambda: runner.record(recorder, options.limits.max_running, context_len)))
    if runner.reads_in_place:
        ways.append(("the decode attention in Triton is", runner.stop_replaying))
    return ways


def _change(options: EngineOptions, begin: Callable[[], None], model: PreTrainedModel) -> None:
    if options.pack_linears:
        swap_modules(model)
    begin()
