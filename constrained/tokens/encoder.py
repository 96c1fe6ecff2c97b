"""The tokenizer's own way to spell a text, as a plain function: what forced text is spelled with.

Imports neither transformers nor tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any

Encode = Callable[[str], list[int]]

# Stands before a text where the tokenizer would put a blank of its own; no common merge goes across it.
_ANCHOR = "\n"


def encoder_of(tokenizer: Any, token_bytes: Mapping[int, bytes]) -> Encode:
    """Token ids of a text as it would stand in the middle of a document, without special tokens or a dummy prefix.

    Safe between threads for a tokenizer with a Rust backend. What the ids spell is for the caller to check: a normalizer
    may change a text, and a special token's name in it becomes that token.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    encode = partial(_encode_slow, tokenizer) if backend is None else _OwnBackend(backend)
    added = b"".join(token_bytes.get(token, b"") for token in _encode_slow(tokenizer, "a")).removesuffix(b"a")
    return partial(_encode_anchored, encode, token_bytes, added + _ANCHOR.encode()) if added else encode


class _OwnBackend:
    """A Rust backend, copied at the first use: one that its tokenizer sets up for padding meanwhile refuses to encode."""

    def __init__(self, backend: Any) -> None:
        self._source = backend
        self._copy: Any = None
        self._lock = Lock()

    def __call__(self, text: str) -> list[int]:
        if self._copy is None:
            with self._lock:
                if self._copy is None:
                    self._copy = type(self._source).from_str(self._source.to_str())
                    self._copy.no_truncation()
        return list(self._copy.encode(text, add_special_tokens=False).ids)


def _encode_slow(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def _encode_anchored(encode: Encode, token_bytes: Mapping[int, bytes], before: bytes, text: str) -> list[int]:
    """Without the tokens that spell what the tokenizer puts before a text, and the anchor."""
    tokens = encode(_ANCHOR + text)
    spelled = b""
    for count, token in enumerate(tokens, 1):
        spelled += token_bytes.get(token, b"")
        if len(spelled) >= len(before):
            return tokens[count:] if spelled == before else tokens
    return tokens
