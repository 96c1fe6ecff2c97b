"""What is known of the strings of a term without a step: which characters lead on whatever their order, and which never come.

All of it is sound, none of it complete: a term of which nothing is seen has no run, and may hold every character.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from constrained.grammar.language import charsets
from constrained.grammar.language.boolean import length_bounds
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.normal import EMPTY, as_repeat
from constrained.grammar.language.terms import And, Chars, Concat, Not, Or, Repeat, Run, Term, Values

NO_RUN = Run((), 0, inf)
# How many parts that follow one another are looked at; a longer run than this is worth no more characters.
_MAX_DEPTH, _LONG, _MANY = 8, 16, 128


def run(term: Term) -> Run:
    """What is seen at once to lead on in `term` (`Run`); often nothing, and `max_len` is 0."""
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
        return Run(term.ranges, 1, inf, tight=True)
    if isinstance(term, Repeat):
        ranges = _single(term.body)
        if ranges:
            return Run(ranges, term.high, inf, tight=not isinstance(term.body, Or))
        own = _run(term.body, depth + 1)._replace(missing=inf, tight=False)
        ranges, count = _round(term.body)
        return max(own, Run(ranges, count * term.high, inf), key=_worth) if ranges else own
    if isinstance(term, Concat):
        return _run_of_parts(term, depth) if term.tail.exact or term.tail.is_empty is False else NO_RUN
    if isinstance(term, Or):
        return max((_run(member, depth + 1) for member in term.members), key=_worth)._replace(tight=False)
    if isinstance(term, And):
        return _run_of_all(term, depth)
    return _run_beside([term.body]) if isinstance(term, Not) else NO_RUN


def _round(term: Term) -> tuple[Ranges, int]:
    """Characters, and a count: `term` holds all strings of so many of them. No characters where none are seen."""
    if isinstance(term, Chars):
        return term.ranges, 1
    if isinstance(term, Values):
        return (charsets.of_chars(term.strings), 1) if len(term.strings) == 1 == len(term.strings[0]) else ((), 0)
    if isinstance(term, Repeat):
        ranges, count = _round(term.body)
        return ranges, count * max(term.low, 1)
    if isinstance(term, Or):
        return max(map(_round, term.members), key=lambda found: charsets.size(found[0]))
    parts = [_round(part) for part in _parts(term) if not part.nullable] if isinstance(term, Concat) else []
    ranges = parts[0][0] if parts else ()
    for own, _ in parts[1:]:
        ranges = charsets.intersect(ranges, own)
    return ranges, sum(count for _, count in parts)


def _run_of_parts(term: Concat, depth: int) -> Run:
    head, tail = term.head, term.tail
    body, high = (head.body, head.high) if isinstance(head, Repeat) else (head, 1)
    ranges = _single(body)
    if not ranges:
        own = _run(head, depth + 1)
        found = max(own, _run(tail, depth + 1), key=_worth) if head.nullable else own
        return found._replace(missing=inf, tight=False)
    plain = not isinstance(body, Or)
    own = Run(ranges, high, inf, tight=plain and not charsets.intersect(ranges, _first(tail)))
    if high >= _LONG and not head.nullable:
        return own
    behind = _run(tail, depth + 1)
    both = charsets.intersect(ranges, behind.characters)
    found = max(own, Run(both, high + behind.max_len, inf, tight=plain and behind.tight), key=_worth)
    return max(found, behind._replace(missing=inf, tight=False), key=_worth) if head.nullable else found


def _first(term: Term) -> Ranges:
    """Characters among which are all that strings of `term` begin with."""
    known = term.first
    if known is None:
        known = term.first = _find_first(term)
    return known


def _find_first(term: Term) -> Ranges:
    if isinstance(term, Chars):
        return term.ranges
    if isinstance(term, Values):
        return charsets.of_chars({text[0] for text in term.strings if text})
    if isinstance(term, Repeat):
        return _first(term.body)
    if isinstance(term, Concat):
        if term.contextual:
            return charsets.ALPHABET
        if not term.head.nullable:
            return _first(term.head)
        parts = _parts(term)
        stop = next((at for at, part in enumerate(parts) if not part.nullable), len(parts) - 1)
        return charsets.normalise([span for part in parts[: stop + 1] for span in _first(part)])
    if isinstance(term, Or):
        return charsets.normalise(span for member in term.members for span in _first(member))
    return charsets.ALPHABET


def _run_of_all(term: And, depth: int) -> Run:
    """Of one language, cut to lengths, without some strings."""
    denied = [member.body for member in term.members if isinstance(member, Not)]
    others = [member for member in term.members if not isinstance(member, Not)]
    if not others:
        return _run_beside(denied)
    body = next((member for member in others if length_bounds(member) is None), others[0])
    lengths = [member for member in others if member is not body]
    if any(length_bounds(member) is None for member in lengths):
        return NO_RUN
    found = _run(body, depth + 1)
    if body.exact:
        found = found._replace(missing=_most_missing(body))
    endless, few = [one for one in denied if one.max_len == inf], [one for one in denied if one.max_len < inf]
    if endless:
        # Only characters without which none of the denied strings comes about, also on the way to the end.
        ranges = _beside(found.characters, endless)
        longest, tight = found.max_len, found.tight
        found = Run(ranges, *_run_within(body, ranges)) if ranges else NO_RUN
        found = found._replace(tight=tight and found.max_len == longest)
    for length in lengths:
        found = _cut(found, *(length_bounds(length) or (0, inf)))
    return _without(found, few) if few else found


def _cut(found: Run, low: int, high: float) -> Run:
    """A run of those strings that have `low` to `high` characters."""
    ranges, count, missing, tight = found
    if missing == inf or (low > 0 and (count < inf or low + missing > high)):
        return NO_RUN
    tight = tight and count <= high - missing
    count = min(count, high - missing)
    return Run(ranges, count, low + missing, tight) if count > 0 else NO_RUN


def _without(found: Run, denied: list[Term]) -> Run:
    """A run of the strings but for some, which have a greatest length."""
    ranges, count, missing, _ = found
    if count == inf:  # longer than any that is denied
        return Run(ranges, inf, missing + max(body.max_len for body in denied) + 1)
    # Each string of one character less goes on by any of them: with more of them than what is denied, not all are.
    literal = all(isinstance(body, Values | Chars) for body in denied)
    if count <= 1 or not literal or charsets.size(ranges) <= sum(map(_num_strings, denied)):
        return NO_RUN
    return Run(ranges, count - 1, missing + 1)


def _beside(ranges: Ranges, denied: list[Term]) -> Ranges:
    """Characters of `ranges` without any of some that each of the denied strings holds."""
    for body in denied:
        hit = _hit_by(body)
        ranges = charsets.intersect(ranges, charsets.complement(hit)) if hit is not None else ()
    return ranges


def _hit_by(term: Term) -> Ranges | None:
    """Characters of which each string of `term` holds at least one; the fewer the better. None where none are seen."""
    if isinstance(term, Chars):
        return term.ranges
    if isinstance(term, Values):
        plainest = [min(text, key=str.isalnum) for text in term.strings if text]
        return charsets.of_chars(plainest) if len(plainest) == len(term.strings) else None
    if isinstance(term, Repeat):
        return _hit_by(term.body) if term.low else None
    if isinstance(term, Or):
        hits = [_hit_by(member) for member in term.members]
        found = [one for one in hits if one is not None]
        return charsets.normalise(span for one in found for span in one) if len(found) == len(hits) else None
    parts = _parts(term) if isinstance(term, Concat) else term.members if isinstance(term, And) else ()
    hits = [_hit_by(part) for part in parts if not part.contextual]
    return min((one for one in hits if one is not None), key=charsets.size, default=None)


def _run_within(term: Term, ranges: Ranges, depth: int = 0) -> tuple[float, float]:
    """`(count, missing)`: after up to `count` of these characters, any of them, `missing` more end a string of `term`."""
    if depth > _MAX_DEPTH:
        return 0, inf
    if isinstance(term, Or):
        return max((_run_within(member, ranges, depth + 1) for member in term.members), key=lambda found: found[0])
    head, tail = (term.head, term.tail) if isinstance(term, Concat) else (term, EMPTY)
    behind = _least_within(tail, ranges)
    if behind == inf or not isinstance(head, Repeat | Chars | Values):
        return 0, inf
    body, low, high = as_repeat(head)
    if charsets.intersect(_single(body), ranges) == ranges:
        further, missing = _run_within(tail, ranges, depth + 1) if high < inf and tail is not EMPTY else (0, inf)
        return (high + further, max(low + behind, missing)) if further > 0 else (high, low + behind)
    if isinstance(head, Values):
        return 0, inf
    own, missing = _run_within(body, ranges, depth + 1)
    found = own, missing + max(low - 1, 0) * _least_within(body, ranges) + behind if own > 0 else inf
    later = _run_within(tail, ranges, depth + 1) if head.nullable and tail is not EMPTY else (0, inf)
    return max(found, later, key=lambda option: option[0])


def _least_within(term: Term, ranges: Ranges) -> float:
    """The length of a shortest string of these characters alone, as far as one is seen; else infinite."""
    if term.nullable:
        return 0
    if isinstance(term, Chars):
        return 1 if charsets.intersect(term.ranges, ranges) else inf
    if isinstance(term, Values):
        within = (text for text in term.strings if charsets.intersect(used := charsets.of_chars(text), ranges) == used)
        return min(map(len, within), default=inf)
    if isinstance(term, Repeat):
        return term.low and term.low * _least_within(term.body, ranges)
    if isinstance(term, Concat):
        return sum(_least_within(part, ranges) for part in _parts(term))
    return min(_least_within(member, ranges) for member in term.members) if isinstance(term, Or) else inf


def _run_beside(denied: list[Term]) -> Run:
    """Of all strings but those of `denied`: any, if there is always a string that is in none of them."""
    if any(body.contextual for body in denied):
        return NO_RUN
    longest = max((body.max_len for body in denied if body.max_len < inf), default=0)
    endless = [body for body in denied if body.max_len == inf]
    if not endless or _united(endless) != charsets.ALPHABET:
        return Run(charsets.ALPHABET, inf, longest + 1)
    # Without a character that each string holds it is none of them; nor with one that no string holds.
    hit = [body for body in endless if _hit_by(body) is not None]
    ranges = _beside(charsets.ALPHABET, hit)
    spare = charsets.intersect(ranges, charsets.complement(_united(body for body in endless if body not in hit)))
    return Run(ranges, inf, longest + 2) if spare else NO_RUN


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
        return all(isinstance(member, Not) for member in term.members) and run(term).characters == charsets.ALPHABET
    return isinstance(term, Not) and run(term).characters == charsets.ALPHABET


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
    return min(found.max_len, _LONG) * min(charsets.size(found.characters), _MANY)


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
        return _characters_of_parts(term)
    if isinstance(term, Or):
        return _united(term.members)
    ranges = charsets.ALPHABET
    for member in term.members if isinstance(term, And) else ():
        ranges = charsets.intersect(ranges, characters(member))
    return ranges


def _characters_of_parts(term: Concat) -> Ranges:
    """From the last part to the first: the tail of one place is that of others too. Iterative: a chain may be long."""
    pending: list[Concat] = []
    tail: Term = term
    while isinstance(tail, Concat) and tail.characters is None:
        pending.append(tail)
        tail = tail.tail
    found = characters(tail)
    for one in reversed(pending):
        own = characters(one.head)
        if own != found and charsets.intersect(own, found) != own:
            found = charsets.normalise([*own, *found])
        one.characters = found
    return found


def _united(terms: Iterable[Term]) -> Ranges:
    found = dict.fromkeys(characters(term) for term in terms)
    return charsets.ALPHABET if charsets.ALPHABET in found else charsets.normalise(span for ranges in found for span in ranges)


def most_missing(term: Term) -> int | None:
    """A number of characters that is enough to end a string of `term`, wherever one stands in it; None where none is seen."""
    if term.exact:
        return _most_missing(term)
    if term.contextual or not isinstance(term, And | Not):
        return None
    members = term.members if isinstance(term, And) else (term,)
    denied = [member.body for member in members if isinstance(member, Not)]
    others = [member for member in members if not isinstance(member, Not)]
    if not others:
        found = run(term)
        return int(found.missing) if found.characters == charsets.ALPHABET else None
    longest = max((body.max_len for body in denied), default=0)
    if len(others) > 1 or longest == inf or not others[0].exact or not never_ends(others[0]):
        return None
    # Whatever is longer than the denied strings is none of them.
    return _most_missing(others[0]) + int(longest) + 1


def _most_missing(term: Term) -> int:
    """The same of an exact term, whose derivatives are exact."""
    known = term.most_missing
    if known is None:
        known = term.most_missing = _find_most_missing(term)
    return known


def _find_most_missing(term: Term) -> int:
    if isinstance(term, Or):
        return max(map(_most_missing, term.members))
    return max(int(term.min_len), _missing_inside(term))


def missing_inside(term: Term) -> int | None:
    """The same wherever one stands behind a first character."""
    return _missing_inside(term) if term.exact else most_missing(term)


def _missing_inside(term: Term) -> int:
    if isinstance(term, Values):
        return max(int(term.max_len) - 1, 0)
    if isinstance(term, Repeat):
        return _missing_inside(term.body) + max(term.low - 1, 0) * int(term.body.min_len)
    if isinstance(term, Concat):
        first, *others = _parts(term)
        behind, most = 0, 0
        for part in reversed(others):
            most = max(_most_missing(part) + behind, most)
            behind += int(part.min_len)
        return max(_missing_inside(first) + behind, most)
    return max(map(_missing_inside, term.members)) if isinstance(term, Or) else 0


def _parts(term: Term) -> list[Term]:
    """The terms that follow one another."""
    parts = []
    while isinstance(term, Concat):
        parts.append(term.head)
        term = term.tail
    return [*parts, term]
