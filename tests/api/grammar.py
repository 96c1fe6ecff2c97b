"""Grammars over a vocabulary of single bytes, for a service without a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from api.sources import compile_source
from constrained import Vocabulary

if TYPE_CHECKING:
    from constrained import CompiledGrammar, CompileOptions

EOS_TOKEN_ID = 256


@cache
def byte_vocabulary() -> Vocabulary:
    """A token for each byte, and the end."""
    return Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), b""], [EOS_TOKEN_ID])


def compile_with_bytes(schema: Any, options: CompileOptions) -> CompiledGrammar:
    return compile_source(schema, byte_vocabulary(), options)
