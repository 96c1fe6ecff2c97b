"""What an engine is made of: the model that it serves and its limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from constrained.decode.scheduler import SchedulerLimits
from constrained.decode.speculation import Speculation

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ServedModel(Protocol):
    """What the engine needs of a model; `LoadedModel` is one."""

    @property
    def name(self) -> str: ...

    @property
    def hf(self) -> PreTrainedModel: ...

    @property
    def vocabulary(self) -> Any: ...

    @property
    def context_len(self) -> int: ...

    @property
    def eos_token_ids(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """`kv_bytes` bounds the KV memory, `max_waiting` the queue, `mask_rows` the rows kept on the device.

    `prefix_caching`: what was computed for one prompt is found again by others. `fuse`: on a CPU, models of the Llama family
    are computed by our own forward pass; `pack_linears`: on a CPU, all others get linear layers, gated MLPs and norms of ours.
    Both take a second copy of the weights. `cuda_graphs`: on a CUDA device, decode steps are recorded when the engine starts,
    and replayed. A sequence whose mask is `mask_patience_s` late sits the step out. One whose reader
    leaves `max_unread` tokens lying pauses until they are taken. `speculation` guesses tokens ahead; `draft_model` is the
    smaller model that it may ask, of the same vocabulary.
    """

    limits: SchedulerLimits = field(default_factory=SchedulerLimits)
    max_waiting: int = 256
    kv_bytes: int = 2 << 30
    mask_rows: int = 4096
    prefix_caching: bool = True
    fuse: bool = True
    pack_linears: bool = True
    cuda_graphs: bool = True
    mask_patience_s: float = 0.005
    max_unread: int = 2048
    speculation: Speculation | None = None
    draft_model: ServedModel | None = None
