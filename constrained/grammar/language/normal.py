"""Literals, concatenation and repetition in normal form: the similarity rules that keep the states of a language few.

Owens, Reppy, Turon, "Regular-expression derivatives re-examined" (JFP 2009) need associative, commutative, idempotent
unions and intersections for finitely many derivatives; the other rules here make them fewer. Every rule holds whatever
was read before (contextual terms take part in none that asks for `nullable`).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from constrained.grammar.language import charsets
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.terms import Chars, Concat, Repeat, Term, Values, interned


def values(strings: Iterable[str]) -> Term:
    """The language of exactly these strings."""
    return sorted_values(tuple(sorted(set(strings))))


def sorted_values(ordered: tuple[str, ...]) -> Term:
    """The same of strings that are sorted and distinct already."""
    if len(ordered) > 1 and all(len(text) == 1 for text in ordered):
        return chars(charsets.of_chars(ordered))
    return interned(Values, (ordered,), ordered)


def chars(ranges: Ranges) -> Term:
    """One character out of `ranges` (normalised)."""
    if not ranges:
        return NOTHING
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return sorted_values((chr(ranges[0][0]),))
    return interned(Chars, (ranges,), ranges)


NOTHING = sorted_values(())
EMPTY = sorted_values(("",))
ANY_CHAR = chars(charsets.ALPHABET)
ANYTHING: Term = interned(Repeat, (ANY_CHAR.uid, 0, inf), ANY_CHAR, 0, inf)


def concat(*terms: Term) -> Term:
    """The terms one after the other; only the last may be contextual."""
    result: Term = EMPTY
    for term in reversed(terms):
        heads: list[Term] = []
        # What is last already has its normal form: its length must not count.
        while isinstance(term, Concat) and result is not EMPTY:
            heads.append(term.head)
            term = term.tail
        result = _prepend(term, result)
        for head in reversed(heads):
            result = _prepend(head, result)
    return result


def _prepend(head: Term, tail: Term) -> Term:
    if head is NOTHING or tail is NOTHING:
        return NOTHING
    if head is EMPTY:
        return tail
    if tail is EMPTY:
        return head
    if tail is ANYTHING:
        if head.nullable:
            return ANYTHING
        if isinstance(head, Repeat) and head.high != head.low:
            return _prepend(repeat(head.body, head.low, head.low), ANYTHING)
    first, rest = (tail.head, tail.tail) if isinstance(tail, Concat) else (tail, EMPTY)
    joined = _after_anything(first) if head is ANYTHING else _join(head, first)
    if joined is not None:
        return concat(*joined, rest)
    return interned(Concat, (head.uid, tail.uid), head, tail)


def _after_anything(first: Term) -> tuple[Term, ...] | None:
    """ANYTHING swallows what follows it as far as that may be left out."""
    if first.nullable:
        return (ANYTHING,)
    if isinstance(first, Repeat) and first.high != first.low:
        return (ANYTHING, repeat(first.body, first.low, first.low))
    return None


def _join(head: Term, first: Term) -> tuple[Term, ...] | None:
    """`head` and `first` as one term: two literals, or repetitions of one body."""
    if isinstance(head, Values) and isinstance(first, Values) and len(head.strings) == 1 == len(first.strings):
        return (sorted_values((head.strings[0] + first.strings[0],)),)
    if not isinstance(head, Repeat) and not isinstance(first, Repeat) and head is not first:
        return None
    left, right = as_repeat(head), as_repeat(first)
    if left[0] is not right[0] or first.contextual:
        return None
    return (repeat(left[0], left[1] + right[1], left[2] + right[2]),)


def as_repeat(term: Term) -> tuple[Term, int, float]:
    return (term.body, term.low, term.high) if isinstance(term, Repeat) else (term, 1, 1)


def repeat(body: Term, low: int, high: float) -> Term:
    """`body` (not contextual) from `low` to `high` times; `high` may be infinite."""
    if high == 0 or body is EMPTY:
        return EMPTY
    if body is NOTHING:
        return EMPTY if low == 0 else NOTHING
    if low == high == 1 or body is ANYTHING:
        return body
    if isinstance(body, Values) and body.nullable:
        return repeat(sorted_values(body.strings[1:]), 0, high)
    if body.nullable:
        low = 0
    if isinstance(body, Values) and (low, high) == (0, 1):
        return sorted_values(("", *body.strings))
    if isinstance(body, Repeat) and (body.low <= 1 or low == high):
        # Sound: the counts reached by 0, 1, 2, ... rounds leave no gap.
        return repeat(body.body, body.low * low, body.high * high)
    return interned(Repeat, (body.uid, low, high), body, low, high)
