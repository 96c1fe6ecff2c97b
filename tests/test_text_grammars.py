"""Regular expressions, choices and any JSON object: masks against brute force, texts against `re` and `json`."""

from __future__ import annotations

import json
import random
import re

import pytest

from constrained import Vocabulary, compile_choice, compile_json_object, compile_json_schema, compile_regex
from constrained.errors import EmptyLanguageError, GrammarError
from tests.grammars import accepts, awkward_vocabulary, byte_vocabulary
from tests.oracles import allowed_by_mask, walk

PATTERNS = [
    r"[a-z]+(,[a-z]+)*",
    r"\d{4}-\d\d",
    r"(name|true|null)*é?",
    r"[^]*",
    r"a?",
    r"(na|é|[😀/]){1,3}me?",
    r'\{"a":[ \n]*\d+\}',
    r"(?=.*1)[a-z0-9]{2,5}(?<!3)",
    r"\u00e9[^a-y]{0,2}",
    r"",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_walks_end_in_what_the_pattern_matches(pattern: str) -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(pattern)
    grammar = compile_regex(pattern, vocabulary)
    python = pattern.replace("[^]", r"[\s\S]")
    for _ in range(10):
        text = walk(grammar, vocabulary, pick, 20)
        assert re.fullmatch(python, text, re.ASCII), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_texts_are_taken_as_python_takes_them(pattern: str) -> None:
    pick, grammar = random.Random(pattern), compile_regex(pattern, byte_vocabulary())
    python = re.compile(pattern.replace("[^]", r"[\s\S]"), re.ASCII)
    for _ in range(300):
        text = "".join(pick.choices('na,1-é😀/m{":} \nz3', k=pick.randrange(8)))
        assert accepts(grammar, text) == bool(python.fullmatch(text)), text


def test_the_whole_text_counts_and_a_quote_is_a_quote() -> None:
    grammar = compile_regex(r'"a\n"|b', byte_vocabulary())
    assert accepts(grammar, '"a\n"')
    assert accepts(grammar, "b")
    assert not accepts(grammar, '"a\\n"')
    assert not accepts(grammar, "bb")


def test_what_is_forced_and_how_short_it_is() -> None:
    grammar = compile_regex(r"name: (true|tray), 😀", awkward_vocabulary())
    matcher = grammar.matcher()
    assert matcher.forced_bytes() == b"name: tr"
    assert grammar.min_bytes == len("name: true, 😀".encode())
    assert matcher.accept_bytes("name: true, 😀".encode())
    assert matcher.is_complete


def test_rollback_is_replay() -> None:
    grammar = compile_regex(r"(ab?c|d)+", byte_vocabulary())
    matcher = grammar.matcher()
    for data in (b"ab", b"cd", b"a"):
        assert matcher.accept_bytes(data)
    fork = matcher.fork()
    matcher.rollback(2)
    assert matcher.accept_bytes(b"cda")
    assert matcher.mask_row().id == fork.mask_row().id
    assert not matcher.is_accepting


@pytest.mark.parametrize("pattern", [r"(a)\1", "(", "a**", r"\p{Foo}"])
def test_a_pattern_that_is_none_or_refused(pattern: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(repr(pattern))) as caught:
        compile_regex(pattern, byte_vocabulary())
    assert caught.value.place == "regex"


def test_a_pattern_that_nothing_matches() -> None:
    with pytest.raises(EmptyLanguageError):
        compile_regex(r"a(?!b)b", byte_vocabulary())


def test_texts_that_no_token_spells_are_left_out() -> None:
    tokens = [bytes([byte]) for byte in range(0x20, 0x7F)]
    vocabulary = Vocabulary.from_bytes([*tokens, b"\n", b""], [len(tokens) + 1])
    grammar = compile_regex(r"(\t|\n|é)x", vocabulary)
    matcher = grammar.matcher()
    assert allowed_by_mask(matcher, vocabulary) == {len(tokens)}
    with pytest.raises(EmptyLanguageError):
        compile_choice(["\t", "é"], vocabulary)


def test_a_choice_is_one_of_its_texts() -> None:
    choices = ["name", "nam", "é", "", 'a"b', "name"]
    grammar = compile_choice(choices, awkward_vocabulary())
    for text in choices:
        assert accepts(grammar, text)
    for text in ("na", "names", "e", '"name"'):
        assert not accepts(grammar, text)
    assert grammar.schema == {"type": "string", "enum": ["name", "nam", "é", "", 'a"b']}
    assert grammar.root is None
    assert grammar.property_order == ()


def test_choices_end_where_only_one_is_left() -> None:
    matcher = compile_choice(["yes", "no"], byte_vocabulary()).matcher()
    assert matcher.accept_token(ord("n"))
    assert matcher.forced_bytes() == b"o"
    assert matcher.accept_bytes(b"o")
    assert matcher.is_complete


@pytest.mark.parametrize("choices", [[], "yes", ["a", 1], ["\ud800"]])
def test_what_is_no_choice(choices: list[str]) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_choice(choices, byte_vocabulary())
    assert caught.value.place == "choice"


def test_ten_thousand_choices() -> None:
    choices = [f"item {number:05} {'x' * (number % 7)}" for number in range(10_000)]
    grammar = compile_choice(choices, byte_vocabulary())
    assert accepts(grammar, choices[1234])
    assert not accepts(grammar, "item 10000 ")


def test_a_json_object_is_any_object() -> None:
    grammar = compile_json_object(byte_vocabulary())
    for value in ({}, {"a": [1, None, {"b": "c"}]}):
        assert accepts(grammar, json.dumps(value))
    for text in ("[]", "1", '{"a":1,"a":2}', '"{}"', "null"):
        assert not accepts(grammar, text)
    assert grammar.schema_hash == compile_json_schema({"type": "object"}, byte_vocabulary()).schema_hash


def test_hashes_tell_sources_apart() -> None:
    vocabulary = byte_vocabulary()
    hashes = [compile_regex("a", vocabulary), compile_choice(["a"], vocabulary), compile_regex("b", vocabulary)]
    assert len({grammar.schema_hash for grammar in hashes}) == 3
