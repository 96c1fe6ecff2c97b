"""llguidance with its defaults: flexible whitespace, declared property order, unsupported keywords refused.

Where the text is forced, its mask holds the one token that the tokenizer itself would choose; so it is given the real
tokenizer, whose choices are those of the measured instances.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llguidance
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from llguidance.numpy import fill_next_token_bitmask

from benchmarks.engines.base import CompileRefusal, Sequence
from constrained.tokens.vocabulary import Vocabulary


class SingleBytes:
    """What llguidance's `TokenizerWrapper` asks of a tokenizer, for a vocabulary in which each byte is a token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = min(vocabulary.eos_token_ids)
        self.bos_token_id = None
        self.tokens = [token or b"<end>" for token in vocabulary.token_bytes]
        self.special_token_ids = sorted(vocabulary.eos_token_ids)

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self.tokens.index(bytes([byte])) for byte in data]


class LLGrammar:
    """Keeps one matcher and resets it for each document, so that the lexer's cache stays warm between documents."""

    def __init__(self, matcher: LLMatcher) -> None:
        self.matcher = matcher

    def sequence(self) -> Sequence:
        self.matcher.reset()
        matcher = self.matcher

        def fill(bitmask: Any) -> None:
            fill_next_token_bitmask(matcher, bitmask, 0)

        return Sequence(fill, matcher.consume_token, matcher.get_error)


class LLEngine:
    def __init__(self, vocabulary: Vocabulary, tokenizer_file: Path | None) -> None:
        self.version = llguidance.__version__
        source = TokenizerWrapper(SingleBytes(vocabulary)) if tokenizer_file is None else str(tokenizer_file)
        self.tokenizer = LLTokenizer(source, n_vocab=vocabulary.size, eos_token=sorted(vocabulary.eos_token_ids))

    def compile(self, schema: str) -> LLGrammar:
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema)
        except ValueError as error:
            raise CompileRefusal(*_reason(str(error))) from error
        matcher = LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise CompileRefusal(*_reason(matcher.get_error()))
        return LLGrammar(matcher)


def _reason(message: str) -> tuple[str, str]:
    return message.strip().split("\n")[0], message


ENGINE = LLEngine
