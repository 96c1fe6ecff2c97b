"""Small vocabularies and the `check` that grammar tests read as prose."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from constrained import CompiledGrammar, CompileOptions, Matcher, Vocabulary, compile_json_schema
from constrained.options import Limits

# Tokens that end strings, keys and frames in the middle, and begin others: where masks go wrong if anywhere.
AWKWARD = [
    b'{"', b'":', b'","', b'": "', b'"}', b'", "', b"name", b'"name"', b"true", b"null", b"false", b"123", b"  ", b"\n  ",
    b'"a":1,"a"', b"\\u00", b'\\"', b'"b":', b',"b":', b'"},{"', b'":""', b'","b":"', "é".encode(), b'ab"', b'a","a":', b"[]",
    b'},"a":', b'":1,"', b'":{"a":1}}', b'"x","y"', b"]}", b"}]", b"},{", b"1,2", b"0.5", b"-", b"e+", b"\\ud83d", b"\\ude00",
    b"\xf0\x9f", b'"a":{"a":', b"{}", b'""', b'"":', b'a":null,"b":null', b"tr", b"ue,",
    b"\r\n", b"\r", b"u006", b"1\\u00", b'\\u0061"', b'61":', b"\\u0062\":1,",
]  # fmt: skip


@cache
def byte_vocabulary() -> Vocabulary:
    """One token a byte, and EOS."""
    return Vocabulary.from_bytes([bytes([byte]) for byte in range(256)] + [b""], [256])


@cache
def awkward_vocabulary() -> Vocabulary:
    """Every byte, `AWKWARD`, a padding id and EOS."""
    tokens = [bytes([byte]) for byte in range(256)] + AWKWARD + [b"", b""]
    return Vocabulary.from_bytes(tokens, [len(tokens) - 1])


PATIENT = Limits(timeout_s=600.0)
"""What is refused does not hang on how fast a busy machine compiles: some schemas of MaskBench take seconds on a free one."""


def grammar_of(schema: Any, vocabulary: Vocabulary | None = None, **options: Any) -> CompiledGrammar:
    return compile_json_schema(schema, vocabulary or byte_vocabulary(), CompileOptions(**{"limits": PATIENT, **options}))


def accepts(grammar: CompiledGrammar, text: str | bytes) -> bool:
    """Whether the whole text goes through byte by byte and may end there."""
    matcher = grammar.matcher()
    data = text.encode() if isinstance(text, str) else text
    return all(matcher.accept_token(byte) for byte in data) and matcher.is_accepting


def check(schema: Any, accepts: list[Any], rejects: list[Any], **options: Any) -> None:
    """Every value of `accepts` goes through, none of `rejects`; `Raw` texts as they are, others as Python prints them."""
    grammar = grammar_of(schema, **options)
    for value in accepts:
        assert _accepts(grammar, value), f"refused: {_text(value)}"
    for value in rejects:
        assert not _accepts(grammar, value), f"accepted: {_text(value)}"


class Raw(str):
    """JSON text, not a value."""


def _text(value: Any) -> str:
    return value if isinstance(value, Raw) else json.dumps(value, ensure_ascii=False)


def _accepts(grammar: CompiledGrammar, value: Any) -> bool:
    return accepts(grammar, _text(value))


def random_choice(matcher: Matcher, vocabulary: Vocabulary, pick: Any) -> int:
    """A token that the mask allows, longer ones more often; `pick` is a `random.Random`."""
    words = matcher.mask_row().words
    allowed = [i for i in range(vocabulary.size) if words[i >> 5] >> (i & 31) & 1]
    assert allowed, f"dead end after {matcher.text!r}"
    long = [token for token in allowed if token >= 256]
    return int(pick.choice(long if long and pick.random() < 0.5 else allowed))
