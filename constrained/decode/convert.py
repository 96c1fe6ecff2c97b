"""The default model, unpacked once from its GGUF file to bfloat16 safetensors in the user's cache folder.

Knows nothing of other models: those are loaded as they are.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.utils import logging as hf_logging

from constrained.decode.catalogue import default_model_folder, default_model_gguf

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the whole that is done, 0 to 1."""


def _silent(_stage: str, _share: float) -> None:
    pass


def prepare_default_model(progress: Progress = _silent) -> Path:
    """The folder of the converted default model, converting it first where it is missing (about 20 s, 1 GB of memory).

    Safe against interruption and against another process that does the same: the folder appears whole, by one rename.
    """
    target = default_model_folder()
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converting-") as scratch:
            made = Path(scratch) / target.name
            _convert(default_model_gguf(), made, progress)
            _publish(made, target)
    progress("ready", 1.0)
    return target


def _convert(gguf: Path, folder: Path, progress: Progress) -> None:
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    # The GGUF reader draws a bar of its own on stderr that no switch turns off; `progress` stands in for it.
    with without_bars(), contextlib.redirect_stderr(io.StringIO()):
        progress("reading the tokenizer", 0.02)
        tokenizer = AutoTokenizer.from_pretrained(**source)
        _split_digits(tokenizer)
        progress("unpacking the weights", 0.3)
        model = AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
        progress("writing safetensors", 0.95)
        tokenizer.model_max_length = model.config.max_position_embeddings
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Keeps the progress bars of transformers off the terminal while the block runs."""
    were_on = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if were_on:
            hf_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _split_digits(tokenizer: Any) -> None:
    # The file names its pre-tokenizer ("smollm": every digit alone, then byte-level BPE), but transformers reads all
    # GGUF files of this kind as plain byte-level BPE, which cuts blanks before numbers differently than in training.
    steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(steps)


def _publish(made: Path, target: Path) -> None:
    try:
        os.rename(made, target)
    except OSError:
        if not target.is_dir():  # otherwise another process was first, and its folder is as good
            raise
