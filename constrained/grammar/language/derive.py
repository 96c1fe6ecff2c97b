"""Steps of a term: for each character, the term of what may follow it (a Brzozowski derivative), as ranges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby, pairwise
from math import inf
from operator import itemgetter

from constrained.grammar.language import charsets
from constrained.grammar.language.boolean import complement, intersection, union
from constrained.grammar.language.clock import check_time
from constrained.grammar.language.context import Guard, Loop, behinds, guard, loop, move_behinds, open_loop
from constrained.grammar.language.normal import ANYTHING, EMPTY, NOTHING, concat, repeat, sorted_values
from constrained.grammar.language.terms import And, Chars, Concat, Moves, Not, Or, Repeat, Term, Values

Combine = Callable[[list[Term]], Term]


def accepts_empty(term: Term) -> bool:
    """Whether `term` holds "" here, given what its guards know of the text before."""
    while isinstance(term, Concat) and term.contextual:
        if not term.head.nullable:
            return False
        term = term.tail
    if not term.contextual:
        return term.nullable
    if isinstance(term, Or):
        return any(map(accepts_empty, term.members))
    if isinstance(term, And):
        return all(map(accepts_empty, term.members))
    if isinstance(term, Not):
        return not accepts_empty(term.body)
    if isinstance(term, Guard):
        return accepts_empty(term.before) and accepts_empty(term.tail)
    return isinstance(term, Loop) and accepts_empty(open_loop(term))


def step(term: Term, code_point: int) -> Term:
    """The derivative of `term` by one character."""
    known = moves(term)
    index = bisect_right(known, code_point, key=lambda move: move[0]) - 1
    return known[index][2] if index >= 0 and code_point <= known[index][1] else NOTHING


def contains(term: Term, text: str) -> bool:
    for char in text:
        term = step(term, ord(char))
        if term is ANYTHING:
            return all(not 0xD800 <= ord(rest) <= 0xDFFF for rest in text)
    return accepts_empty(term)


def moves(term: Term) -> Moves:
    """`(low, high, derivative)` for each range that may lead on: ascending, disjoint, neighbours merged; memoised."""
    known = term.moves
    if known is None:
        check_time()
        known = term.moves = _moves(term)
    return known


def _moves(term: Term) -> Moves:
    if isinstance(term, Chars):
        return tuple((low, high, EMPTY) for low, high in term.ranges)
    if isinstance(term, Values):
        return _values_moves(term)
    if isinstance(term, Concat):
        return _concat_moves(term)
    if isinstance(term, Repeat):
        rest = _rest(term)
        return _mapped(moves(term.body), lambda after: concat(after, rest))
    if isinstance(term, Or):
        return _sweep([moves(member) for member in term.members], union)
    if isinstance(term, And):
        return _moves_of_all(term)
    if isinstance(term, Not):
        return _mapped(_total(moves(term.body)), complement)
    if isinstance(term, Guard):
        return moves(term.tail) if accepts_empty(term.before) else ()
    assert isinstance(term, Loop)
    return moves(open_loop(term))


def _rest(term: Repeat) -> Term:
    """What is left of a repetition behind its first round."""
    return term if term.low == 0 and term.high == inf else repeat(term.body, max(term.low - 1, 0), term.high - 1)


def _moves_of_all(term: And) -> Moves:
    literals = [member for member in term.members if isinstance(member, Not) and isinstance(member.body, Values)]
    if len(literals) != 1:
        return _sweep([moves(member) for member in term.members], _intersection_of(len(term.members)))
    # Of characters that begin none of the strings left out, the rest leads on alone.
    (left_out,) = literals
    rest = intersection(member for member in term.members if member is not left_out)
    out: list[tuple[int, int, Term]] = []
    begun = moves(left_out.body)
    for low, high, after in moves(rest):
        for first, last, behind in begun:
            if first <= high and last >= low:
                if low < first:
                    out.append((low, first - 1, after))
                out.append((max(low, first), min(high, last), intersection((after, complement(behind)))))
                low = last + 1
        if low <= high:
            out.append((low, high, after))
    return _merged(out)


def _intersection_of(count: int) -> Combine:
    """The intersection where all `count` members lead on, else nothing."""
    return lambda terms: intersection(terms) if len(terms) == count else NOTHING


def _values_moves(term: Values) -> Moves:
    strings = term.strings[1:] if term.nullable else term.strings
    groups = groupby(strings, key=lambda text: text[0])
    return _merged((ord(char), ord(char), sorted_values(tuple(text[1:] for text in same))) for char, same in groups)


def _concat_moves(term: Concat) -> Moves:
    """Iterative: a chain of optional parts may be long."""
    parts: list[Moves] = []
    rest: Term = term
    while isinstance(rest, Concat):
        parts.append(_moves_of_head(rest))
        if not rest.head.nullable:
            break
        rest = rest.tail
    else:
        parts.append(moves(rest))
    if len(parts) == 1:
        return parts[0]
    return _side_by_side(parts) or _sweep(parts, union)


def _moves_of_head(term: Concat) -> Moves:
    """The steps into the head alone; most heads are characters, or repeat some, and lead to one place."""
    head, tail = term.head, term.tail
    if tail.contextual:
        return _sweep_pairs(moves(head), shifts(tail), concat)
    if isinstance(head, Chars):
        return tuple([(low, high, tail) for low, high in head.ranges])
    if isinstance(head, Repeat) and isinstance(head.body, Chars):
        rest = _rest(head)
        after = term if rest is head else concat(rest, tail)
        return tuple([(low, high, after) for low, high in head.body.ranges])
    return _mapped(moves(head), lambda after: concat(after, tail))


def _side_by_side(parts: list[Moves]) -> Moves | None:
    """The ranges of all parts, where no two of them meet."""
    found = sorted([move for part in parts for move in part], key=_low)
    return None if any(one[1] >= other[0] for one, other in pairwise(found)) else _merged(found)


_low = itemgetter(0)


def shifts(term: Term) -> Moves:
    """For each character of the alphabet `term` itself, its guards moved on by that character: what it is after reading it.

    This is no derivative: the character stands before the term, not in it. The ranges cover the alphabet, for a term that
    has become NOTHING counts under an intersection or a complement. Only for contextual terms; memoised.
    """
    pending: list[Concat] = []
    while term.shifts is None and isinstance(term, Concat):
        pending.append(term)
        term = term.tail
    known = term.shifts
    if known is None:
        known = term.shifts = _total(_shifts(term))
    for one in reversed(pending):
        known = one.shifts = _total(_mapped(known, partial(concat, one.head)))
    return known


def _shifts_or_same(term: Term) -> Moves:
    return shifts(term) if term.contextual else tuple((low, high, term) for low, high in charsets.ALPHABET)


def _shifts(term: Term) -> Moves:
    if isinstance(term, Or):
        return _sweep([_shifts_or_same(member) for member in term.members], union)
    if isinstance(term, And):
        return _sweep([_shifts_or_same(member) for member in term.members], intersection)
    if isinstance(term, Not):
        return _mapped(shifts(term.body), complement)
    if isinstance(term, Guard):
        return _sweep_pairs(_total(moves(term.before)), _shifts_or_same(term.tail), guard)
    assert isinstance(term, Loop)
    return _loop_shifts(term)


def _loop_shifts(term: Loop) -> Moves:
    languages = behinds(term.body)
    parts = [_total(moves(language)) for language in languages] + [_shifts_or_same(term.tail)]

    def moved(residuals: list[Term]) -> Term:
        body = move_behinds(term.body, dict(zip(languages, residuals[:-1], strict=True)))
        return loop(body, term.low, term.high, residuals[-1])

    return _sweep(parts, moved)


# Ranges


def _merged(ranges: Iterable[tuple[int, int, Term]]) -> Moves:
    """The same ranges without those that lead to nothing, neighbours of one term joined."""
    out: list[tuple[int, int, Term]] = []
    for low, high, term in ranges:
        if term is NOTHING:
            continue
        if out and out[-1][2] is term and out[-1][1] + 1 == low:
            out[-1] = (out[-1][0], high, term)
        else:
            out.append((low, high, term))
    return tuple(out)


def _mapped(known: Moves, change: Callable[[Term], Term]) -> Moves:
    """The same ranges with each term changed; once for each term, as a class of letters may have hundreds of ranges."""
    memo: dict[int, Term] = {}
    for _, _, term in known:
        if term.uid not in memo:
            memo[term.uid] = change(term)
    return _merged((low, high, memo[term.uid]) for low, high, term in known)


def _total(known: Moves) -> Moves:
    """The ranges with the gaps filled by NOTHING, so that they cover the alphabet."""
    gaps = charsets.complement(tuple((low, high) for low, high, _ in known))
    return tuple(sorted([*known, *((low, high, NOTHING) for low, high in gaps)], key=lambda move: move[0]))


def _sweep_pairs(left: Moves, right: Moves, combine: Callable[[Term, Term], Term]) -> Moves:
    """The combination wherever both sides have a range."""
    out: list[tuple[int, int, Term]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high, combine(left[i][2], right[j][2])))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return _merged(out)


def _sweep(parts: list[Moves], combine: Combine) -> Moves:
    """The combination of the terms of all parts that have a range there, in the order of the parts."""
    cuts = sorted({cut for part in parts for low, high, _ in part for cut in (low, high + 1)})
    # Of each part, what is left of it, the last first.
    pending = [list(reversed(part)) for part in parts]
    memo: dict[tuple[int, ...], Term] = {}
    out: list[tuple[int, int, Term]] = []
    for cut, following in pairwise(cuts):
        active = []
        for part in pending:
            if part and part[-1][1] < cut:
                part.pop()
            if part and part[-1][0] <= cut:
                active.append(part[-1][2])
        if not active:
            continue
        key = tuple([term.uid for term in active])
        found = memo.get(key)
        if found is None:
            found = memo[key] = combine(active)
        out.append((cut, following - 1, found))
    return _merged(out)
