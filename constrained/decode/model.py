"""A causal language model ready to decode: weights, tokenizer, vocabulary and the chat template.

Knows nothing of grammars, schedules or requests. Any transformers causal LM works, from a local folder or the hub.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from jinja2 import TemplateError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from constrained.decode.catalogue import DEFAULT_MODEL
from constrained.decode.catalogue import ModelEntry as ModelEntry
from constrained.decode.catalogue import list_models as list_models
from constrained.decode.convert import prepare_default_model as prepare_default_model
from constrained.decode.convert import without_bars
from constrained.decode.quantized import quantize
from constrained.errors import OptionError, RequestError, UnknownModelError
from constrained.tokens.greedy import greedy_tokens
from constrained.tokens.vocabulary import Vocabulary

CHAT_END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|return|>", "<|endoftext|>")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
INT8 = "int8"
_UNLIMITED_CONTEXT_LEN = 32_768


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model in eval mode with all that decoding needs to know of it; immutable, shared between threads."""

    name: str
    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    vocabulary: Vocabulary
    context_len: int
    eos_token_ids: frozenset[int]

    @property
    def device(self) -> torch.device:
        return self.hf.device

    @property
    def dtype(self) -> torch.dtype:
        return self.hf.dtype

    @cached_property
    def takes_system_message(self) -> bool:
        """Whether the chat template has a system role (Gemma's, for one, refuses it)."""
        if self.tokenizer.chat_template is None:
            return False
        try:
            self.encode_chat([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])
        except RequestError:
            return False
        return True

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation up to the start of the answer; `RequestError` where the template refuses it."""
        if self.tokenizer.chat_template is None:
            raise RequestError(f"the model {self.name} has no chat template; send `prompt` instead of `messages`", "messages")
        conversation = [dict(message) for message in messages]
        for message in conversation:
            _refuse_surrogates(message["content"], "messages")
        try:
            ids = self.tokenizer.apply_chat_template(conversation, add_generation_prompt=True, return_dict=False)
        except TemplateError as error:
            raise RequestError(f"the chat template of {self.name} refuses these messages: {error}", "messages") from error
        return cast("list[int]", ids)

    def encode_text(self, prompt: str) -> list[int]:
        """Token ids of plain text, with the tokenizer's own beginning-of-sequence token where it has one."""
        _refuse_surrogates(prompt, "prompt")
        return cast("list[int]", self.tokenizer.encode(prompt))

    def encode_prefix(self, prefix: bytes) -> list[int]:
        """Tokens that spell `prefix` exactly: the tokenizer's own, or the longest at each place where those say otherwise."""
        chosen = cast("list[int]", self.tokenizer.encode(prefix.decode("utf-8", "ignore"), add_special_tokens=False))
        if b"".join(self.vocabulary.token_bytes[token] for token in chosen) == prefix:
            return chosen
        return greedy_tokens(self.vocabulary.trie, prefix)


def _refuse_surrogates(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"{field} holds a lone surrogate at character {error.start}: it is not Unicode text", field
        ) from error


def load_model(name_or_path: str | Path | None = None, dtype: str | None = None, device: str | None = None) -> LoadedModel:
    """A model by local folder, hub id or the default's name (None: the default, converted first where it must be).

    `dtype` is a key of `DTYPES`, "auto" (the model's own) or "int8" (weights alone, on a CPU; all else as with None); None is
    bfloat16 on a CPU that computes in it, float32 on other CPUs, the model's own on CUDA. `device` is CUDA where there is one,
    unless given. Raises `UnknownModelError`, `OptionError`, `VocabularyError`.
    """
    place = _device(device)
    number_type = _dtype(None if dtype == INT8 else dtype, place)
    if dtype == INT8 and place.type != "cpu":
        raise OptionError(f"int8 weights are computed on a CPU only, not on {place}", "dtype")
    name, source = _resolve(name_or_path)
    config = _causal_lm_config(name, source)
    hf, tokenizer = _weights_and_tokenizer(name, source, config, number_type)
    hf.to(place)  # type: ignore[arg-type]
    hf.eval().requires_grad_(False)  # type: ignore[no-untyped-call]
    if dtype == INT8:
        quantize(hf)
    eos_token_ids = _eos_token_ids(hf, tokenizer)
    num_logits = int(hf.get_output_embeddings().weight.shape[0])  # type: ignore[no-untyped-call]
    vocabulary = Vocabulary.from_tokenizer(tokenizer, size=num_logits, eos_token_ids=eos_token_ids)
    return LoadedModel(name, hf, tokenizer, vocabulary, _context_len(config, tokenizer), eos_token_ids)


def _resolve(name_or_path: str | Path | None) -> tuple[str, str]:
    """(the name that requests use, what transformers loads from)"""
    if name_or_path is None or str(name_or_path) == DEFAULT_MODEL:
        return DEFAULT_MODEL, str(prepare_default_model())
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UnknownModelError(
                f"the folder {str(name_or_path)!r} holds no config.json: it is not a transformers model", "model"
            )
        return folder.resolve().name, str(folder)
    return str(name_or_path), str(name_or_path)


def _causal_lm_config(name: str, source: str) -> Any:
    try:
        config = AutoConfig.from_pretrained(source)
    except (OSError, ValueError) as error:
        raise UnknownModelError(
            f"the model {name!r} is neither a local folder nor a hub id that can be reached: {_first_line(error)}", "model"
        ) from error
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise UnknownModelError(f"the model {name!r} is a {config.model_type!r}; a causal language model is needed", "model")
    return config


def _weights_and_tokenizer(
    name: str, source: str, config: Any, dtype: torch.dtype | str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    # A download keeps its bars; reading local files takes a second or two and needs none.
    bars = without_bars() if Path(source).is_dir() else contextlib.nullcontext()
    try:
        with bars:
            hf: PreTrainedModel = AutoModelForCausalLM.from_pretrained(source, config=config, dtype=dtype)
            return hf, _tokenizer(source)
    except (OSError, ValueError) as error:
        raise UnknownModelError(f"the model {name!r} cannot be loaded: {_first_line(error)}", "model") from error


def _tokenizer(source: str) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError):
        # A folder may hold a tokenizer.json alone, or name a class that this version of transformers lacks.
        file = Path(source) / "tokenizer.json"
        if not file.is_file():
            raise
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file))  # type: ignore[no-untyped-call]
    return tokenizer


def _eos_token_ids(hf: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    generation: Any = hf.generation_config
    sources = (getattr(generation, "eos_token_id", None), hf.config.get_text_config().eos_token_id, tokenizer.eos_token_id)
    named = {i for source in sources for i in _ids(source)}
    chat_ends = {tokenizer.get_added_vocab().get(token) for token in CHAT_END_TOKENS}
    return frozenset(named | {i for i in chat_ends if i is not None})


def _ids(value: int | Iterable[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)


def _context_len(config: Any, tokenizer: PreTrainedTokenizerBase) -> int:
    declared = getattr(config.get_text_config(), "max_position_embeddings", None) or tokenizer.model_max_length
    return min(int(declared), _UNLIMITED_CONTEXT_LEN) if declared > 10**9 else int(declared)


def _device(device: str | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise OptionError(f"{device!r} is not a device of this machine: {_first_line(error)}", "device") from error
    return place


def _dtype(dtype: str | None, device: torch.device) -> torch.dtype | str:
    if dtype is None:
        if device.type != "cpu":
            return "auto"
        return torch.bfloat16 if cpu_computes_bfloat16() else torch.float32
    if dtype == "auto":
        return dtype
    if dtype not in DTYPES:
        raise OptionError(f"{dtype!r} is not one of auto, {', '.join(DTYPES)}, {INT8}", "dtype")
    return DTYPES[dtype]


def cpu_computes_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself (avx512_bf16 or amx); elsewhere it is slower than float32."""
    features = torch.cpu.get_capabilities()
    return bool(features.get("avx512_bf16") or features.get("amx_bf16"))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
