"""Small stand-ins: random models, a byte vocabulary with some long tokens, and a grammar of nested arrays of digits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, PreTrainedModel

from constrained import Vocabulary

LONG_TOKENS = [b"[[[[", b"]]", b"],[", b"1,2,", b"[1", b"hello"]
EOS = 256 + len(LONG_TOKENS)
NUM_PADDING = 10


def byte_vocabulary() -> Vocabulary:
    """256 bytes, some long tokens, EOS, then ids that no document may hold."""
    tokens = [bytes([i]) for i in range(256)] + LONG_TOKENS + [b""] + [b""] * NUM_PADDING
    return Vocabulary.from_bytes(tokens, [EOS])


def tiny_config(**changes: Any) -> LlamaConfig:
    settings = {
        "vocab_size": EOS + 1 + NUM_PADDING,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": None,
        "eos_token_id": EOS,
    }
    return LlamaConfig(**(settings | changes))


def random_model(config: PreTrainedConfig, dtype: torch.dtype = torch.float32, seed: int = 0) -> PreTrainedModel:
    """A model whose weights are large enough that positions and attention matter."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).to(dtype).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.mul_(4.0)
    return model


@dataclass
class TinyModel:
    """What the engine needs of a model."""

    hf: PreTrainedModel = field(default_factory=lambda: random_model(tiny_config()))
    vocabulary: Vocabulary = field(default_factory=byte_vocabulary)
    context_len: int = 256
    eos_token_ids: frozenset[int] = frozenset({EOS})
    name: str = "tiny"


@dataclass(frozen=True)
class MockRow:
    id: int
    words: np.ndarray


@dataclass(frozen=True)
class Place:
    """Open arrays, and what may come: a value, a value or `]` (first), `,` or `]` (after), nothing (end)."""

    depth: int = 0
    phase: str = "start"

    def step(self, byte: int) -> Place | None:
        char = chr(byte)
        if char == "[" and self.phase in ("start", "value", "first"):
            return Place(self.depth + 1, "first")
        if char in "12" and self.phase in ("value", "first"):
            return Place(self.depth, "after")
        if char == "," and self.phase == "after":
            return Place(self.depth, "value")
        if char == "]" and self.phase in ("first", "after"):
            return Place(self.depth - 1, "after" if self.depth > 1 else "end")
        return None

    def run(self, data: bytes) -> Place | None:
        place: Place | None = self
        for byte in data:
            if place is None:
                return None
            place = place.step(byte)
        return place


class ArrayGrammar:
    """Nested arrays of the digits 1 and 2; the root is an array."""

    min_tokens = 3

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.row_ids: dict[bytes, int] = {}
        self.rows: dict[Place, MockRow] = {}

    def matcher(self) -> ArrayMatcher:
        return ArrayMatcher(self)

    def row(self, place: Place) -> MockRow:
        if place not in self.rows:
            bits = np.zeros(self.vocabulary.num_words * 32, np.uint8)
            for token, data in enumerate(self.vocabulary.token_bytes):
                bits[token] = bool(data) and place.run(data) is not None
            bits[EOS] = place.phase == "end"
            words = np.packbits(bits, bitorder="little").view(np.int32)
            self.rows[place] = MockRow(self.row_ids.setdefault(words.tobytes(), len(self.row_ids)), words)
        return self.rows[place]

    @cached_property
    def texts(self) -> list[bytes]:
        return self.vocabulary.token_bytes


class ArrayMatcher:
    """One sequence's place; keeps its history for rollback."""

    def __init__(self, grammar: ArrayGrammar) -> None:
        self.grammar = grammar
        self.history = [Place()]
        self.is_terminated = False

    @property
    def place(self) -> Place:
        return self.history[-1]

    @property
    def is_complete(self) -> bool:
        return self.place.phase == "end"

    @property
    def min_tokens_to_end(self) -> int:
        extra = {"start": 2, "value": 1}.get(self.place.phase, 0)
        return self.place.depth + extra + 1

    def mask_row(self) -> MockRow:
        return self.grammar.row(self.place)

    def accept_token(self, token_id: int) -> bool:
        if token_id == EOS:
            if self.is_complete and not self.is_terminated:
                self.history.append(self.place)
                self.is_terminated = True
                return True
            return False
        data = self.grammar.texts[token_id]
        place = self.place.run(data) if data else None
        if place is None:
            return False
        self.history.append(place)
        return True

    def accept_bytes(self, data: bytes) -> bool:
        place = self.place.run(data)
        if place is not None:
            self.history.append(place)
        return place is not None

    def rollback(self, n: int) -> None:
        if not 0 < n < len(self.history):
            raise ValueError(n)
        del self.history[-n:]
        self.is_terminated = False

    def fork(self) -> ArrayMatcher:
        twin = ArrayMatcher(self.grammar)
        twin.history, twin.is_terminated = list(self.history), self.is_terminated
        return twin

    def closing_token(self) -> int:
        return {"start": ord("["), "value": ord("1"), "end": EOS}.get(self.place.phase, ord("]"))

    def forced_tokens(self) -> list[int]:
        return []
