"""Does the packed, paged forward compute this model exactly? Asked once, when a model is loaded.

Two sequences of pseudo-random tokens go through in uneven chunks, prefill beside single-token steps and two of these together;
every step's logits must equal those of the model's own eager forward. A model that fails is refused: a wrong model is worse
than none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from constrained.decode.attention import ATTENTION_NAME
from constrained.decode.batch import Span
from constrained.decode.runner import ModelRunner

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Relative L2 distance of centred logits; in half precision the order of sums alone moves logits by about a percent.
_TOLERANCES = {torch.bfloat16: 6e-2, torch.float16: 2e-2}
_FLOAT_TOLERANCE = 1e-4
_LEN = 40
_CUTS = ((0, 19, 20, 21, 22, _LEN), (0, 5, 31, 32, 33, _LEN))
_BLOCKS = ((0, 2), (3, 1))


def check_model(runner: ModelRunner, change: Callable[[PreTrainedModel], object] | None = None) -> None:
    """Raises `UnsupportedModelError`. Overwrites the first blocks of the runner's memory, which must be idle.

    `change` alters the model once its own logits are recorded, so that it is judged with the rest.
    """
    _check_windows(runner)
    prompts = _prompts(runner)
    expected = _eager_logits(runner, prompts)
    if change is not None:
        change(runner.model)
    for step in range(len(_CUTS[0]) - 1):
        spans = [
            Span(prompt[cuts[step] : cuts[step + 1]], cuts[step], blocks, 1)
            for prompt, cuts, blocks in zip(prompts, _CUTS, _BLOCKS, strict=True)
        ]
        logits = runner.forward(spans)
        if runner.called_layers != list(range(_num_layers(runner))):
            raise runner.refusal(f"a step called attention layers {runner.called_layers} of {_num_layers(runner)}")
        for i, cuts in enumerate(_CUTS):
            _compare(runner, logits[i], expected[i, cuts[step + 1] - 1])


def _compare(runner: ModelRunner, got: Tensor, expected: Tensor) -> None:
    a, b = (t.float() - t.float().mean() for t in (got, expected))
    distance = float((a - b).norm() / b.norm().clamp_min(1e-20))
    if not distance <= _TOLERANCES.get(runner.dtype, _FLOAT_TOLERANCE):
        raise runner.refusal(f"its logits differ from its own eager forward pass by {distance:.2g} (relative)")


def _check_windows(runner: ModelRunner) -> None:
    """A window longer than the self-test cannot show in its logits, so what the layers asked for is compared instead."""
    config: Any = runner.model.config.get_text_config()
    window = getattr(config, "sliding_window", None) or 0
    kinds = getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"] * _num_layers(runner)
    for layer, kind in enumerate(kinds):
        if kind not in ("full_attention", "sliding_attention"):
            raise runner.refusal(f"layer {layer} is of the kind {kind!r}; only full and sliding attention are computed")
        asked = runner.recorder.traits[layer].window if layer in runner.recorder.traits else 0
        if asked != (window if kind == "sliding_attention" else 0):
            raise runner.refusal(f"layer {layer} ({kind}) asks for the window {asked}, its configuration for {window}")


def _num_layers(runner: ModelRunner) -> int:
    return int(runner.model.config.get_text_config().num_hidden_layers)


@torch.inference_mode()
def _eager_logits(runner: ModelRunner, prompts: list[list[int]]) -> Tensor:
    """[prompts, _LEN, vocabulary] by the model's own attention."""
    runner.model.set_attn_implementation("eager")
    try:
        ids = torch.tensor(prompts, device=runner.device)
        logits: Tensor = runner.model(input_ids=ids, use_cache=False).logits
    finally:
        runner.model.set_attn_implementation(ATTENTION_NAME)
    return logits


def _prompts(runner: ModelRunner) -> list[list[int]]:
    embeddings: Any = runner.model.get_input_embeddings()
    size = int(embeddings.weight.shape[0])
    return [[(7919 * (i + 1) * (j + 3) + 31 * j * j) % size for j in range(_LEN)] for i in range(2)]
