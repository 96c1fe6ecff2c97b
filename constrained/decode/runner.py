"""Computes logits: any transformers causal LM over packed rows and our own paged KV memory.

Knows token ids, positions and blocks; nothing of requests, grammars or sampling.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from constrained.decode.attention import ATTENTION_NAME, AttentionBackend, LayerShape, ShapeRecorder, active
from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.batch import PackedBatch, Span, pack
from constrained.decode.blocks import Copy
from constrained.decode.cpu_attention import CPU_DTYPES, CpuPagedAttention
from constrained.decode.crew import Crew
from constrained.decode.fused import FusedForward, is_fusable
from constrained.decode.graphs import DecodeGraphs, Recorder, StaticStep, sizes_up_to, widths_up_to
from constrained.decode.mask_kernels import NO_ROWS, Greedy
from constrained.decode.torch_attention import TorchPagedAttention
from constrained.errors import UnsupportedModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


_FEWEST_BLOCKS = 4


class ModelRunner:
    """Owns the KV memory of `num_blocks` blocks of `block_len` tokens and switches the model to our attention.

    With `kv_bytes` the number of blocks follows from it; `max_tokens` bounds it where fewer would do. `portable`: take the
    attention of other devices on a CPU too.
    """

    block_len = BLOCK_LEN

    def __init__(self, model: PreTrainedModel, name: str, kv_bytes: int, max_tokens: int, *, portable: bool = False) -> None:
        self.model = model
        self.name = name
        self.device = model.device
        self.dtype = model.dtype
        self.called_layers: list[int] = []  # of the last forward, in order
        self._crew = Crew(torch.get_num_threads() if self.device.type == "cpu" else 1, self.dtype)
        self._keeps_rows = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.recorder = self._probe()
        block_bytes = sum(_token_bytes(shape, self.dtype) for shape in self.recorder.layers.values()) * BLOCK_LEN
        self.num_blocks = max(_FEWEST_BLOCKS, min(kv_bytes // block_bytes, -(-max_tokens // BLOCK_LEN)))
        self._backend = self._make_backend(self.recorder.layers, portable)
        self._fused: FusedForward | None = None
        self.graphs: DecodeGraphs | None = None
        self._static_layers: list[int] = []

    @property
    def max_positions(self) -> int | None:
        """Positions that one packed row computes exactly, where the model itself bounds them.

        LongRoPE (arXiv 2402.13753) turns every position by factors that the longest sequence of a call decides; up to its
        original length all sequences of a batch agree on them.
        """
        rope = getattr(self.model.config.get_text_config(), "rope_parameters", None) or {}
        kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
        bounds = [k["original_max_position_embeddings"] for k in kinds if k.get("rope_type") == "longrope"]
        return min(bounds, default=None)

    def forward(self, spans: Seq[Span], copies: Seq[Copy] = (), greedy: Greedy = NO_ROWS) -> Tensor:
        """Logits [rows that are wanted, vocabulary] in the order of the spans; `copies` of blocks are made first.

        They hold until the next call, which may write into the same memory.
        Our own pass fills in the tokens of `greedy`, as far as it can; any other leaves them.
        """
        if copies:
            self._backend.copy_blocks(copies)
        batch = pack(spans)
        if self._fused is not None:
            return self._run_fused(self._fused, batch, greedy)
        replayed = self._replay(self.graphs, batch) if self.graphs is not None else None
        return replayed if replayed is not None else self._run(batch, self._backend)

    @property
    def is_fused(self) -> bool:
        return self._fused is not None

    def fuse(self) -> None:
        """Compute by our own forward pass from now on, where there is one for this model."""
        if isinstance(self._backend, CpuPagedAttention) and is_fusable(self.model, self.recorder.traits):
            self._fused = FusedForward(self.model, self._backend, self.recorder.traits)

    def unfuse(self) -> None:
        if self._fused is not None:
            self._fused.close()
        self._fused = None

    @property
    def reads_in_place(self) -> bool:
        """Whether decode attention is a kernel of the device's own."""
        return isinstance(self._backend, TorchPagedAttention) and self._backend.reads_in_place

    def gather(self) -> None:
        """Compute decode attention in plain torch from now on."""
        if isinstance(self._backend, TorchPagedAttention):
            self._backend.gather()

    @torch.inference_mode()
    def record(self, recorder: Recorder, most_rows: int, max_len: int) -> None:
        """Replay decode steps of up to `most_rows` sequences from now on, as long as none has more than `max_len` tokens."""
        if not isinstance(self._backend, TorchPagedAttention):
            return
        num_blocks = min(self.num_blocks, -(-max_len // BLOCK_LEN))
        widths = [num_blocks] if self.reads_in_place else widths_up_to(num_blocks)
        sizes = sizes_up_to(most_rows)
        self.graphs = DecodeGraphs(self._compute_static, recorder, sizes, widths, self._backend.scratch_block)
        self.graphs.record_all()

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Kernels and graphs of this thread go to the model's device, where there are several."""
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            yield

    def stop_replaying(self) -> None:
        self.graphs = None

    def _compute_static(self, step: StaticStep) -> Tensor:
        """Logits of all rows."""
        backend: Any = self._backend
        backend.begin_static(step)
        with active(backend) as self._static_layers:
            out = self.model(input_ids=step.token_ids[None], position_ids=step.positions[None], use_cache=False)
        logits: Tensor = out.logits[0]
        return logits

    @torch.inference_mode()
    def _replay(self, graphs: DecodeGraphs, batch: PackedBatch) -> Tensor | None:
        logits = graphs.logits(batch)
        self.called_layers = self._static_layers
        return logits

    @torch.inference_mode()
    def _run_fused(self, fused: FusedForward, batch: PackedBatch, greedy: Greedy) -> Tensor:
        self.called_layers = list(range(fused.num_layers))
        return fused.logits(batch, greedy)

    @torch.inference_mode()
    def _run(self, batch: PackedBatch, backend: AttentionBackend) -> Tensor:
        backend.begin(batch)
        rows = torch.from_numpy(batch.logit_rows).to(self.device)
        wanted = {"logits_to_keep": rows} if self._keeps_rows else {}
        with active(backend) as self.called_layers, self._crew.at_work():
            out = self.model(
                input_ids=torch.from_numpy(batch.token_ids).to(self.device)[None],
                position_ids=torch.from_numpy(batch.positions).to(self.device)[None],
                use_cache=False,
                **wanted,
            )
        logits: Tensor = out.logits[0]
        return logits if self._keeps_rows else logits[rows]

    def close(self) -> None:
        """Give the model its own attention back: it can run without an engine again."""
        self.unfuse()
        self.stop_replaying()
        self._crew.close()
        self.model.set_attn_implementation(self._own_attention)

    def _probe(self) -> ShapeRecorder:
        """One pass that learns what each attention layer keeps."""
        self._own_attention = self.model.config._attn_implementation
        self.model.set_attn_implementation(ATTENTION_NAME)
        recorder = ShapeRecorder()
        try:
            self._run(pack([Span([0, 0], 0, [0], 1)]), recorder)
        except Exception as error:
            raise self.refusal(f"its forward pass fails on a packed row: {error}") from error
        if not recorder.layers:
            raise self.refusal("none of its layers takes our attention")
        return recorder

    def refusal(self, reason: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"the model {self.name} ({type(self.model).__name__}) cannot be served: {reason}")

    def _make_backend(self, shapes: dict[int, LayerShape], portable: bool) -> AttentionBackend:
        if self.device.type == "cpu" and self.dtype in CPU_DTYPES and not portable:
            return CpuPagedAttention(shapes, self.num_blocks, self.dtype)
        return TorchPagedAttention(shapes, self.num_blocks, BLOCK_LEN, self.dtype, self.device)


def _token_bytes(shape: LayerShape, dtype: torch.dtype) -> int:
    return shape.num_kv_heads * (shape.key_dim + shape.value_dim) * dtype.itemsize
