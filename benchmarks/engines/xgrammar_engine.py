"""xgrammar with flexible whitespace (its default) and `strict_mode=False`: its default closes every object and array that the
schema leaves open, which would refuse valid documents by design. One thread; no cache between schemas."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import xgrammar

from benchmarks.engines.base import Bitmask, CompileRefusal, Sequence, no_error
from constrained.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class XGrammar:
    compiled: xgrammar.CompiledGrammar

    def sequence(self) -> Sequence:
        matcher = xgrammar.GrammarMatcher(self.compiled)
        fill_next_token_bitmask = matcher.fill_next_token_bitmask

        def fill(bitmask: Bitmask) -> None:
            fill_next_token_bitmask(bitmask, 0)

        return Sequence(fill, matcher.accept_token, no_error)


class XEngine:
    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None:
        self.version = version("xgrammar")
        info = xgrammar.TokenizerInfo(
            vocabulary.token_bytes,
            xgrammar.VocabType.RAW,
            vocab_size=vocabulary.size,
            stop_token_ids=sorted(vocabulary.eos_token_ids),
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, schema: str) -> XGrammar:
        try:
            return XGrammar(self.compiler.compile_json_schema(schema, strict_mode=False))
        except (RuntimeError, ValueError) as error:
            raise CompileRefusal(str(error).strip().split("\n")[0], str(error)) from error


ENGINE = XEngine
