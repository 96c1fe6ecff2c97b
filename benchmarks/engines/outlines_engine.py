"""outlines-core with its defaults: the schema becomes a regular expression, and that an index over the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import outlines_core
from outlines_core.json_schema import build_regex_from_schema

from benchmarks.engines.base import Bitmask, CompileRefusal, Sequence, no_error
from constrained.tokens.rows import set_bits
from constrained.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class OutlinesGrammar:
    index: outlines_core.Index

    def sequence(self) -> Sequence:
        guide = outlines_core.Guide(self.index)

        def fill(bitmask: Bitmask) -> None:
            bitmask[0] = 0
            set_bits(bitmask[0].view(np.uint32), np.array(guide.get_tokens(), np.int32))

        def accept(token_id: int) -> bool:
            try:
                guide.advance(token_id, False)
            except ValueError:
                return False
            return True

        return Sequence(fill, accept, no_error)


class OutlinesEngine:
    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None:
        self.version = version("outlines-core")
        ids: dict[bytes, list[int]] = {}
        for token_id, data in enumerate(vocabulary.token_bytes):
            if data:
                ids.setdefault(data, []).append(token_id)
        self.vocabulary = outlines_core.Vocabulary(min(vocabulary.eos_token_ids), ids)

    def compile(self, schema: str) -> OutlinesGrammar:
        try:
            return OutlinesGrammar(outlines_core.Index(build_regex_from_schema(schema), self.vocabulary))
        except ValueError as error:
            raise CompileRefusal(str(error).strip().split("\n")[0], str(error)) from error


ENGINE = OutlinesEngine
