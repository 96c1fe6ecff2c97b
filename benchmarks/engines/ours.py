"""This project, in its default profile (flexible whitespace, declared property order, formats asserted)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import constrained
from benchmarks.engines.base import Bitmask, CompileRefusal, Sequence, no_error
from constrained import CompiledGrammar, CompileOptions, compile_json_schema, warm_up
from constrained.errors import SchemaError
from constrained.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class OurGrammar:
    compiled: CompiledGrammar

    def sequence(self) -> Sequence:
        matcher = self.compiled.matcher()
        fill_bitmask = matcher.fill_bitmask

        def fill(bitmask: Bitmask) -> None:
            fill_bitmask(bitmask, 0)

        return Sequence(fill, matcher.accept_token, no_error)


class OurEngine:
    options = CompileOptions()

    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None:
        self.version = constrained.__version__
        self.vocabulary = vocabulary
        warm_up(vocabulary)

    def compile(self, schema: str) -> OurGrammar:
        try:
            return OurGrammar(compile_json_schema(schema, self.vocabulary, self.options))
        except SchemaError as error:
            reason = f"{error.code} {error.keyword}" if error.keyword else error.code
            raise CompileRefusal(reason, error.message) from error


ENGINE = OurEngine
