"""`warm_up`: what is paid once, the first use of every kernel and of what all grammars of a vocabulary share, paid early.

Machine code is kept on disk; the first process on a machine compiles it (about a minute), each later one loads it (about a
second). Without a warm-up the first requests would pay.
"""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np

from constrained.automaton.contents import shared_contents
from constrained.automaton.cuts import ASKED_BEFORE
from constrained.automaton.strings import AFTER_BACKSLASH, FIRST_UNIT, FREE, MODE_SHIFT
from constrained.automaton.vocabulary_rows import rows_of
from constrained.batch import BatchMatcher
from constrained.compiled import CompiledGrammar, compile_json_schema
from constrained.huge_pages import collapse
from constrained.options import CompileOptions
from constrained.text_grammars import compile_regex
from constrained.tokens.vocabulary import Vocabulary

# One of everything that has a kernel of its own; and regular expressions, the one format whose strings take long to learn.
_TOUR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"enum": ["blue", "blau", "bleu"]},
        "code": {"type": "string", "pattern": "^[a-z]{2}[0-9é]+$", "maxLength": 6},
        "when": {"type": "string", "format": "date-time"},
        "rule": {"type": "string", "format": "regex"},
        "text": {"type": "string", "minLength": 2, "maxLength": 40, "not": {"enum": ["ab"]}},
        "size": {"type": "number", "minimum": 0.5},
        "list": {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 2, "uniqueItems": True},
        "more": {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}, "additionalProperties": True},
        "kind": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"a": {"type": "string", "maxLength": 5 + index}, f"b{index}": {"type": "integer"}},
                    "required": ["a", f"b{index}"],
                    "additionalProperties": False,
                }
                for index in range(5)
            ]
        },
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
    },
    "required": ["name", "code", "when", "rule", "text", "size", "list", "more", "kind", "next"],
}
_DOCUMENT = (
    b'{"name": "blue", "code": "ab1\\u00e9", "when": "2024-02-29T10:00:00Z", '
    b'"rule": "^[a-z]+(?:x|y){2,3}$", "text": "a \\"b\\" \xc3\xa9", "size": 1.5, '
    b'"list": [1, null], "more": {"xa": true, "y": [{}], "z": 1e2}, "kind": {"a": "x", "b3": 1}, "next": null, '
    b'"a": 1, "b": {"c": []}}'
)


# Strings of the formats that schemas use most, with something of everything that they may hold.
_FORMATS = {
    "date-time": ("2024-02-29T10:00:00.123Z", "1999-12-31T23:59:59+02:00"),
    "date": ("2024-02-29", "1999-12-31"),
    "time": ("10:00:00Z", "23:59:59.5-01:30"),
    "duration": ("P1DT2H",),
    "email": ("jane.doe+x@mail.example.com", "a@b"),
    "hostname": ("www.example-1.com", "localhost", f"{'a' * 63}.{'a-' * 31}a.a{'a-' * 30}a"),
    "ipv4": ("192.168.0.1", "8.8.4.4"),
    "ipv6": ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "fe80::1", "::"),
    "uri": ("https://www.example.com:8080/path/a_b?q=1&r=%20#top", "mailto:a@b.c", "urn:isbn:1"),
    "uri-reference": ("https://example.com/a?b#c", "../a/b.json", "#/definitions/a"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
}
# Characters that patterns ask for most.
_CLASSES = (
    *("[a-z]", "[A-Z]", "[a-zA-Z]", "[0-9]", "[a-z0-9]", "[a-zA-Z0-9]", "[0-9a-f]", "[0-9a-fA-F]", "\\w", "\\S", ".", "[^/]"),
    *("[a-z0-9-]", "[a-z0-9_]", "[a-zA-Z0-9-]", "[a-zA-Z0-9_-]", "[a-zA-Z0-9_.]", "[a-zA-Z0-9_.-]", "[a-zA-Z0-9 ]", "[^ ]"),
)
# Memory for the rows of the first requests, and for places in strings of languages.
ROWS_BYTES, MAX_RESERVED, LANGUAGE_ROWS = 16 << 20, 4096, 4096
_DEFAULT_THRESHOLDS = (700, 10, 10)
_NUMBERS = (b"0", b"-1", b"42", b"1.5", b"2e8")
_COMMON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "any": {},
        "strings": {"type": "array", "items": {"anyOf": [{"type": "string", "format": name} for name in _FORMATS]}},
        **{name: {"type": "array", "items": {"type": "string", "format": name}} for name in _FORMATS},
        **{name: {"type": "array", "items": {"type": name}} for name in ("string", "integer", "number", "boolean", "null")},
        **{name: {"type": "array", "items": {"type": "string", "pattern": f"^{name}+$"}} for name in _CLASSES},
        "positive": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0}},
        "parts": {"type": "array", "items": {"type": "number", "minimum": 0}},
    },
}


def warm_up(vocabulary: Vocabulary, *, huge_pages: bool = True) -> None:
    """Use every kernel once, and fill what all grammars over `vocabulary` share; safe to call again, and then quick.

    Whatever exists by then is taken out of the garbage collector's sight (`gc.freeze`): it stays as long as the process, and to
    look through it again stops a generation for a tenth of a second each time. Thresholds of the collector that nobody changed
    are raised: what generations make dies young or stays.

    With `huge_pages` the memory that the process has by then is moved onto huge pages where the system lets it, in some tenths
    of a second (`constrained.huge_pages`): a first mask waits less for memory that others pushed out of the caches.
    """
    batch = BatchMatcher(vocabulary, 1)
    for options in (CompileOptions(), CompileOptions(whitespace="indented"), CompileOptions(spelling="permissive")):
        grammar = compile_json_schema(_TOUR, vocabulary, options)
        if options.whitespace == "flexible":
            _read(grammar)
        _close(grammar, batch)
    _close_text(compile_regex(r"ab+|[0-9]{2}", vocabulary))
    _fill(vocabulary)
    rows = rows_of(vocabulary)
    _ = rows.next_items
    rows.store.reserve(min(max(ROWS_BYTES // (4 * rows.num_words), 1), MAX_RESERVED), rows.num_words)
    shared_contents("default").table.reserve(LANGUAGE_ROWS)
    _spare_the_collector()
    if huge_pages:
        collapse()


def _spare_the_collector() -> None:
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == _DEFAULT_THRESHOLDS:
        gc.set_threshold(10_000, 50, 100)


def _fill(vocabulary: Vocabulary) -> None:
    """The rows of common strings and numbers, and the shortcuts of walks: as many grammars come to them."""
    for _ in range(ASKED_BEFORE):
        grammar = compile_json_schema(_COMMON, vocabulary)
        for name in ("string", "integer", "number", "boolean", "null", "positive", "parts"):
            values = _NUMBERS if name in ("integer", "number", "positive", "parts") else (b'"a b"', b"true", b"null")
            for value in values:
                _spell(grammar, b'{"%s": [%s, %s]' % (name.encode(), value, value))
    strings, _ = rows_of(vocabulary).strings("default")
    for room in range(strings.max_len + 1):
        strings.row(FREE, 0, 0, room)
    for place, escape in [
        *((state, 0) for state in range(1, 8)),
        (0, AFTER_BACKSLASH << MODE_SHIFT),
        (0, FIRST_UNIT << MODE_SHIFT),
    ]:
        strings.row(FREE | place, escape, 0, strings.max_len)
    for name, examples in {**_FORMATS, **dict.fromkeys(_CLASSES, ("a1", "1"))}.items():
        for example in examples:
            _spell(grammar, b'{%s: ["%s"' % (json.dumps(name).encode(), example.encode()))


def _spell(grammar: CompiledGrammar, document: bytes) -> None:
    """Byte by byte as far as it is allowed, with every mask on the way."""
    matcher = grammar.matcher()
    for byte in document:
        _ = matcher.mask_row()
        if not matcher.accept_bytes(bytes([byte])):
            break


def _close_text(grammar: CompiledGrammar) -> None:
    """The shortest text of a grammar over raw text, with every mask on the way."""
    matcher = grammar.matcher()
    while not matcher.is_terminated:
        _ = matcher.mask_row(), matcher.forced_tokens()
        matcher.accept_token(matcher.closing_token())


def _read(grammar: CompiledGrammar) -> None:
    """Through the document byte by byte, with every mask on the way; then in steps of some bytes."""
    matcher = grammar.matcher()
    bitmask = np.empty((1, grammar.vocabulary.num_words), np.int32)
    for i in range(len(_DOCUMENT)):
        matcher.fill_bitmask(bitmask, 0)
        _ = matcher.forced_tokens(), matcher.min_tokens_to_end
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
