"""The matcher: masks, accepting, rollback, closings; against brute force, replay and a validator."""

from __future__ import annotations

import json
import random
import re
import threading
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import CompiledGrammar, Matcher, Vocabulary
from constrained.errors import FuelError
from constrained.options import Limits
from tests.grammars import AWKWARD, awkward_vocabulary, byte_vocabulary, grammar_of, random_choice

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 13, "maximum": 150},
        "level": {"enum": ['bé"', "b", 1, None, {"x": [1]}]},
        "more": {"anyOf": [{"type": "string", "maxLength": 3}, {"$ref": "#"}, {"type": "array", "items": {"type": "object"}}]},
    },
    "required": ["name"],
}
OPEN = {
    "type": "object",
    "properties": {"a": {"type": "object"}},
    "additionalProperties": {"type": ["null", "integer", "object"]},
}
UNION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "a"}, "n": {"type": "number", "exclusiveMinimum": 0.5}},
            "required": ["kind", "n"],
        },
        {"type": "object", "properties": {"kind": {"enum": ["ab", "b"]}}, "additionalProperties": False},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "boolean"}, "maxItems": 3},
    ]
}
NEGATED = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "maxLength": 3, "not": {"enum": ["", "a", "ab", "na", "nam", "abc", "é"]}},
        "n": {"not": {"type": ["integer", "string", "object", "array"]}},
        "o": {"oneOf": [{"minimum": 2}, {"maximum": 4}, {"type": "string", "minLength": 2}], "not": {"type": "object"}},
    },
    "required": ["s"],
    "dependentRequired": {"n": ["o"]},
}
PATTERNS = {
    "type": "object",
    "properties": {
        "p": {"type": "string", "pattern": r"^(na|é|[😀/]){1,3}me?$"},
        "d": {"type": "string", "format": "date"},
        "any": {"type": "string", "pattern": "na.e", "maxLength": 6},
    },
    "required": ["p", "d", "any"],
}
KEYS = {
    "type": "object",
    "properties": {"name": {"type": "null"}},
    "patternProperties": {
        "^(a|b*c?)$": {"type": ["integer", "object"]},
        "é": {"patternProperties": {"^..$": {}}, "type": "object"},
    },
    "additionalProperties": False,
}
# To draft 4 an integer has no fraction as it is written: those listed are single digits, and literals.
DIGITS = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "object",
    "properties": {
        "one": {"type": "integer", "enum": [3, 4]},
        "more": {"type": "array", "items": {"type": "integer", "enum": [0, 5, 50]}},
    },
    "required": ["one"],
    "anyOf": [{"properties": {"left": {"type": "null"}}}, {"properties": {"right": {"type": "null"}}}],
}
SCHEMAS = {
    "digits": DIGITS,
    "patterns": PATTERNS,
    "keys": KEYS,
    "person": PERSON,
    "open": OPEN,
    "union": UNION,
    "negated": NEGATED,
    "anything": True,
}
PROFILES: dict[str, dict[str, Any]] = {
    "flexible": {},
    "compact": {"whitespace": "compact"},
    "indented": {"whitespace": "indented"},
    "permissive": {"spelling": "permissive"},
    "permissive and narrow": {"spelling": "permissive", "max_whitespace": 2},
}


def allowed_by_mask(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    bitmask = np.full((2, vocabulary.num_words), -1, np.int32)
    matcher.fill_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all(), "another row was touched"
    return set(np.flatnonzero(np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")).tolist())


def allowed_by_trying(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    return {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_mask_is_what_brute_force_finds_and_every_walk_can_be_closed(name: str, profile: str) -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(f"{name} {profile}")
    grammar = grammar_of(SCHEMAS[name], vocabulary, **PROFILES[profile])
    for _ in range(12):
        matcher = grammar.matcher()
        for _ in range(pick.randrange(40)):
            assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), matcher.text
            if not matcher.accept_token(random_choice(matcher, vocabulary, pick)):
                pytest.fail(f"a token of the mask was refused after {matcher.text!r}")
            if matcher.is_terminated:
                break
        close(matcher)
        value = json.loads(matcher.text)
        jsonschema.validate(value, SCHEMAS[name])
        if profile == "indented":
            read = json.loads(matcher.text, parse_int=str, parse_float=str)  # no number is too large for a string
            assert laid_out(matcher.text.decode()) == laid_out(json.dumps(read, indent=2))


@pytest.mark.parametrize("spelling", ["default", "permissive"])
@pytest.mark.parametrize("schema", [True, OPEN, KEYS, {"properties": {"a": {}, "ab": {}}, "additionalProperties": {}}])
@pytest.mark.parametrize(
    "begun",
    [
        b'{"a":1,"', b'{"a":1,"b":{},"\\', b'{"a":1,"1":{},"\\u00', b'{"a":1,"b":{"', b'{"bc":1,"\\u006', b'{"a\\"b":1,"a',
        b'{"\xc3\xa9":{},"\xc3',         b'{"a":1,"ab":{}, "b', b'{"b":1,"bb":1,"b', b'{"":1,"', b'{"a":1,"b":1,"\\ud83d',
        b'{"\xf0\x9f\x98\x80":1,"\\ud83d\\ude0',
    ],
)  # fmt: skip
def test_masks_inside_keys_are_what_brute_force_finds(begun: bytes, schema: Any, spelling: str) -> None:
    vocabulary = awkward_vocabulary()
    matcher = grammar_of(schema, vocabulary, spelling=spelling).matcher()
    if matcher.accept_bytes(begun):
        assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary)
        close(matcher)
        pairs = json.loads(matcher.text, object_pairs_hook=lambda pairs: pairs)
        assert len({name for name, _ in pairs}) == len(pairs)


_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][-+.0-9eE]*')


def laid_out(text: str) -> str:
    """The layout of a document alone: every string and number stands as 0, since each has many spellings."""
    return _SCALAR.sub("0", text)


def close(matcher: Matcher) -> None:
    """Follow the closing tokens; they keep to the bound that was promised."""
    bound = matcher.min_tokens_to_end
    for _ in range(bound):
        if matcher.is_terminated:
            break
        before = matcher.min_tokens_to_end
        assert matcher.accept_token(matcher.closing_token()), f"refused after {matcher.text!r}"
        assert matcher.min_tokens_to_end < before
    assert matcher.is_terminated, f"not closed within {bound} tokens: {matcher.text!r}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_tight_budgets_end_in_valid_documents(name: str) -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(name)
    grammar = grammar_of(SCHEMAS[name], vocabulary)
    for _ in range(60):
        budget = grammar.min_tokens + pick.randrange(30)
        matcher, used = grammar.matcher(), 0
        while not matcher.is_terminated:
            fork = matcher.fork()
            token = random_choice(matcher, vocabulary, pick)
            fork.accept_token(token)
            if used + 1 + fork.min_tokens_to_end > budget:
                token = matcher.closing_token()
            assert matcher.accept_token(token)
            used += 1
        assert used <= budget
        jsonschema.validate(json.loads(matcher.text), SCHEMAS[name])


def tokens_of(text: bytes, pick: random.Random) -> list[int]:
    """A random way to spell `text` with the awkward vocabulary."""
    tokens, at = [], 0
    while at < len(text):
        fitting = [256 + i for i, token in enumerate(AWKWARD) if text.startswith(token, at)]
        token = pick.choice([*fitting, text[at]])
        tokens.append(token)
        at += len(AWKWARD[token - 256]) if token >= 256 else 1
    return tokens


DOCUMENTS = [
    {"name": "bob", "age": 42, "level": 'bé"'},
    {"name": "bob", "level": {"x": [1]}, "more": {"name": "éé", "more": [{"a": 1, "b": {"a": None}}]}, "zz": 1.5},
    {"name": '\\n"', "a": {"a": 1}, "b": "", "": [[], {}]},
]


@given(st.sampled_from(DOCUMENTS), st.sampled_from([None, 2]), st.booleans(), st.randoms(use_true_random=False))
def test_valid_documents_go_through_in_any_tokens(
    value: Any, indent: int | None, ascii_only: bool, pick: random.Random
) -> None:
    grammar = grammar_of(PERSON, awkward_vocabulary())
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    matcher = grammar.matcher()
    for token in tokens_of(text, pick):
        assert token in allowed_by_mask(matcher, awkward_vocabulary()), matcher.text
        assert matcher.accept_token(token)
    assert matcher.is_accepting
    assert matcher.is_complete
    assert matcher.text == text


@settings(max_examples=40)
@given(st.sampled_from(sorted(SCHEMAS)), st.integers(0, 2**32), st.lists(st.integers(0, 5), max_size=12))
def test_rollback_is_replay(name: str, seed: int, undos: list[int]) -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(seed)
    grammar = cached_grammar(name)
    matcher, accepted = grammar.matcher(), []
    for undo in undos:
        for _ in range(3):
            if not matcher.is_terminated:
                accepted.append(random_choice(matcher, vocabulary, pick))
                assert matcher.accept_token(accepted[-1])
        undo = min(undo, len(accepted))
        matcher.rollback(undo)
        del accepted[len(accepted) - undo :]
        replay = grammar.matcher()
        assert all(map(replay.accept_token, accepted))
        assert replay.text == matcher.text
        assert replay.mask_row() is matcher.mask_row()
        assert (replay.is_accepting, replay.is_terminated) == (matcher.is_accepting, matcher.is_terminated)


_grammars: dict[str, CompiledGrammar] = {}


def cached_grammar(name: str) -> CompiledGrammar:
    if name not in _grammars:
        _grammars[name] = grammar_of(SCHEMAS[name], awkward_vocabulary())
    return _grammars[name]


def test_rollback_refuses_more_than_there_is() -> None:
    matcher = grammar_of(True).matcher()
    assert matcher.accept_bytes(b"[1")
    with pytest.raises(ValueError, match="cannot undo 2"):
        matcher.rollback(2)
    assert matcher.text == b"[1"
    matcher.rollback(1)
    assert matcher.text == b""


def test_bitmasks_of_every_kind_are_filled_or_refused() -> None:
    vocabulary = awkward_vocabulary()
    matcher = grammar_of({"type": "integer"}, vocabulary).matcher()
    expected = matcher.mask_row().words
    assert matcher.accept_token(ord("4"))
    number = matcher.mask_row().words
    matcher = grammar_of({"type": "integer"}, vocabulary).matcher()
    masks = [np.full((rows, vocabulary.num_words), -1, np.int32) for rows in (1, 3)]
    masks.append(np.full((3, 2 * vocabulary.num_words), -1, np.int32)[:, : vocabulary.num_words])  # not contiguous
    masks.append(np.full((3, vocabulary.num_words), -1, np.int32, order="F"))
    for words in (expected, number):
        for mask in (*masks, *reversed(masks)):
            mask.fill(-1)
            matcher.fill_bitmask(mask, len(mask) - 1)
            assert (mask[-1] == words).all()
            assert (mask[:-1] == -1).all()
            with pytest.raises(IndexError):
                matcher.fill_bitmask(mask, len(mask))
            fresh = np.zeros((2, vocabulary.num_words), np.int32)  # perhaps where another one was
            matcher.fill_bitmask(fresh, 0)
            assert (fresh[0] == words).all()
            del fresh
        read_only = np.zeros((1, vocabulary.num_words), np.int32)
        read_only.flags.writeable = False
        for refused in (read_only, np.zeros((1, vocabulary.num_words + 1), np.int32)):
            with pytest.raises(ValueError, match=r"read-only|broadcast"):
                matcher.fill_bitmask(refused, 0)
            assert not refused.any()
        matcher.accept_token(ord("4"))


def test_a_refused_token_changes_nothing() -> None:
    matcher = grammar_of({"type": "integer"}).matcher()
    assert matcher.accept_token(ord("4"))
    row = matcher.mask_row()
    for token in (ord("x"), 256 + 5, -1, 10**9):
        assert not matcher.accept_token(token)
    assert not matcher.accept_bytes(b"2x")
    assert matcher.text == b"4"
    assert matcher.mask_row() is row


def test_eos_ends_the_document_where_it_may_end() -> None:
    matcher = grammar_of({"type": "integer"}).matcher()
    assert not matcher.accept_token(256)
    assert matcher.accept_token(ord("4"))
    assert matcher.is_accepting
    assert not matcher.is_complete
    assert matcher.accept_token(256)
    assert matcher.is_terminated
    assert not matcher.mask_row().words.any()
    assert not matcher.accept_token(ord("2"))
    assert matcher.min_tokens_to_end == 0
    matcher.rollback(1)
    assert not matcher.is_terminated
    assert matcher.accept_token(ord("2"))


def test_forks_are_independent() -> None:
    matcher = grammar_of(True).matcher()
    assert matcher.accept_bytes(b"[1")
    fork = matcher.fork()
    assert fork.accept_bytes(b",2]")
    assert matcher.text == b"[1"
    fork.rollback(2)
    assert fork.text == b""
    assert matcher.accept_bytes(b"]")


def test_special_and_padding_ids_are_never_allowed() -> None:
    vocabulary = awkward_vocabulary()
    padding = vocabulary.size - 2
    matcher = grammar_of(True, vocabulary).matcher()
    assert padding not in allowed_by_mask(matcher, vocabulary)
    assert not matcher.accept_token(padding)


@pytest.mark.parametrize(
    ("schema", "begun", "forced"),
    [
        ({"const": {"kind": "circle"}}, b"", b'{"kind":"circle"}'),
        ({"enum": ["circle", "city"]}, b"", b'"ci'),
        ({"enum": ["circle", "city"]}, b'"cir', b'cle"'),
        (
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False},
            b"",
            b'{"a":',
        ),
        ({"type": "boolean"}, b"t", b"rue"),
        ({"type": "boolean"}, b"true", b""),
        ({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}, b"", b"[1"),
    ],
)
def test_forced_bytes(schema: Any, begun: bytes, forced: bytes) -> None:
    matcher = grammar_of(schema, whitespace="compact").matcher()
    assert matcher.accept_bytes(begun)
    assert matcher.forced_bytes() == forced
    assert matcher.text == begun


def test_shortest_documents() -> None:
    grammar = grammar_of(PERSON)
    assert (grammar.min_bytes, grammar.min_tokens) == (len(b'{"name":"aa"}'), len(b'{"name":"aa"}') + 1)
    assert grammar_of(PERSON, whitespace="indented").min_bytes == len(b'{\n  "name": "aa"\n}')
    assert grammar_of({"type": "array", "minItems": 2, "items": {"minLength": 3, "type": "string"}}).min_bytes == len(
        '["aaa","aaa"]'
    )


def test_closings_avoid_keys_that_are_there() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "null"}}
    grammar = grammar_of(schema)
    for begun in (b'{"":null,', b'{"":null,"a":null,"', b'{"a":null,"b":null,"', b'{"x":null,"\\u0078', b'{"a":null,"\\'):
        matcher = grammar.matcher()
        if not matcher.accept_bytes(begun):
            assert begun.endswith(b"\\u0078")  # plain letters are not escaped by encoders
            continue
        close(matcher)
        pairs = json.loads(matcher.text, object_pairs_hook=lambda pairs: pairs)
        assert len(dict(pairs)) == len(pairs)


def test_whitespace_is_bounded() -> None:
    grammar = grammar_of({"type": "array"})
    for gap, fits in (
        (b" " * 32, True),
        (b" " * 33, False),
        (b"\n", True),
        (b"\n\n", False),
        (b" \n ", True),
        (b"\n" + b" " * 32, True),
    ):
        for text in (b"[" + gap + b"]", b"[1" + gap + b"]", b"[1," + gap + b"2]", gap + b"[]"):
            assert grammar.matcher().accept_bytes(text) is fits, text
    compact = grammar_of({"type": "array"}, whitespace="compact")
    assert compact.matcher().accept_bytes(b"[1,2]")
    assert not compact.matcher().accept_bytes(b"[1, 2]")


@pytest.mark.parametrize("value", [{}, [], {"a": [], "b": {}, "c": [1, {"d": [None]}]}, [[[]]], "x", 3])
def test_indented_is_what_json_dumps_prints(value: Any) -> None:
    grammar = grammar_of(True, whitespace="indented")
    matcher = grammar.matcher()
    assert matcher.accept_bytes(json.dumps(value, indent=2).encode())
    assert matcher.is_accepting
    if json.dumps(value) != json.dumps(value, indent=2):
        assert not grammar.matcher().accept_bytes(json.dumps(value).encode())


def test_one_grammar_serves_many_threads() -> None:
    vocabulary, grammar = awkward_vocabulary(), grammar_of(UNION, awkward_vocabulary())
    failures: list[str] = []

    def work(seed: int) -> None:
        pick = random.Random(seed)
        for _ in range(6):
            matcher = grammar.matcher()
            while not matcher.is_terminated and len(matcher.text) < 80:
                if not matcher.accept_token(random_choice(matcher, vocabulary, pick)):
                    failures.append(f"refused after {matcher.text!r}")
                    return
            close(matcher)
            try:
                jsonschema.validate(json.loads(matcher.text), UNION)
            except (ValueError, jsonschema.ValidationError) as error:
                failures.append(str(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_equal_rows_are_shared_between_grammars_of_a_vocabulary() -> None:
    rows = [grammar_of({"type": "string", "title": str(i)}).matcher().mask_row() for i in range(2)]
    assert rows[0] is rows[1]
    assert rows[0].words.dtype == np.int32
    assert len(rows[0].words) == byte_vocabulary().num_words


def test_alternatives_that_multiply_with_depth_are_an_error_and_not_the_end_of_memory() -> None:
    # What follows hangs on the values: such ways to read are not made one.
    arrays = [{"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": most, "uniqueItems": True} for most in (3, 5)]
    schema = {"$defs": {"n": {"anyOf": arrays}}, "$ref": "#/$defs/n"}
    matcher = grammar_of(schema, limits=Limits(max_alternatives=8)).matcher()
    assert matcher.accept_bytes(b"[[[[")
    with pytest.raises(FuelError, match="max_alternatives"):
        matcher.accept_bytes(b"[")
    assert matcher.text == b"[[[["
    assert matcher.accept_bytes(b"]]]]")
    assert matcher.is_accepting
