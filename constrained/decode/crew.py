"""Helper threads of the one that runs a model's own code: see `job_kernels`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch

from constrained.decode.attention_kernels import Bits
from constrained.decode.job_kernels import Box, new_box, serve


class _Desk(threading.local):
    """Where the computations of the running thread lie."""

    def __init__(self) -> None:
        self.box = new_box()


_desk = _Desk()


def sample_of(dtype: torch.dtype) -> Bits:
    """No elements, of the kind that the kernels take for bfloat16 or for float32."""
    return np.empty(0, np.uint16) if dtype == torch.bfloat16 else np.empty(0, np.int32)


def box_of_this_thread() -> Box:
    return _desk.box


class Crew:
    """Helpers of the thread that computes while it is `at_work`; without them it computes alone.

    Its attention layers hold elements of `dtype`.
    """

    def __init__(self, size: int, dtype: torch.dtype) -> None:
        self._num_helpers = size - 1
        self._sample = sample_of(dtype)
        self._pool = ThreadPoolExecutor(max(1, self._num_helpers), thread_name_prefix="constrained-crew")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        stop = np.zeros(1, np.int64)
        helpers: list[Future[None]] = [
            self._pool.submit(serve, _desk.box, self._sample, stop) for _ in range(self._num_helpers)
        ]
        try:
            yield
        finally:
            stop[0] = 1
            for helper in helpers:
                helper.cancel()

    def close(self) -> None:
        self._pool.shutdown()
