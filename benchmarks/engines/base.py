"""What an engine has to offer to be measured. The calls are thin: what they add to a time is a Python call each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from constrained.tokens.vocabulary import Vocabulary

Bitmask = NDArray[np.int32]  # [1, num_words]


class CompileRefusal(Exception):
    """The engine does not compile this schema; `reason` is short, and the same for the same cause."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Sequence:
    """One document's position: `fill(bitmask)` writes row 0, `accept(token_id)` advances and says whether it could."""

    fill: Callable[[Bitmask], object]
    accept: Callable[[int], bool]
    error: Callable[[], str]


class Grammar(Protocol):
    """One compiled schema."""

    def sequence(self) -> Sequence:
        """A sequence at the start of a document; at most one is in use at a time."""


class Engine(Protocol):
    """One engine over one vocabulary; `tokenizer_file` is its tokenizer.json, None for a vocabulary of single bytes."""

    version: str

    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None: ...

    def compile(self, schema: str) -> Grammar:
        """From the schema's text; raises `CompileRefusal`."""


def no_error() -> str:
    return ""
