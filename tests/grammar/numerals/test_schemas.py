"""Numbers of whole schemas: every spelling that a profile generates goes through, and the delta stream reads it exactly."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jsonschema
import pytest

from constrained.errors import OptionError
from constrained.grammar.number_sets import Bound, NumberSet, union
from constrained.options import Limits
from constrained.stream import DeltaStream
from constrained.stream.ops import Set
from tests.grammars import Raw, byte_vocabulary, check, grammar_of, random_choice

SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer", "multipleOf": 7, "minimum": -100, "maximum": 1000},
    {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 0},
    {"enum": [1, 2.5, -30, 0.001, 0, 250]},
    {"type": "number", "minimum": -1.5, "maximum": 3e-7},
    {"not": {"multipleOf": 3}, "type": "integer", "minimum": 3, "maximum": 33},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("spelling", ["default", "permissive"])
def test_random_numbers_are_valid_and_streamed_exactly(schema: dict[str, Any], spelling: str) -> None:
    grammar, vocabulary, pick = grammar_of(schema, spelling=spelling), byte_vocabulary(), random.Random(3)
    texts = set()
    for length in range(60):
        matcher = grammar.matcher()
        for _ in range(length % 12):
            if not matcher.is_complete and not matcher.is_terminated:
                assert matcher.accept_token(random_choice(matcher, vocabulary, pick))
        while not matcher.is_terminated:
            assert matcher.accept_token(matcher.closing_token())
        texts.add(matcher.text)
        stream = DeltaStream(grammar.root)
        ops = stream.feed(matcher.text) + stream.finish()
        exact = Fraction(Decimal(matcher.text.decode().strip()))
        raw = next((op.raw for op in ops if isinstance(op, Set) and op.raw is not None), None)
        value = Fraction(Decimal(raw)) if raw is not None else Fraction(Decimal(repr(stream.value)))
        assert value == exact, matcher.text
        assert_valid(schema, exact)
    assert len(texts) > 5


def assert_valid(schema: dict[str, Any], value: Fraction) -> None:
    """`jsonschema` on whole numbers, its binary floats kept away: all numbers of the schema and the value are scaled."""
    scale = 10**70
    if "enum" in schema:
        assert value in {Fraction(Decimal(repr(member))) for member in schema["enum"]}
        return
    scaled = {
        name: int(Fraction(Decimal(repr(member))) * scale) if isinstance(member, int | float) else member
        for name, member in schema.items()
    }
    if "not" in scaled:
        scaled["not"] = {"multipleOf": scale * schema["not"]["multipleOf"]}
    whole = (value * scale).numerator if (value * scale).denominator == 1 else None
    assert value.denominator == 1 or schema["type"] == "number"
    if whole is not None:
        jsonschema.validate(whole, scaled | {"type": "integer"})


def test_permissive_spellings() -> None:
    check(
        {"type": "integer"},
        [Raw("1.0"), Raw("1e2"), Raw("-0"), Raw("100e-2")],
        [Raw("1.5"), Raw("1e-1")],
        spelling="permissive",
    )
    check({"const": 1}, [Raw("1.0"), Raw("0.10e1"), Raw("100E-2")], [Raw("-1"), Raw("10"), Raw("1e1")], spelling="permissive")
    check({"enum": [0, "a"]}, [Raw("-0.0e5"), Raw("0"), "a"], [Raw("0.1"), Raw("00")], spelling="permissive")
    check(
        {"minimum": 1000, "maximum": 2000},
        [Raw("0.0015e6"), Raw("1500.00")],
        [Raw("1.5e2"), Raw("0.0025e6")],
        spelling="permissive",
    )
    check({"type": "integer", "multipleOf": 0.5}, [Raw("1e308"), Raw("30e-1")], [Raw("2.5")], spelling="permissive")
    check({"type": "integer", "multipleOf": 0.123456789}, [0, 123456789], [Raw("1e308"), 1], spelling="permissive")


def test_the_runs_of_digits_are_an_option() -> None:
    limits = Limits(max_digits=3, max_exponent_digits=1)
    check({"type": "number"}, [123, 1.125, Raw("1e9")], [1234, 1.0625, Raw("1e10")], limits=limits)
    with pytest.raises(OptionError, match="max_digits"):
        Limits(max_digits=0)


def test_unions_are_few() -> None:
    low, high = NumberSet(upper=Bound(Fraction(5))), NumberSet(lower=Bound(Fraction(5), exclusive=True))
    assert union([low, high]) == (NumberSet(),)
    assert union([low, NumberSet(integer=True, upper=Bound(Fraction(3)))]) == (low,)
    assert union([NumberSet(multiple_of=Fraction(6)), NumberSet(multiple_of=Fraction(3))]) == (
        NumberSet(multiple_of=Fraction(3)),
    )
    apart = [low, NumberSet(lower=Bound(Fraction(6)))]
    assert union(apart) == tuple(apart)
    finite = NumberSet(values=frozenset({Fraction(4), Fraction(9)}))
    assert union([low, finite]) == (low, NumberSet(values=frozenset({Fraction(9)})))
