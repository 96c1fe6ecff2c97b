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
from typing import cast

from constrained.grammar.language.boolean import complement, intersection, non_empty, union
from constrained.grammar.language.normal import ANYTHING, EMPTY, NOTHING, concat, repeat
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


def follow(expression: Expression, at_start: bool, unread: Term, read: Term) -> Term:
    """The texts that `expression` begins and its continuation ends: `read` if it reads something, else `unread`.

    `at_start`: nothing was read before it. Whatever has been read, `read` stands later in the text.
    """
    if isinstance(expression, Term):
        if unread is read or not expression.nullable:
            return concat(expression, read)
        return union((unread, concat(non_empty(expression), read)))
    if isinstance(expression, Sequence):
        return _follow_parts(expression.parts, at_start, unread, read)
    if isinstance(expression, Choice):
        return union(follow(arm, at_start, unread, read) for arm in expression.arms)
    if isinstance(expression, Rounds):
        if not at_start and unread is read:
            return loop(expression.body, expression.low, expression.high, read)
        return unfold(expression, at_start, unread, read)
    if isinstance(expression, Ahead):
        ahead = follow(expression.body, at_start, ANYTHING, ANYTHING)
        return intersection((ahead if expression.holds else complement(ahead), unread))
    if isinstance(expression, Behind):
        return guard(expression.before, unread)
    return unread if at_start else NOTHING


def _follow_parts(parts: tuple[Expression, ...], at_start: bool, unread: Term, read: Term) -> Term:
    """From the last part to the first, once with nothing read before it and once with something."""
    for part in reversed(parts):
        after_something = follow(part, False, read, read)
        same = not at_start and unread is read
        unread = after_something if same else follow(part, at_start, unread, read)
        read = after_something
    return unread


def unfold(rounds: Rounds | Loop, at_start: bool, unread: Term, read: Term) -> Term:
    """`rounds` and its continuation with the first round opened.

    A round that reads nothing may as well be the last such one: if `body` holds here without reading, all rounds that
    are still due hold here too. So after it no round is due, and after that none may be empty.
    """
    body, low, high = rounds.body, rounds.low, rounds.high
    if high == 0:
        return unread
    if low > 0:
        after_empty = unfold(Rounds(body, 0, high - 1), at_start, unread, read)
        return follow(body, at_start, after_empty, loop(body, low - 1, high - 1, read))
    return union((unread, follow(body, at_start, NOTHING, loop(body, 0, high - 1, read))))


def open_loop(term: Loop) -> Term:
    return unfold(term, False, term.tail, term.tail)


def search(expression: Expression) -> Term:
    """The texts in which `expression` matches somewhere."""
    return _anywhere(expression, ANYTHING)


def ending_with(expression: Expression) -> Term:
    """The texts at whose end `expression`, which looks at nothing ahead, matches."""
    return _anywhere(expression, EMPTY)


def whole(expression: Expression) -> Term:
    """The texts that `expression` matches from end to end."""
    return follow(expression, True, EMPTY, EMPTY)


def _anywhere(expression: Expression, rest: Term) -> Term:
    """The texts in which `expression` stands, then `rest`."""
    at_start = follow(expression, True, rest, rest)
    later = follow(expression, False, rest, rest)
    if at_start is later:
        return concat(ANYTHING, later)
    return union((at_start, concat(non_empty(ANYTHING), later)))
