"""What depends on the place: anchors, word boundaries, lookahead and lookbehind, as terms.

An *expression* is a regular expression that asks about its surroundings. `follow` turns it, together with the language
of what comes after it, into a term: lookahead becomes an intersection with the rest of the text. A lookbehind becomes
a `Guard`, which holds the language that the text before it must belong to; each character read moves that language on
(Miyazaki and Minamide, "Derivatives of Regular Expressions with Lookahead", 2019, is the mirror image of this). A
repetition around such a thing becomes a `Loop`, opened one round at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from typing import NamedTuple, cast

from constrained.grammar.language.normal import (
    ANYTHING,
    EMPTY,
    NOTHING,
    complement,
    concat,
    intersection,
    non_empty,
    repeat,
    union,
)
from constrained.grammar.language.terms import Term, interned

# Expressions


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    arms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Rounds:
    """`body` from `low` to `high` times."""

    body: Expression
    low: int
    high: float


@dataclass(frozen=True, slots=True)
class Ahead:
    """What follows begins with `body`, or does not."""

    body: Expression
    holds: bool


@dataclass(frozen=True, slots=True)
class Behind:
    """All that was read up to here belongs to `before` (its residual by what was read since)."""

    before: Term


@dataclass(frozen=True, slots=True)
class Start:
    """Nothing was read up to here."""


Expression = Term | Sequence | Choice | Rounds | Ahead | Behind | Start


def sequence(parts: list[Expression]) -> Expression:
    """The parts one after the other; neighbours that ask for no context become one term."""
    merged: list[Expression] = []
    for part in parts:
        if isinstance(part, Sequence):
            merged += part.parts
        elif part is not EMPTY:
            merged.append(part)
    joined: list[Expression] = []
    for is_term, run in groupby(merged, key=lambda part: isinstance(part, Term)):
        if is_term:
            joined.append(concat(*cast("list[Term]", list(run))))
        else:
            joined += run
    return (joined[0] if joined else EMPTY) if len(joined) < 2 else Sequence(tuple(joined))


def choice(arms: list[Expression]) -> Expression:
    plain = [arm for arm in arms if isinstance(arm, Term)]
    rest = list(dict.fromkeys(arm for arm in arms if not isinstance(arm, Term)))
    if not rest:
        return union(plain)
    merged = [*rest, *([union(plain)] if plain else [])]
    return merged[0] if len(merged) == 1 else Choice(tuple(merged))


def rounds(body: Expression, low: int, high: float) -> Expression:
    if isinstance(body, Term):
        return repeat(body, low, high)
    if high == 0:
        return EMPTY
    return body if low == high == 1 else Rounds(body, low, high)


def looks_ahead(expression: Expression) -> bool:
    return isinstance(expression, Ahead) or any(map(looks_ahead, _children(expression)))


def behinds(expression: Expression) -> tuple[Term, ...]:
    """The languages of the text before that `expression` asks for, each once."""
    if isinstance(expression, Behind):
        return (expression.before,)
    return tuple(dict.fromkeys(before for child in _children(expression) for before in behinds(child)))


def move_behinds(expression: Expression, moved: dict[Term, Term]) -> Expression:
    """`expression` after a character has been read: each language of the text before replaced by its residual."""
    if isinstance(expression, Behind):
        return Behind(moved[expression.before])
    if isinstance(expression, Sequence):
        return Sequence(tuple(move_behinds(part, moved) for part in expression.parts))
    if isinstance(expression, Choice):
        return Choice(tuple(move_behinds(arm, moved) for arm in expression.arms))
    if isinstance(expression, Rounds | Ahead):
        return replace(expression, body=move_behinds(expression.body, moved))
    return expression


def _children(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Sequence):
        return expression.parts
    if isinstance(expression, Choice):
        return expression.arms
    return (expression.body,) if isinstance(expression, Rounds | Ahead) else ()


# Contextual terms


class Guard(Term):
    """`tail`, if all that was read belongs to `before`."""

    __slots__ = ("before", "tail")

    def __init__(self, before: Term, tail: Term) -> None:
        super().__init__(nullable=False, min_len=tail.min_len, max_len=tail.max_len, contextual=True)
        self.before = before
        self.tail = tail


class Loop(Term):
    """`body` from `low` to `high` times, then `tail`; something was read before it."""

    __slots__ = ("body", "high", "low", "tail")

    def __init__(self, body: Expression, low: int, high: float, tail: Term) -> None:
        super().__init__(nullable=False, min_len=tail.min_len, max_len=inf, contextual=True)
        self.body = body
        self.low = low
        self.high = high
        self.tail = tail


def guard(before: Term, tail: Term) -> Term:
    if before is NOTHING or tail is NOTHING:
        return NOTHING
    return tail if before is ANYTHING else interned(Guard, (before.uid, tail.uid), before, tail)


def loop(body: Expression, low: int, high: float, tail: Term) -> Term:
    if tail is NOTHING:
        return NOTHING
    return tail if high == 0 else interned(Loop, (body, low, high, tail.uid), body, low, high, tail)


# Expressions with what follows them


class Place(NamedTuple):
    """One language at the start of the text, and the same elsewhere."""

    start: Term
    later: Term


def follow(expression: Expression, unread: Place, read: Term) -> Place:
    """What `expression` and its continuation denote: `unread` follows where it read nothing, `read` where it read something."""
    if isinstance(expression, Term):
        return Place(_follow_term(expression, unread.start, read), _follow_term(expression, unread.later, read))
    if isinstance(expression, Sequence):
        return _follow_parts(expression.parts, unread, read)
    if isinstance(expression, Choice):
        arms = [follow(arm, unread, read) for arm in expression.arms]
        return Place(union(arm.start for arm in arms), union(arm.later for arm in arms))
    if isinstance(expression, Rounds):
        return _follow_rounds(expression, unread, read)
    if isinstance(expression, Ahead):
        body = follow(expression.body, Place(ANYTHING, ANYTHING), ANYTHING)
        if not expression.holds:
            body = Place(complement(body.start), complement(body.later))
        return Place(intersection((body.start, unread.start)), intersection((body.later, unread.later)))
    if isinstance(expression, Behind):
        return Place(guard(expression.before, unread.start), guard(expression.before, unread.later))
    return Place(unread.start, NOTHING)


def _follow_term(term: Term, unread: Term, read: Term) -> Term:
    if unread is read or not term.nullable:
        return concat(term, read)
    return union((unread, concat(non_empty(term), read)))


def _follow_parts(parts: tuple[Expression, ...], unread: Place, read: Term) -> Place:
    """From the last part to the first, once with nothing read before it and once with something."""
    after_nothing, after_something = unread, read
    for part in reversed(parts):
        anywhere = Place(after_something, after_something)
        something = follow(part, anywhere, after_something)
        after_nothing = something if after_nothing == anywhere else follow(part, after_nothing, after_something)
        after_something = something.later
    return after_nothing


def _follow_rounds(expression: Rounds, unread: Place, read: Term) -> Place:
    opened = unfold(expression.body, expression.low, expression.high, unread, read)
    if unread.later is read:
        return Place(opened.start, loop(expression.body, expression.low, expression.high, read))
    return opened


def unfold(body: Expression, low: int, high: float, unread: Place, read: Term) -> Place:
    """The rounds with the first one opened.

    A round that reads nothing may as well be the last such one: if `body` holds here without reading, all rounds that
    are still due hold here too. So after it no round is due, and after that none may be empty.
    """
    if high == 0:
        return unread
    if low > 0:
        empty_round = unfold(body, 0, high - 1, unread, read)
        return follow(body, empty_round, loop(body, low - 1, high - 1, read))
    first = follow(body, Place(NOTHING, NOTHING), loop(body, 0, high - 1, read))
    return Place(union((unread.start, first.start)), union((unread.later, first.later)))


def open_loop(term: Loop) -> Term:
    return unfold(term.body, term.low, term.high, Place(term.tail, term.tail), term.tail).later


def search(expression: Expression) -> Term:
    """The texts in which `expression` matches somewhere."""
    if isinstance(expression, Term):
        return concat(ANYTHING, expression, ANYTHING)
    found = follow(expression, Place(ANYTHING, ANYTHING), ANYTHING)
    if found.start is found.later:
        return concat(ANYTHING, found.later)
    return union((found.start, concat(non_empty(ANYTHING), found.later)))


def whole(expression: Expression) -> Term:
    """The texts that `expression` matches from end to end."""
    return expression if isinstance(expression, Term) else follow(expression, Place(EMPTY, EMPTY), EMPTY).start


def ending_with(expression: Expression) -> Term:
    """The texts at whose end `expression`, which looks at nothing ahead, matches."""
    found = follow(expression, Place(EMPTY, EMPTY), EMPTY)
    return union((found.start, concat(non_empty(ANYTHING), found.later)))
