"""`warm_up`: what is paid once, the first use of every kernel and of what all grammars of a vocabulary share, paid early.

Machine code is kept on disk; the first process on a machine compiles it (about a minute), each later one loads it (about a
second). Without a warm-up the first requests would pay.
"""

from __future__ import annotations

from typing import Any

from constrained.batch import BatchMatcher
from constrained.compiled import CompiledGrammar, compile_json_schema
from constrained.options import CompileOptions
from constrained.text_grammars import compile_regex
from constrained.tokens.vocabulary import Vocabulary

# One of everything that has a kernel of its own; and regular expressions, the one format whose strings take long to learn.
_TOUR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"enum": ["blue", "blau", "bleu"]},
        "code": {"type": "string", "pattern": "^[a-z]{2}[0-9é]+$"},
        "when": {"type": "string", "format": "date-time"},
        "rule": {"type": "string", "format": "regex"},
        "text": {"type": "string", "minLength": 2, "maxLength": 40, "not": {"enum": ["ab"]}},
        "size": {"type": "number", "minimum": 0.5},
        "list": {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 2, "uniqueItems": True},
        "more": {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}, "additionalProperties": True},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
    },
    "required": ["name", "code", "when", "rule", "text", "size", "list", "more", "next"],
}
_DOCUMENT = (
    b'{"name": "blue", "code": "ab1\\u00e9", "when": "2024-02-29T10:00:00Z", '
    b'"rule": "^[a-z]+(?:x|y){2,3}$", "text": "a \\"b\\" \xc3\xa9", "size": 1.5, '
    b'"list": [1, null], "more": {"xa": true, "y": [{}], "z": 1e2}, "next": null, "a": 1, "b": {"c": []}}'
)


def warm_up(vocabulary: Vocabulary) -> None:
    """Use every kernel once, and fill what all grammars over `vocabulary` share; safe to call again, and then quick."""
    batch = BatchMatcher(vocabulary, 1)
    for options in (CompileOptions(), CompileOptions(whitespace="indented"), CompileOptions(spelling="permissive")):
        grammar = compile_json_schema(_TOUR, vocabulary, options)
        if options.whitespace == "flexible":
            _read(grammar)
        _close(grammar, batch)
    _spell(compile_regex(r"ab+|[0-9]{2}", vocabulary))


def _spell(grammar: CompiledGrammar) -> None:
    """The shortest text of a grammar over raw text, with every mask on the way."""
    matcher = grammar.matcher()
    while not matcher.is_terminated:
        _ = matcher.mask_row(), matcher.forced_tokens()
        matcher.accept_token(matcher.closing_token())


def _read(grammar: CompiledGrammar) -> None:
    """Through the document byte by byte, with every mask on the way; then in steps of some bytes."""
    matcher = grammar.matcher()
    for i in range(len(_DOCUMENT)):
        _ = matcher.mask_row(), matcher.forced_tokens(), matcher.min_tokens_to_end
        matcher.accept_bytes(_DOCUMENT[i : i + 1])
    matcher.rollback(len(_DOCUMENT) // 2)
    matcher.accept_bytes(_DOCUMENT[len(matcher.text) :])


def _close(grammar: CompiledGrammar, batch: BatchMatcher) -> None:
    """From the beginning to the shortest end, twice: in a batch, whose second turn is warm."""
    for _ in range(2):
        slot = batch.add(grammar.matcher())
        while not batch.has_ended([slot])[0]:
            _ = batch.row_ids([slot]), batch.tokens_to_end([slot])
            matcher = batch.matcher(slot).fork()
            _ = matcher.closing_row()
            batch.accept_tokens([slot], [matcher.closing_token()])
        batch.remove(slot)
