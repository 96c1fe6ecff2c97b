"""What is known of the strings of a term without a step: which characters lead on whatever their order, and which never come.

All of it is sound, none of it complete: a term of which nothing is seen has no run, and may hold every character.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from constrained.grammar.language import charsets
from constrained.grammar.language.boolean import length_bounds
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.terms import And, Chars, Concat, Not, Or, Repeat, Run, Term, Values

NO_RUN: Run = ((), 0)
# How many parts that follow one another are looked at; a longer run than this is worth no more characters.
_MAX_DEPTH, _LONG, _MANY = 8, 16, 128


def run(term: Term) -> Run:
    """`(characters, count)`: any of these characters, up to so many of them, are the beginning of a string of `term`."""
    return _run(term, 0)


def _run(term: Term, depth: int) -> Run:
    known = term.run
    if known is None:
        known = NO_RUN if term.contextual or depth > _MAX_DEPTH else _find_run(term, depth)
        if depth == 0 or known is not NO_RUN:
            term.run = known
    return known


def _find_run(term: Term, depth: int) -> Run:
    if isinstance(term, Chars):
        return term.ranges, 1
    if isinstance(term, Repeat):
        ranges = _single(term.body)
        return (ranges, term.high) if ranges else _run(term.body, depth + 1)
    if isinstance(term, Concat):
        return _run_of_parts(term, depth) if term.tail.exact or term.tail.is_empty is False else NO_RUN
    if isinstance(term, Or):
        return max((_run(member, depth + 1) for member in term.members), key=_worth)
    if isinstance(term, And):
        return _run_of_all(term, depth)
    return _run_beside([term.body]) if isinstance(term, Not) else NO_RUN


def _run_of_parts(term: Concat, depth: int) -> Run:
    head, tail = term.head, term.tail
    body, high = (head.body, head.high) if isinstance(head, Repeat) else (head, 1)
    ranges = _single(body)
    if not ranges:
        own = _run(head, depth + 1)
        return max(own, _run(tail, depth + 1), key=_worth) if head.nullable else own
    if high >= _LONG and not head.nullable:
        return ranges, high
    behind = _run(tail, depth + 1)
    both = charsets.intersect(ranges, behind[0])
    found = max((ranges, high), (both, high + behind[1]) if both else NO_RUN, key=_worth)
    return max(found, behind, key=_worth) if head.nullable else found


def _run_of_all(term: And, depth: int) -> Run:
    """Of one language cut to lengths, without some strings."""
    denied = [member.body for member in term.members if isinstance(member, Not)]
    others = [member for member in term.members if not isinstance(member, Not)]
    if not others:
        return _run_beside(denied)
    if len(others) == 1:
        ranges, count = _run(others[0], depth + 1)
    elif len(others) == 2:
        one, two = others
        ranges, count = max(_run_of_length(one, two, depth), _run_of_length(two, one, depth), key=_worth)
    else:
        return NO_RUN
    endless = [body for body in denied if body.max_len == inf]
    if endless and ranges:
        ranges, count = _run_without(others, ranges, count, endless)
    if count < inf and denied:
        # Each string of one character less goes on by any of them: with more of them than what is denied, not all are.
        few = all(isinstance(body, Values | Chars) for body in denied)
        count = count - 1 if few and charsets.size(ranges) > sum(map(_num_strings, denied)) else 0
    return (ranges, count) if count > 0 else NO_RUN


def _run_without(others: list[Term], ranges: Ranges, count: float, denied: list[Term]) -> Run:
    """The part of an endless run by whose characters alone strings can be ended, but none of `denied` can come about."""
    hits = [_hit_by(body) for body in denied]
    found = [one for one in hits if one is not None]
    if len(others) > 1 or count < inf or len(found) < len(hits):
        return NO_RUN
    ranges = charsets.intersect(ranges, charsets.complement(charsets.normalise(span for one in found for span in one)))
    return (ranges, inf) if _may_end_within(others[0], ranges) else NO_RUN


def _hit_by(term: Term) -> Ranges | None:
    """Characters of which each string of `term` holds at least one; the fewer the better. None where none are seen."""
    if isinstance(term, Chars):
        return term.ranges
    if isinstance(term, Values):
        plainest = [min(text, key=str.isalnum) for text in term.strings if text]
        return charsets.of_chars(plainest) if len(plainest) == len(term.strings) else None
    if isinstance(term, Repeat):
        return _hit_by(term.body) if term.low else None
    parts: list[Term] = []
    if isinstance(term, Concat):
        parts = _parts(term)
    elif isinstance(term, And):
        parts = list(term.members)
    elif isinstance(term, Or):
        hits = [_hit_by(member) for member in term.members]
        found = [one for one in hits if one is not None]
        return charsets.normalise(span for one in found for span in one) if len(found) == len(hits) else None
    hits = [_hit_by(part) for part in parts if not part.contextual]
    return min((one for one in hits if one is not None), key=charsets.size, default=None)


def _may_end_within(term: Term, ranges: Ranges) -> bool:
    """Whether, once some of these characters were read in an endless run, as many more of them can end a string."""
    if isinstance(term, Or):
        return any(_may_end_within(member, ranges) for member in term.members)
    head, tail = (term.head, term.tail) if isinstance(term, Concat) else (term, None)
    if not isinstance(head, Repeat) or head.high < inf:
        return False
    single = _single(head.body)
    return bool(ranges) and charsets.intersect(single, ranges) == ranges and (tail is None or _has_string_within(tail, ranges))


def _has_string_within(term: Term, ranges: Ranges) -> bool:
    """Whether a string of these characters alone is seen in `term`."""
    if term.nullable:
        return True
    if isinstance(term, Chars):
        return bool(charsets.intersect(term.ranges, ranges))
    if isinstance(term, Values):
        return any(charsets.intersect(used := charsets.of_chars(text), ranges) == used for text in term.strings)
    if isinstance(term, Repeat):
        return _has_string_within(term.body, ranges)
    if isinstance(term, Concat):
        return all(_has_string_within(part, ranges) for part in _parts(term))
    return isinstance(term, Or) and any(_has_string_within(member, ranges) for member in term.members)


def _run_of_length(length: Term, other: Term, depth: int) -> Run:
    """Of `other` as far as its strings are as long as `length` says."""
    bounds, most = length_bounds(length), most_missing(other)
    if bounds is None or most is None:
        return NO_RUN
    ranges, count = _run(other, depth + 1)
    low, high = bounds
    if low > 0 and (count < inf or low + most > high):
        return NO_RUN
    count = min(count, high - most)
    return (ranges, count) if count > 0 else NO_RUN


def _run_beside(denied: list[Term]) -> Run:
    """Of all strings but those of `denied`: any, if there is always a string that is in none of them."""
    if any(body.contextual for body in denied):
        return NO_RUN
    endless = [body for body in denied if body.max_len == inf]
    return NO_RUN if endless and _united(endless) == charsets.ALPHABET else (charsets.ALPHABET, inf)


def never_ends(term: Term) -> bool:
    """Whether it is seen that wherever one stands in a string of `term`, there are strings without end to go on with."""
    if term.contextual:
        return False
    if isinstance(term, Repeat):
        return term.high == inf
    if isinstance(term, Concat):
        return (term.tail.exact or term.tail.is_empty is False) and never_ends(term.tail)
    if isinstance(term, Or):
        return all(map(never_ends, term.members))
    if isinstance(term, And):
        return all(isinstance(member, Not) for member in term.members) and run(term)[1] == inf
    return isinstance(term, Not) and run(term)[1] == inf


def _single(body: Term) -> Ranges:
    """The strings of one character in `body`, as far as they are seen at once."""
    if isinstance(body, Chars):
        return body.ranges
    if isinstance(body, Values) and len(body.strings) == 1 and len(body.strings[0]) == 1:
        return charsets.of_chars(body.strings)
    if isinstance(body, Or):
        return next((member.ranges for member in body.members if isinstance(member, Chars)), ())
    return ()


def _num_strings(body: Term) -> int:
    return len(body.strings) if isinstance(body, Values) else charsets.size(body.ranges) if isinstance(body, Chars) else 0


def _worth(found: Run) -> float:
    ranges, count = found
    return min(count, _LONG) * min(charsets.size(ranges), _MANY)


def characters(term: Term) -> Ranges:
    """Characters among which are all that the strings of `term` hold."""
    known = term.characters
    if known is None:
        known = term.characters = charsets.ALPHABET if term.contextual else _find_characters(term)
    return known


def _find_characters(term: Term) -> Ranges:
    if isinstance(term, Chars):
        return term.ranges
    if isinstance(term, Values):
        return charsets.of_chars(set("".join(term.strings)))
    if isinstance(term, Repeat):
        return characters(term.body)
    if isinstance(term, Concat):
        return _united(_parts(term))
    if isinstance(term, Or):
        return _united(term.members)
    ranges = charsets.ALPHABET
    for member in term.members if isinstance(term, And) else ():
        ranges = charsets.intersect(ranges, characters(member))
    return ranges


def _united(terms: Iterable[Term]) -> Ranges:
    found = dict.fromkeys(characters(term) for term in terms)
    return charsets.ALPHABET if charsets.ALPHABET in found else charsets.normalise(span for ranges in found for span in ranges)


def most_missing(term: Term) -> int | None:
    """A number of characters that is enough to end a string of `term`, wherever one stands in it; None where none is seen."""
    if not term.exact:
        return None
    known = term.most_missing
    if known is None:
        known = term.most_missing = _find_most_missing(term)
    return known


def _find_most_missing(term: Term) -> int:
    """Of an exact term, whose derivatives are exact."""
    if isinstance(term, Values):
        return int(term.max_len)
    if isinstance(term, Repeat):
        return (most_missing(term.body) or 0) + max(term.low - 1, 0) * int(term.body.min_len)
    if isinstance(term, Concat):
        behind, most = 0, 0
        for part in reversed(_parts(term)):
            most = max((most_missing(part) or 0) + behind, most)
            behind += int(part.min_len)
        return most
    return max(most_missing(member) or 0 for member in term.members) if isinstance(term, Or) else 1


def _parts(term: Term) -> list[Term]:
    """The terms that follow one another."""
    parts = []
    while isinstance(term, Concat):
        parts.append(term.head)
        term = term.tail
    return [*parts, term]
