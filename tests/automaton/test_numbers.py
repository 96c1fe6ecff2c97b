"""The number machine against exact fractions."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from constrained.automaton.numbers import NumberMachine
from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.texts import MAX_DIGITS, shortest_number

VALUES = st.fractions(-300, 300, max_denominator=100) | st.integers(-300, 300).map(Fraction)
BOUNDS = st.none() | st.builds(Bound, VALUES, st.booleans())
TEXTS = (
    st.decimals(-310, 310, places=2).map(str)
    | st.integers(-310, 310).map(str)
    | st.sampled_from(["0", "-0", "0.0", "-0.0", "00", "1."])
)


def accepts(machine: NumberMachine, text: str) -> bool:
    at = machine.start
    for byte in text.encode():
        steps = machine.steps(at)
        if byte not in steps:
            return False
        at = steps[byte]
    return machine.accepts(at)


def expected(numbers: NumberSet, text: str) -> bool:
    well_formed = text not in ("00", "1.") and not (numbers.integer and ("." in text or text == "-0"))
    return well_formed and Fraction(Decimal(text)) in numbers


@given(BOUNDS, BOUNDS, st.booleans(), st.lists(TEXTS, max_size=30))
def test_bounds_are_exact(lower: Bound | None, upper: Bound | None, integer: bool, texts: list[str]) -> None:
    numbers = NumberSet(lower, upper, integer)
    machine = NumberMachine(numbers)
    edges = [f"{float(bound.value):.3f}" for bound in (lower, upper) if bound is not None]
    for text in [*texts, *edges]:
        assert accepts(machine, text) == expected(numbers, text), text


@given(BOUNDS, BOUNDS, st.booleans())
def test_the_closing_is_the_shortest_member(lower: Bound | None, upper: Bound | None, integer: bool) -> None:
    numbers = NumberSet(lower, upper, integer)
    machine = NumberMachine(numbers)
    shortest, closing = shortest_number(numbers), machine.closing(machine.start)
    assert (shortest is None) == (closing is None)
    if shortest is not None and closing is not None:
        assert len(closing) == len(shortest)
        assert accepts(machine, closing.decode())
        assert accepts(machine, shortest)


@given(BOUNDS, BOUNDS, st.booleans(), st.randoms(use_true_random=False))
def test_no_step_is_a_dead_end(lower: Bound | None, upper: Bound | None, integer: bool, pick: object) -> None:
    machine = NumberMachine(NumberSet(lower, upper, integer))
    at, text = machine.start, ""
    for _ in range(20):
        steps = machine.steps(at)
        if not steps:
            break
        byte = pick.choice(sorted(steps))  # type: ignore[attr-defined]
        at, text = steps[byte], text + chr(byte)
        closing = machine.closing(at)
        assert closing is not None
        assert accepts(machine, text + closing.decode())


def test_exponents_stand_where_no_bound_is() -> None:
    machine = NumberMachine(NumberSet())
    for text in ("1e5", "1E+5", "1.5e-3", "0e0"):
        assert accepts(machine, text)
    for text in ("1e", "1e+", "1e1234", "e5", ".5", "1.e5", "+1", "01"):
        assert not accepts(machine, text)


def test_runs_of_digits_are_bounded() -> None:
    machine = NumberMachine(NumberSet())
    assert accepts(machine, "1" * MAX_DIGITS)
    assert not accepts(machine, "1" * (MAX_DIGITS + 1))
    assert accepts(machine, "0." + "1" * MAX_DIGITS)
    assert not accepts(machine, "0." + "1" * (MAX_DIGITS + 1))


def test_a_bound_between_two_decimals_is_not_rounded() -> None:
    third = NumberMachine(NumberSet(lower=Bound(Fraction(1, 3)), upper=Bound(Fraction(1))))
    assert not accepts(third, "0." + "3" * MAX_DIGITS)
    assert accepts(third, "0." + "3" * (MAX_DIGITS - 1) + "4")
