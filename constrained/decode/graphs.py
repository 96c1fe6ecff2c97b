"""Decode steps that are recorded once and then replayed: on a CUDA device a step of a hundred kernels becomes one launch.

A recorded step reads and writes memory that never moves: its rows lie in buffers of a few sizes, and a batch that is smaller
than its buffer is padded by rows that write into a block of their own. Prefill, drafts and batches past the largest size are
computed as they come. Knows neither the model nor requests; what a CUDA graph is knows `CudaRecorder` alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.batch import PackedBatch

_log = logging.getLogger(__name__)
_WARM_UPS = 2
_FIRST_WIDTH = 8  # blocks of the narrowest table, where each width is recorded by itself
_MOST_ROWS = 512


@dataclass(frozen=True, slots=True)
class StaticStep:
    """B rows, one new token of a sequence each, in memory that stays where it is; int64."""

    token_ids: Tensor  # [B]
    positions: Tensor  # [B]
    slots: Tensor  # [B]
    ends: Tensor  # [B]
    tables: Tensor  # [B, W]


@dataclass(frozen=True, slots=True)
class Recording:
    """`replay` fills `output` anew from what lies in the step's memory."""

    replay: Callable[[], object]
    output: Tensor


class Recorder(Protocol):
    """How a step is recorded on one device."""

    device: torch.device

    def record(self, step: Callable[[], Tensor]) -> Recording: ...

    def staging(self, shape: tuple[int, int]) -> Tensor:
        """Host memory, int64, from which the device reads."""

    def send(self, source: Tensor, target: Tensor) -> None:
        """Copy to the device, before whatever is asked of it next."""

    def await_sent(self) -> None:
        """Return when the host's memory may be written to again."""


class CudaRecorder:
    """CUDA graphs, which share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._sent = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def record(self, step: Callable[[], Tensor]) -> Recording:
        # Libraries set themselves up, and kernels are compiled, before anything is captured.
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            for _ in range(_WARM_UPS):
                step()
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            output = step()
        return Recording(graph.replay, output)

    def staging(self, shape: tuple[int, int]) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64, pin_memory=True)

    def send(self, source: Tensor, target: Tensor) -> None:
        target.copy_(source, non_blocking=True)
        self._sent.record(torch.cuda.current_stream(self.device))

    def await_sent(self) -> None:
        self._sent.synchronize()


class HostRecorder:
    """The same on a CPU, where nothing can be captured: the step is kept, and called anew on the same memory."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def record(self, step: Callable[[], Tensor]) -> Recording:
        output = step().clone()
        return Recording(lambda: output.copy_(step()), output)

    def staging(self, shape: tuple[int, int]) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64)

    def send(self, source: Tensor, target: Tensor) -> None:
        target.copy_(source)

    def await_sent(self) -> None:
        """Nothing is under way."""


def sizes_up_to(most: int) -> list[int]:
    """Rows of the buffers: 1, 2, 4, 8, 12, 16, 24, ..., each at most one and a half times the one before, from 8 on."""
    sizes, size = [1, 2, 4, 8], 8
    while sizes[-1] < min(most, _MOST_ROWS):
        sizes += [size + size // 2, 2 * size]
        size *= 2
    return [size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] < min(most, _MOST_ROWS)]


def widths_up_to(num_blocks: int) -> list[int]:
    """Blocks of the tables, where what a step costs grows with them: doubled from one to the next."""
    widths = [min(_FIRST_WIDTH, num_blocks)]
    while widths[-1] < num_blocks:
        widths.append(min(2 * widths[-1], num_blocks))
    return widths


class _StepMemory:
    """The memory of one size: rows of token ids, positions, slots and ends, then the tables, a row for each of their columns.

    So what a step needs of it is one piece from the start, and one copy to the device.
    """

    def __init__(self, recorder: Recorder, size: int, width: int, scratch_block: int) -> None:
        self._recorder = recorder
        self._scratch = scratch_block
        self._staging = recorder.staging((4 + width, size))
        self._numbers = self._staging.numpy()
        self._device = torch.zeros(4 + width, size, dtype=torch.int64, device=recorder.device)
        token_ids, positions, slots, ends = self._device[:4].unbind()
        self.step = StaticStep(token_ids, positions, slots, ends, self._device[4:].t())
        self._pad(0, width)
        recorder.send(self._staging, self._device)

    def fill(self, batch: PackedBatch, num_blocks: int) -> None:
        """The first `num_blocks` columns of the tables hold all that is read."""
        self._recorder.await_sent()
        numbers, count = self._numbers, batch.num_rows
        for row, values in enumerate((batch.token_ids, batch.positions, batch.slots, batch.ends)):
            numbers[row, :count] = values
        numbers[4 : 4 + num_blocks, :count] = batch.tables[:, :num_blocks].T
        self._pad(count, num_blocks)
        self._recorder.send(self._staging[: 4 + num_blocks], self._device[: 4 + num_blocks])

    def _pad(self, count: int, num_blocks: int) -> None:
        """Rows from `count` on are of a sequence with one token, in a block that belongs to nobody."""
        numbers = self._numbers
        numbers[:2, count:] = 0
        numbers[2, count:] = self._scratch * BLOCK_LEN
        numbers[3, count:] = 1
        numbers[4 : 4 + num_blocks, count:] = self._scratch


class DecodeGraphs:
    """Recordings of `compute` by number of rows, one of `sizes`, and blocks of the tables, one of `widths`; both ascend."""

    def __init__(
        self,
        compute: Callable[[StaticStep], Tensor],
        recorder: Recorder,
        sizes: Seq[int],
        widths: Seq[int],
        scratch_block: int,
    ) -> None:
        self._compute = compute
        self._recorder = recorder
        self._sizes, self._widths = sizes, widths
        self._scratch_block = scratch_block
        self._recordings: dict[tuple[int, int], tuple[_StepMemory, Recording]] = {}
        self.is_broken = False
        self.num_replays = 0

    def record_all(self) -> None:
        """Record every size ahead, the largest first, so that the others find its memory; of widths the first."""
        for size in reversed(self._sizes):
            self._recorded(size, self._widths[0])

    def logits(self, batch: PackedBatch) -> Tensor | None:
        """[rows, vocabulary] in memory that the next call writes to; None where the batch is none to be replayed."""
        num_blocks = -(-int(batch.ends.max()) // BLOCK_LEN)
        if not batch.is_decode or batch.num_rows > self._sizes[-1] or num_blocks > self._widths[-1]:
            return None
        size = next(size for size in self._sizes if size >= batch.num_rows)
        width = next(width for width in self._widths if width >= num_blocks)
        recorded = self._recorded(size, width)
        if recorded is None:
            return None
        memory, recording = recorded
        memory.fill(batch, num_blocks)
        recording.replay()
        self.num_replays += 1
        return recording.output[: batch.num_rows]

    def _recorded(self, size: int, width: int) -> tuple[_StepMemory, Recording] | None:
        if self.is_broken:
            return None
        if (size, width) not in self._recordings:
            try:
                memory = _StepMemory(self._recorder, size, width, self._scratch_block)
                recording = self._recorder.record(lambda: self._compute(memory.step))
            except Exception:
                _log.warning("a decode step of %d rows cannot be recorded; steps run one by one", size, exc_info=True)
                self.is_broken = True
                self._recordings.clear()
                return None
            self._recordings[size, width] = memory, recording
        return self._recordings[size, width]
