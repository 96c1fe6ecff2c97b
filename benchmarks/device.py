"""What the constraint costs on a device: decode steps of a model of 8B parameters with random weights, no network needed.

    python benchmarks/device.py [--batches 1,8,64,256] [--steps 20] [--device cuda] [--small]

Method
    The model has the shape of Llama 3.1 8B and its vocabulary of 128,256; weights are random, since no text is judged. For
    each batch size all sequences stand at `--context` tokens. Sides take turns, step by step, and a figure is the median.
    "free" is forward, argmax and the copy of the tokens to the host; its forward pass is recorded once and replayed (a CUDA
    graph), as the engine's decode steps are. "eager" is the same launched kernel by kernel. "masked" is "free" with rows in
    the device table: the step sends row ids. "uploaded" builds and sends a whole bitmask each step, as engines without such
    a table do. "kernel" and "torch" are the fused mask and temperature alone, by Triton and by torch. "forced" is one step of
    eight tokens a sequence, to eight steps of one.

Checks, each fatal
    The replayed step's logits are the eager one's but for rounding. Every masked token is allowed by its row; uploaded and
    masked agree; Triton equals torch.

`--small` runs everything at small shapes, on a CPU too, where a replay calls the step anew: a test of the script, no
measurement. Prints a table and one line
of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig

from benchmarks.decode_runs import CheckError
from constrained.decode import masking
from constrained.decode.batch import Span
from constrained.decode.graphs import CudaRecorder, HostRecorder
from constrained.decode.runner import ModelRunner

NUM_FORCED = 8
_TOLERANCE = 3e-2  # relative, of logits in bfloat16 that kernels of other shapes may have summed in another order
EIGHT_B: dict[str, Any] = {
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
}
SMALL: dict[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds at one batch size.

    `graph_ratio` is an eager step to a replayed one, `share` what masks add to a free step, `upload_share` what a bitmask sent
    in each step adds.
    """

    batch: int
    eager_ms: float
    free_ms: float
    masked_ms: float
    uploaded_ms: float
    graph_ratio: float
    share: float
    upload_share: float
    kernel_ms: float
    torch_ms: float
    forced_ratio: float


def make_model(shape: dict[str, Any], device: torch.device) -> Any:
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = LlamaConfig(**shape, bos_token_id=None, eos_token_id=None, tie_word_embeddings=False)
    torch.manual_seed(0)
    with device:
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]
    return model.eval().requires_grad_(False)


def random_table(num_rows: int, vocab_size: int) -> Tensor:
    """Row 0 allows all; the others allow about a token in sixteen."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, 2**32, (4, num_rows, -(-vocab_size // 32)), np.uint64).astype(np.uint32)
    rows = np.bitwise_and.reduce(words, axis=0)
    rows[0] = 0xFFFFFFFF
    return torch.from_numpy(rows.view(np.int32))


class Bench:
    """One model with the memory for `batch` sequences of `context` tokens."""

    def __init__(self, model: Any, batch: int, context: int, table: Tensor) -> None:
        self.batch, self.context = batch, context
        self.blocks_each = -(-(context + NUM_FORCED) // ModelRunner.block_len)
        num_tokens = batch * self.blocks_each * ModelRunner.block_len
        self.runner = ModelRunner(model, "random", 1 << 36, num_tokens, portable=True)
        device = self.runner.device
        self.runner.record(CudaRecorder(device) if device.type == "cuda" else HostRecorder(), batch, context + NUM_FORCED)
        self.table = table.to(self.runner.device)
        self.host_table = table
        self.slots = torch.arange(batch) % (len(table) - 1) + 1

    def spans(self, num_tokens: int) -> list[Span]:
        return [
            Span([7 + i] * num_tokens, self.context, range(i * self.blocks_each, (i + 1) * self.blocks_each), 1)
            for i in range(self.batch)
        ]

    def eager(self) -> list[int]:
        return [int(token) for token in self._eager_logits().argmax(dim=-1).tolist()]

    def _eager_logits(self) -> Tensor:
        graphs, self.runner.graphs = self.runner.graphs, None
        try:
            return self.runner.forward(self.spans(1))
        finally:
            self.runner.graphs = graphs

    def free(self) -> list[int]:
        return [int(token) for token in self.runner.forward(self.spans(1)).argmax(dim=-1).tolist()]

    def masked(self) -> list[int]:
        logits = self.runner.forward(self.spans(1))
        return self._best(logits, self.table, self.slots.to(logits.device, non_blocking=True))

    def uploaded(self) -> list[int]:
        logits = self.runner.forward(self.spans(1))
        bitmask = self.host_table[self.slots].to(logits.device, non_blocking=True)
        return self._best(logits, bitmask, torch.arange(self.batch, device=logits.device))

    def _best(self, logits: Tensor, table: Tensor, slots: Tensor) -> list[int]:
        ones = torch.ones(len(slots), device=logits.device)
        return [int(token) for token in masking.masked_scores(logits, table, slots, ones).argmax(dim=-1).tolist()]

    def forced(self) -> None:
        self.runner.forward(self.spans(NUM_FORCED)).argmax(dim=-1).tolist()

    def check(self) -> None:
        if self.runner.graphs is None or self.runner.graphs.is_broken:
            raise CheckError("the decode step could not be recorded")
        eager = self._eager_logits().float()
        distance = float((self.runner.forward(self.spans(1)).float() - eager).norm() / eager.norm())
        if not distance <= _TOLERANCE:
            raise CheckError(f"a replayed step's logits differ from the eager one's by {distance:.2g} (relative)")
        masked = self.masked()
        for token, slot in zip(masked, self.slots.tolist(), strict=True):
            if not (int(self.host_table[slot, token // 32]) >> (token % 32)) & 1:
                raise CheckError(f"token {token} is not allowed by row {slot}")
        if masked != self.uploaded():
            raise CheckError("the uploaded bitmask gives other tokens than the table")


def timed(actions: Sequence[Callable[[], object]], steps: int, device: torch.device) -> list[float]:
    """Median milliseconds of each action, in turns."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(steps):
        for action, each in zip(actions, times, strict=True):
            _synchronize(device)
            started = time.perf_counter()
            action()
            _synchronize(device)
            each.append((time.perf_counter() - started) * 1e3)
    return [statistics.median(each[len(each) // 5 :]) for each in times]


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(model: Any, batch: int, table: Tensor, options: argparse.Namespace) -> Row:
    bench = Bench(model, batch, options.context, table)
    bench.check()
    device = bench.runner.device
    sides = [bench.eager, bench.free, bench.masked, bench.uploaded, bench.forced]
    eager, free, masked, uploaded, forced = timed(sides, options.steps, device)
    kernel, by_torch = _mask_alone(bench, options.steps)
    bench.runner.close()
    share, upload_share = masked / free - 1, uploaded / free - 1
    ratios = eager / free, share, upload_share
    return Row(batch, eager, free, masked, uploaded, *ratios, kernel, by_torch, forced / (NUM_FORCED * free))


def _mask_alone(bench: Bench, steps: int) -> tuple[float, float]:
    """Mask and temperature by the device's kernel, and by torch; they must agree."""
    logits = bench.runner.forward(bench.spans(1))
    slots = bench.slots.to(logits.device)
    inverses = torch.full((len(slots),), 1.25, device=logits.device)

    def by_kernel() -> Tensor:
        return masking.masked_scores(logits, bench.table, slots, inverses)

    def by_torch() -> Tensor:
        return masking.mask_logits(logits.float(), bench.table, slots) * inverses[:, None]

    if not torch.equal(by_kernel().isinf(), by_torch().isinf()):
        raise CheckError("the kernel's mask is not torch's")
    kernel, plain = timed([by_kernel, by_torch], steps, logits.device)
    return kernel, plain


def show(rows: list[Row], device: str) -> None:
    table = Table(title=f"milliseconds a step on {device}")
    times = ("eager", "free", "masked", "uploaded")
    heads = ("batch", *times, "eager / free", "share", "share uploaded", "kernel", "torch", "forced / steps")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            str(row.batch),
            *(f"{value:.2f}" for value in (row.eager_ms, row.free_ms, row.masked_ms, row.uploaded_ms, row.graph_ratio)),
            *(f"{value:.2%}" for value in (row.share, row.upload_share)),
            *(f"{value:.3f}" for value in (row.kernel_ms, row.torch_ms)),
            f"{row.forced_ratio:.2f}",
        )
    Console(width=120).print(table)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8,16,32,64,128,256")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--context", type=int, default=300)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--small", action="store_true", help="small shapes: a test of the script, no measurement")
    options = parser.parse_args(argv)
    device = torch.device(options.device)
    if device.type != "cuda" and not options.small:
        print("no CUDA device: only --small runs on a CPU", file=sys.stderr)
        return 2
    shape = SMALL if options.small else EIGHT_B
    model = make_model(shape, device)
    table = random_table(64, shape["vocab_size"])
    try:
        with torch.inference_mode():
            rows = [measure(model, int(batch), table, options) for batch in options.batches.split(",")]
    except CheckError as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    show(rows, name)
    print(json.dumps({"benchmark": "device", "device": name, "rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
