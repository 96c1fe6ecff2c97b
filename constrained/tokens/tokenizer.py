"""Exact bytes of every token of a transformers tokenizer, or a `VocabularyError` that names its kind.

The kind is read from the parts that the tokenizer is made of (model, pre-tokenizer, decoder), never from class names of
models: what decides is how the decoder turns a token into text. Imports neither transformers nor tokenizers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from constrained.errors import VocabularyError
from constrained.tokens import byte_level, sentencepiece

ACCEPTED = "byte-level BPE (GPT-2, Llama 3, Qwen) or SentencePiece with byte fallback (Llama 2, Gemma)"
_SENTENCEPIECE_STEPS = {"Replace", "Metaspace", "ByteFallback", "Fuse", "Strip"}


def bytes_of_tokens(tokenizer: Any) -> dict[int, bytes]:
    """Bytes by token id; `b""` for special tokens and the unknown token, which stand for no text."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        tokens = _of_backend(backend)
    elif hasattr(tokenizer, "sp_model"):
        tokens = _of_sentencepiece(tokenizer)
    else:
        found = type(tokenizer).__name__
        raise VocabularyError(f"{found} has no backend to read token bytes from; accepted: {ACCEPTED}")
    return tokens | dict.fromkeys(tokenizer.all_special_ids, b"")


def _with_added(tokens: dict[int, bytes], added_tokens: dict[int, Any]) -> dict[int, bytes]:
    """The model's own tokens and those added to it: literal text where they are new, nothing where they are special."""
    literal = {token_id: added.content.encode() for token_id, added in added_tokens.items()}
    special = [token_id for token_id, added in added_tokens.items() if added.special]
    return literal | tokens | dict.fromkeys(special, b"")


# The Rust backend of the `tokenizers` library


def _of_backend(backend: Any) -> dict[int, bytes]:
    decode = _decode_function(backend)
    vocab: dict[str, int] = backend.get_vocab(with_added_tokens=False)
    tokens = {token_id: decode(token) for token, token_id in vocab.items()}
    unknown = getattr(backend.model, "unk_token", None)
    if unknown in vocab:
        tokens[vocab[unknown]] = b""
    return _with_added(tokens, backend.get_added_tokens_decoder())


def _decode_function(backend: Any) -> Callable[[str], bytes]:
    model = _model(backend)
    decoder = _steps(backend.decoder, "decoders")
    encoder = _steps(backend.normalizer, "normalizers") + _steps(backend.pre_tokenizer, "pretokenizers")
    if _is_byte_level(model, decoder, encoder):
        return byte_level.decode
    if _is_sentencepiece(model, decoder):
        return sentencepiece.decode
    raise VocabularyError(
        f"the bytes of this tokenizer's tokens cannot be known exactly: {_kind(model, decoder)}; accepted: {ACCEPTED}"
    )


def _kind(model: dict[str, Any], decoder: list[dict[str, Any]]) -> str:
    """What the parts of a tokenizer are, in words."""
    fallback = "with" if model.get("byte_fallback") else "without"
    names = ", ".join(step["type"] for step in decoder) or "no"
    prefix, suffix = model.get("continuing_subword_prefix"), model.get("end_of_word_suffix")
    markers = (f", inside of a word {prefix!r}" if prefix else "") + (f", end of word {suffix!r}" if suffix else "")
    return f"{model['type']} model {fallback} byte fallback, {names} decoder{markers}"


def _is_byte_level(model: dict[str, Any], decoder: list[dict[str, Any]], encoder: list[dict[str, Any]]) -> bool:
    return (
        model["type"] == "BPE"
        and not model.get("continuing_subword_prefix")
        and not model.get("end_of_word_suffix")
        and [step["type"] for step in decoder] == ["ByteLevel"]
        and any(step["type"] == "ByteLevel" for step in encoder)
    )


def _is_sentencepiece(model: dict[str, Any], decoder: list[dict[str, Any]]) -> bool:
    names = [step["type"] for step in decoder]
    return (
        bool(model.get("byte_fallback"))
        and "ByteFallback" in names
        and _SENTENCEPIECE_STEPS.issuperset(names)
        and ("Strip" not in names or "Fuse" in names[: names.index("Strip")])
        and any(_writes_blanks(step) for step in decoder)
        and all(_writes_blanks(step) for step in decoder if step["type"] in ("Replace", "Metaspace"))
    )


def _writes_blanks(step: dict[str, Any]) -> bool:
    """Whether a decoder's step turns U+2581, and nothing else, into a blank."""
    if step["type"] == "Metaspace":
        return bool(step["replacement"] == sentencepiece.BLANK)
    return bool(step == {"type": "Replace", "pattern": {"String": sentencepiece.BLANK}, "content": " "})


def _steps(part: Any, children: str) -> list[dict[str, Any]]:
    """The flat list of steps of a normalizer, pre-tokenizer or decoder."""
    return [] if part is None else _flatten(json.loads(part.__getstate__()), children)


def _flatten(part: dict[str, Any], children: str) -> list[dict[str, Any]]:
    if part["type"] != "Sequence":
        return [part]
    return [step for child in part[children] for step in _flatten(child, children)]


def _model(backend: Any) -> dict[str, Any]:
    """The model's settings; its vocabulary is not serialised where the binding tells them one by one (megabytes)."""
    model = backend.model
    if not hasattr(model, "byte_fallback"):
        return dict(json.loads(model.__getstate__()))
    names = ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix")
    return {"type": type(model).__name__} | {name: getattr(model, name) for name in names}


# The Python tokenizers over a sentencepiece processor


def _of_sentencepiece(tokenizer: Any) -> dict[int, bytes]:
    processor = tokenizer.sp_model
    pieces = range(processor.get_piece_size())
    if not any(map(processor.is_byte, pieces)):
        raise VocabularyError(f"SentencePiece model without byte fallback; accepted: {ACCEPTED}")
    tokens = {}
    for piece_id in pieces:
        piece = processor.id_to_piece(piece_id)
        no_text = processor.is_control(piece_id) or processor.is_unknown(piece_id) or processor.is_unused(piece_id)
        tokens[tokenizer.convert_tokens_to_ids(piece)] = b"" if no_text else sentencepiece.decode(piece)
    return _with_added(tokens, tokenizer.added_tokens_decoder)
