"""Numerals against brute force over every text of small notations, and against exact fractions."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.numerals import DEFAULT, Notation, Numeral, numeral, shortest_number
from tests.grammar.numerals.spelled import by_length, spelled

VALUES = (
    st.fractions(-300, 300, max_denominator=100)
    | st.integers(-300, 300).map(Fraction)
    | st.builds(lambda n, e: Fraction(n) * Fraction(10) ** e, st.integers(-30, 30), st.integers(-12, 12))
)
FACTORS = st.builds(lambda n, e: Fraction(n) * Fraction(10) ** e, st.integers(1, 30), st.integers(-11, 11))
BOUNDS = st.none() | st.builds(Bound, VALUES, st.booleans())
SETS = st.builds(NumberSet, BOUNDS, BOUNDS, st.booleans(), st.none() | FACTORS, st.frozensets(FACTORS, max_size=3)) | st.builds(
    lambda values: NumberSet(values=values), st.frozensets(VALUES, min_size=1, max_size=5)
)
PERMISSIVE = Notation(permissive=True)


def after(start: Numeral, text: str) -> Numeral | None:
    at = start
    for byte in text.encode():
        if byte not in at.steps:
            return None
        at = at.steps[byte]
    return at


def accepts(start: Numeral, text: str) -> bool:
    at = after(start, text)
    return at is not None and at.accepts


def check_all(numbers: NumberSet, notation: Notation) -> None:
    """At every place: may it end, what may follow, and the shortest ending."""
    texts = spelled(numbers, notation)
    following, endings = defaultdict(set), dict[str, str]()
    for text in texts:
        for i in range(len(text) + 1):
            following[text[:i]].add(text[i : i + 1].encode())
            endings[text[:i]] = min(text[i:], endings.get(text[:i], text[i:]), key=by_length)
    pending = [("", numeral(numbers, notation))]
    assert texts or not pending[0][1].steps
    while pending:
        text, at = pending.pop()
        assert at.accepts == (text in texts), text
        steps = {bytes([byte]) for byte in at.steps if byte != ord("E")} | ({b""} if at.accepts else set())
        assert steps == following[text], text
        assert at.closing == (endings[text].encode() if texts else None), text
        assert at.steps.get(ord("e")) == at.steps.get(ord("E"))
        pending += [(text + chr(byte), to) for byte, to in at.steps.items() if byte != ord("E")]


@settings(deadline=None, max_examples=40)
@given(SETS, st.booleans())
def test_every_text_of_a_small_notation(numbers: NumberSet, permissive: bool) -> None:
    if numbers.values is None or permissive:
        check_all(numbers, Notation(permissive, 1, 1))


@pytest.mark.parametrize("permissive", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [
        NumberSet(Bound(Fraction(17)), Bound(Fraction(43)), integer=True),
        NumberSet(Bound(Fraction("1.25")), Bound(Fraction("47.5"), exclusive=True), multiple_of=Fraction("0.75")),
        NumberSet(Bound(Fraction(-8)), Bound(Fraction(81)), True, Fraction(7), frozenset({Fraction(3)})),
    ],
    ids=["bounds", "decimals", "multiples"],
)
def test_two_digits_without_exponents_of_two(numbers: NumberSet, permissive: bool) -> None:
    notation = Notation(permissive, 2, 1)
    start = numeral(numbers, notation)
    for whole, fraction in product(range(100), ["", *(f".{n}" for n in range(10)), *(f".{n:02}" for n in range(100))]):
        for sign, exponent in product(("", "-"), ("", "e0", "e1", "e-1")):
            text = f"{sign}{whole}{fraction}{exponent}"
            normal = not exponent or 0 < whole < 10
            plain = not fraction and not exponent and text != "-0"
            allowed = permissive or (plain if numbers.integer else normal)
            assert accepts(start, text) == (allowed and Fraction(Decimal(text)) in numbers), text


@given(SETS, st.booleans(), st.lists(VALUES, max_size=20))
def test_values_are_compared_exactly(numbers: NumberSet, permissive: bool, values: list[Fraction]) -> None:
    start = numeral(numbers, Notation(permissive))
    edges = [bound.value for bound in (numbers.lower, numbers.upper) if bound is not None] + list(numbers.values or ())
    decimals = [value for value in [*values, *edges] if 10**15 % value.denominator == 0]
    for value in decimals:
        text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
        if permissive or (numbers.values is None and not (numbers.integer and "." in text)):
            assert accepts(start, text) == (value in numbers), text
        if permissive:
            assert accepts(start, f"{Decimal(text):E}") == (value in numbers), text


@settings(deadline=None)
@given(SETS, st.booleans(), st.randoms(use_true_random=False))
def test_no_step_is_a_dead_end(numbers: NumberSet, permissive: bool, pick: Any) -> None:
    at, text = numeral(numbers, Notation(permissive)), ""
    for _ in range(30):
        if not at.steps:
            break
        byte = pick.choice(sorted(at.steps))
        at, text = at.steps[byte], text + chr(byte)
        assert at.closing is not None
        ending = after(at, at.closing.decode())
        assert ending is not None
        assert ending.accepts
        assert Fraction(Decimal(text + at.closing.decode())) in numbers


@pytest.mark.parametrize(
    ("text", "value"), [("1e-07", "1e-7"), ("1e+21", "1e21"), ("1.5e300", "1.5e300"), ("2.5e-05", "0.000025"), ("-3E7", "-3e7")]
)
def test_encoders_exponents_stand_beside_bounds(text: str, value: str) -> None:
    exact = Fraction(Decimal(value))
    inside, outside = NumberSet(Bound(exact), Bound(exact)), NumberSet(Bound(exact, exclusive=True))
    assert accepts(numeral(inside), text)
    assert not accepts(numeral(outside), text)


def test_exponents_of_a_number_without_bounds() -> None:
    free = numeral(NumberSet())
    for text in ("1e5", "1E+5", "1.5e-3", "0e0", "12e-05"):
        assert accepts(free, text)
    for text in ("1e", "1e+", "1e1234", "e5", ".5", "1.e5", "+1", "01"):
        assert not accepts(free, text)


def test_integers_are_plain_by_default() -> None:
    whole = numeral(NumberSet(integer=True))
    assert accepts(whole, "-10")
    for text in ("1.0", "1e2", "-0", "10e-1"):
        assert not accepts(whole, text)
        assert accepts(numeral(NumberSet(integer=True), PERMISSIVE), text)


@pytest.mark.parametrize("text", ["1.0", "1e0", "100e-2", "0.10e1", "1.000", "0.0001e+04"])
def test_permissive_constants_take_any_spelling(text: str) -> None:
    one = NumberSet(values=frozenset({Fraction(1)}))
    assert accepts(numeral(one, PERMISSIVE), text)
    assert not accepts(numeral(one, PERMISSIVE), "-" + text)
    assert not accepts(numeral(NumberSet(values=frozenset({Fraction(10), Fraction(2)})), PERMISSIVE), text)


@pytest.mark.parametrize("text", ["-0", "0", "-0.0e5", "0e-9", "-0.000"])
def test_zero_has_two_signs(text: str) -> None:
    for numbers in (NumberSet(values=frozenset({Fraction(0)})), NumberSet(Bound(Fraction(0)), Bound(Fraction(5)), True)):
        assert accepts(numeral(numbers, PERMISSIVE), text)


@pytest.mark.parametrize("factor", [7, 1_000_003, 10**30 + 7, 2**40])
def test_large_factors(factor: int) -> None:
    start = numeral(NumberSet(integer=True, multiple_of=Fraction(factor)))
    assert accepts(start, str(factor * 123))
    assert not accepts(start, str(factor * 123 + 1))
    at = after(start, "98765")
    assert at is not None
    assert at.closing is not None
    assert int(b"98765" + at.closing) % factor == 0


def test_no_multiple_lies_between_the_bounds() -> None:
    assert shortest_number(NumberSet(Bound(Fraction(8)), Bound(Fraction(13)), True, Fraction(7)), DEFAULT) is None
    assert shortest_number(NumberSet(Bound(Fraction(8)), Bound(Fraction(14)), True, Fraction(7)), DEFAULT) == "14"
    tenths = NumberSet(multiple_of=Fraction(1, 10), not_multiple_of=frozenset({Fraction(1, 20)}))
    assert shortest_number(tenths, DEFAULT) is None


def test_runs_of_digits_are_bounded() -> None:
    most = DEFAULT.max_digits
    for numbers in (NumberSet(), NumberSet(Bound(Fraction(0)))):
        free = numeral(numbers)
        assert accepts(free, "1" * most)
        assert not accepts(free, "1" * (most + 1))
        assert accepts(free, "0." + "1" * most)
        assert not accepts(free, "0." + "1" * (most + 1))
    assert not accepts(numeral(NumberSet(), Notation(max_digits=3)), "1234")
    assert accepts(numeral(NumberSet(), Notation(max_exponent_digits=4)), "1e1234")


def test_a_bound_between_two_decimals_is_not_rounded() -> None:
    third = numeral(NumberSet(lower=Bound(Fraction(1, 3)), upper=Bound(Fraction(1))))
    assert not accepts(third, "0." + "3" * DEFAULT.max_digits)
    assert accepts(third, "0." + "3" * (DEFAULT.max_digits - 1) + "4")
