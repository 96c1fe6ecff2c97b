"""`Vocabulary`: the bytes of every token id, and which ids end a document.

Knows nothing of grammars. A tokenizer is asked once for its bytes; what is kept of it is its way to spell a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from constrained.errors import VocabularyError
from constrained.tokens.encoder import Encode, encoder_of
from constrained.tokens.tokenizer import bytes_of_tokens

if TYPE_CHECKING:
    from constrained.tokens.trie import Trie


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Token bytes by id, as many as the model's logits have columns; immutable, equal by `fingerprint`.

    `token_bytes[i]` is `b""` for every id that no document may hold: special tokens (EOS among them) and padding ids.
    Several ids may have the same bytes. `encode` is the tokenizer's own spelling of a text in the middle of a document,
    None where no tokenizer is known; it is no part of what makes vocabularies equal.
    """

    token_bytes: list[bytes] = field(repr=False)
    eos_token_ids: frozenset[int]
    encode: Encode | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.eos_token_ids:
            raise VocabularyError("no end-of-sequence token: at least one id in eos_token_ids is needed")
        for token_id in self.eos_token_ids:
            if not 0 <= token_id < self.size:
                raise VocabularyError(f"the end-of-sequence id {token_id} is outside of 0 to {self.size - 1}")

    @classmethod
    def from_bytes(cls, token_bytes: Sequence[bytes], eos_token_ids: Iterable[int], encode: Encode | None = None) -> Vocabulary:
        """From the bytes of each id; those of the end-of-sequence ids are set to `b""`."""
        eos = frozenset(map(_checked_id, eos_token_ids))
        tokens = [_checked_bytes(token_id, token) for token_id, token in enumerate(token_bytes)]
        return cls([b"" if token_id in eos else token for token_id, token in enumerate(tokens)], eos, encode)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, size: int | None = None, eos_token_ids: Iterable[int] = ()) -> Vocabulary:
        """From a transformers tokenizer: byte-level BPE, or SentencePiece with byte fallback; any other is a `VocabularyError`.

        `size`: the number of logits of the model (default: the highest token id + 1). Ids from there on cannot be sampled
        and are dropped; ids that the tokenizer lacks are padding. `eos_token_ids` join the tokenizer's own.

        Special tokens stand for no text; other added tokens are their literal text. With a SentencePiece tokenizer that puts a
        dummy prefix before a text, the bytes of its tokens are that text with one blank before it.
        """
        own = tokenizer.eos_token_id
        eos = [*eos_token_ids, *([] if own is None else [own])]
        known = bytes_of_tokens(tokenizer)
        num_rows = max(known, default=-1) + 1 if size is None else size
        return cls.from_bytes([known.get(token_id, b"") for token_id in range(num_rows)], eos, encoder_of(tokenizer, known))

    @property
    def size(self) -> int:
        """Number of token ids: columns of the logits, set bits of a row at most."""
        return len(self.token_bytes)

    @property
    def num_words(self) -> int:
        """Length of a bitmask row in int32 words."""
        return (self.size + 31) // 32

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that defines the vocabulary; the same on every machine."""
        digest = hashlib.sha256(f"{self.size} {sorted(self.eos_token_ids)} ".encode())
        digest.update(np.fromiter(map(len, self.token_bytes), "<u4", self.size).tobytes())
        digest.update(b"".join(self.token_bytes))
        return digest.hexdigest()

    @cached_property
    def trie(self) -> Trie:
        """The token trie, built when first asked for."""
        from constrained.tokens.trie import Trie

        return Trie.build(self.token_bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _checked_id(token_id: int) -> int:
    if isinstance(token_id, bool) or not isinstance(token_id, int | np.integer):
        raise VocabularyError(f"an end-of-sequence id must be an integer, found {token_id!r}")
    return int(token_id)


def _checked_bytes(token_id: int, token: bytes) -> bytes:
    if not isinstance(token, bytes):
        raise VocabularyError(f"token {token_id} must be bytes, found {type(token).__name__}: {token!r}")
    return token
