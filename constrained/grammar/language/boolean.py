"""Union, intersection and complement in normal form.

The rules beyond those of `normal`: negations stand on atoms only, heads before one common tail merge, counts and lengths
merge, and what one member of an intersection settles is settled in the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from constrained.grammar.language import charsets
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.normal import (
    ANY_CHAR,
    ANYTHING,
    EMPTY,
    NOTHING,
    as_repeat,
    chars,
    concat,
    repeat,
    sorted_values,
    values,
)
from constrained.grammar.language.terms import And, Chars, Concat, Not, Or, Repeat, Term, Values, interned


def union(terms: Iterable[Term]) -> Term:
    members: dict[int, Term] = {}
    for term in terms:
        if term is ANYTHING:
            return ANYTHING
        for member in term.members if isinstance(term, Or) else (term,):
            members[member.uid] = member
    members.pop(NOTHING.uid, None)
    if len(members) > 1:
        members = _factored(members)
    if ANYTHING.uid in members or _complementary(members):
        return ANYTHING
    if len(members) > 1 and any(isinstance(member, And) for member in members.values()):
        return _assumed(members, And)
    return _pack(members, Or, NOTHING)


def intersection(terms: Iterable[Term]) -> Term:
    members: dict[int, Term] = {}
    for term in terms:
        if term is NOTHING:
            return NOTHING
        for member in term.members if isinstance(term, And) else (term,):
            members[member.uid] = member
    members.pop(ANYTHING.uid, None)
    if len(members) > 1:
        members = _narrowed(members)
    if NOTHING.uid in members or _complementary(members):
        return NOTHING
    if len(members) > 1 and any(isinstance(member, Or) for member in members.values()):
        return _assumed(members, Or)
    return _pack(members, And, ANYTHING)


def complement(term: Term) -> Term:
    if isinstance(term, Not):
        return term.body
    if isinstance(term, Or):
        return intersection(map(complement, term.members))
    if isinstance(term, And):
        return union(map(complement, term.members))
    if term is NOTHING:
        return ANYTHING
    length = length_bounds(term)
    if length is not None:
        low, high = length
        shorter = repeat(ANY_CHAR, 0, low - 1) if low else NOTHING
        return union((shorter, NOTHING if high == inf else repeat(ANY_CHAR, int(high) + 1, inf)))
    return interned(Not, (term.uid,), term)


def length_bounds(term: Term) -> tuple[int, float] | None:
    """`(low, high)` where `term` is every string of such a length, else None."""
    if isinstance(term, Repeat) and term.body is ANY_CHAR:
        return term.low, term.high
    if term is ANY_CHAR:
        return 1, 1
    return (0, 0) if term is EMPTY else None


def apart_from_length(term: Term) -> tuple[Term, int] | None:
    """A term and an upper length whose intersection `term` is, where they are seen at once.

    The term is exact, but for some strings and those of less than a lower length.
    """
    endless = _without_end(term)
    if endless is not None:
        return endless
    if not isinstance(term, And):
        return None
    for length in term.members:
        bounds = length_bounds(length)
        low, core, high = (
            (bounds[0], ANYTHING, bounds[1]) if bounds is not None else (0, *(_without_end(length) or (length, inf)))
        )
        if high < inf:
            core = intersection((core, *(member for member in term.members if member is not length)))
            if low == 1 and not core.contextual:
                core = non_empty(core)
            if low > core.min_len:
                core = intersection((core, repeat(ANY_CHAR, low, inf)))
            return (core, int(high)) if _is_countable(core) else None
    return None


def _is_countable(core: Term) -> bool:
    """Whether `core` is an exact term, but for some strings and those of less than a lower length."""
    parts = core.members if isinstance(core, And) else (core,)
    positive = [member for member in parts if not isinstance(member, Not)]
    rest = [member for member in positive if length_bounds(member) is None]
    return not core.contextual and len(rest) <= 1 and len(positive) - len(rest) <= 1 and all(one.exact for one in positive)


def _without_end(term: Term) -> tuple[Term, int] | None:
    """A class of characters repeated without end, and an upper length, whose intersection `term` is."""
    if isinstance(term, Repeat) and isinstance(term.body, Chars) and term.low < term.high < inf:
        return repeat(term.body, term.low, inf), int(term.high)
    return None


def apart_from_strings(term: Term) -> tuple[Term, tuple[str, ...]] | None:
    """A term and strings that `term` is without, where they are seen at once."""
    for denied in term.members if isinstance(term, And) else (term,):
        if isinstance(denied, Not) and isinstance(denied.body, Values):
            rest = (member for member in term.members if member is not denied) if isinstance(term, And) else ()
            return intersection(rest), denied.body.strings
    return None


def _pack(members: dict[int, Term], kind: type[Or] | type[And], nothing: Term) -> Term:
    if len(members) < 2:
        return next(iter(members.values()), nothing)
    uids = tuple(sorted(members))
    return interned(kind, uids, tuple(members[uid] for uid in uids))


def _complementary(members: dict[int, Term]) -> bool:
    return any(isinstance(member, Not) and member.body.uid in members for member in members.values())


def _assumed(members: dict[int, Term], inner: type[Or] | type[And]) -> Term:
    """The union (intersection) of `members`, the atoms among them taken as settled inside those of kind `inner`.

    x | (x & y) = x and x | (~x & y) = x | y, at every depth: no atom stands twice on a path, so terms stay finitely many.
    """
    outer = intersection if inner is Or else union
    atoms = frozenset(uid for uid, member in members.items() if not isinstance(member, inner))
    denied = frozenset(member.body.uid for member in members.values() if isinstance(member, Not))
    kept = [old if old.uid in atoms else _settle(old, atoms, denied, inner is Or) for old in members.values()]
    if all(new is old for new, old in zip(kept, members.values(), strict=True)):
        return _pack(members, And if inner is Or else Or, NOTHING)
    return outer(kept)


def _settle(term: Term, atoms: frozenset[int], denied: frozenset[int], holds: bool) -> Term:
    """`term` where every term of `atoms` is everything if `holds`, else nothing, and those of `denied` the opposite."""
    if term.uid in atoms:
        return ANYTHING if holds else NOTHING
    if term.uid in denied or (isinstance(term, Not) and term.body.uid in atoms):
        return NOTHING if holds else ANYTHING
    if not isinstance(term, Or | And):
        return term
    settled = [_settle(member, atoms, denied, holds) for member in term.members]
    if all(new is old for new, old in zip(settled, term.members, strict=True)):
        return term
    return union(settled) if isinstance(term, Or) else intersection(settled)


# Unions by common tails


def _factored(members: dict[int, Term]) -> dict[int, Term]:
    """The same union with the heads before one common tail merged where that makes fewer terms."""
    tails = {term.tail.uid for term in members.values() if isinstance(term, Concat)}
    groups: dict[int, tuple[Term, list[Term]]] = {}
    for term in members.values():
        head, tail = term, EMPTY
        if term.uid in tails:
            head, tail = EMPTY, term
        elif isinstance(term, Concat):
            head, tail = term.head, term.tail
        groups.setdefault(tail.uid, (tail, []))[1].append(head)
    result: dict[int, Term] = {}
    for tail, heads in groups.values():
        for head in _merge_heads(heads, tail) if len(heads) > 1 else heads:
            term = concat(head, tail)
            for member in term.members if isinstance(term, Or) else (term,):
                result[member.uid] = member
    return result


def _merge_heads(heads: list[Term], tail: Term) -> list[Term]:
    if ANYTHING in heads:
        return [ANYTHING]
    merged = _merge_literals(_merge_counts(heads, tail))
    if EMPTY in merged and any(head.nullable for head in merged if head is not EMPTY):
        merged.remove(EMPTY)
    if EMPTY in merged and len(merged) == 2:
        other = next(head for head in merged if head is not EMPTY)
        if not other.contextual:
            return [repeat(other, 0, 1)]
    return merged


def _merge_counts(heads: list[Term], tail: Term) -> list[Term]:
    """x{1,3} | x{2,7} = x{1,7}; ranges of counts that leave a gap stay apart. Before ANYTHING x{3} is x{3,}."""
    endless = tail is ANYTHING
    counts: dict[int, tuple[Term, list[tuple[int, float]]]] = {}
    for head in heads:
        if isinstance(head, Repeat):
            counts.setdefault(head.body.uid, (head.body, []))[1].append((head.low, inf if endless else head.high))
    if not counts:
        return heads
    rest: list[Term] = []
    for head in heads:
        if head.uid in counts:
            counts[head.uid][1].append((1, inf if endless else 1))
        elif not isinstance(head, Repeat):
            rest.append(head)
    if EMPTY in rest:
        optional = next((spans for _, spans in counts.values() if min(spans)[0] <= 1), None)
        if optional is not None:
            rest.remove(EMPTY)
            optional.append((0, 0))
    return rest + [repeat(body, low, high) for body, spans in counts.values() for low, high in _merge_spans(spans)]


def _merge_spans(spans: list[tuple[int, float]]) -> list[tuple[int, float]]:
    merged: list[tuple[int, float]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _merge_literals(heads: list[Term]) -> list[Term]:
    """At most one Chars and one Values, the single characters in the Chars if there is one."""
    literals = [head for head in heads if isinstance(head, Values)]
    classes = [head for head in heads if isinstance(head, Chars)]
    if len(literals) + len(classes) < 2:
        return heads
    strings = {text for literal in literals for text in literal.strings}
    merged: list[Term] = [head for head in heads if not isinstance(head, Values | Chars)]
    if any(head.nullable for head in merged):
        strings.discard("")
    if classes:
        singles = {text for text in strings if len(text) == 1}
        strings -= singles
        ranges = [span for one in classes for span in one.ranges] + [(ord(text), ord(text)) for text in singles]
        merged.append(chars(charsets.normalise(ranges)))
    if strings:
        merged.append(values(strings))
    return merged


# Intersections of single characters, counts and lengths


def _narrowed(members: dict[int, Term]) -> dict[int, Term]:
    """The same intersection with its one-class terms and its lengths merged into one each."""
    if sum(_span(member) is not None for member in members.values()) > 1:
        members = _merge_classes(members)
    if sum(_is_denied_literal(member) for member in members.values()) > 1:
        members = _merge_denied(members)
    low, high = max(m.min_len for m in members.values()), min(m.max_len for m in members.values())
    if low > high:
        return {NOTHING.uid: NOTHING}
    if EMPTY.uid in members and not any(member.contextual for member in members.values()):
        keep = EMPTY if all(member.nullable for member in members.values()) else NOTHING
        return {keep.uid: keep}
    return _relaxed(members)


def _is_denied_literal(term: Term) -> bool:
    return isinstance(term, Not) and isinstance(term.body, Values | Chars)


def _merge_denied(members: dict[int, Term]) -> dict[int, Term]:
    """~"a" & ~"b" = ~("a" | "b")."""
    literals = [member.body for member in members.values() if isinstance(member, Not) and _is_denied_literal(member)]
    rest = {uid: member for uid, member in members.items() if not _is_denied_literal(member)}
    merged = union(literals)
    for literal in merged.members if isinstance(merged, Or) else (merged,):
        denied = complement(literal)
        rest[denied.uid] = denied
    return rest


def _char_ranges(term: Term) -> Ranges | None:
    """The ranges of a term whose strings are single characters, else None."""
    if isinstance(term, Chars):
        return term.ranges
    if isinstance(term, Values) and len(term.strings) == 1 and len(term.strings[0]) == 1:
        return charsets.of_chars(term.strings)
    return None


def _span(term: Term) -> tuple[Ranges, int, float] | None:
    """`(ranges, low, high)` of a term that is one character class repeated, else None."""
    body, low, high = as_repeat(term)
    ranges = _char_ranges(body)
    return None if ranges is None else (ranges, low, high)


def _merge_classes(members: dict[int, Term]) -> dict[int, Term]:
    ranges, low, high = charsets.ALPHABET, 0, inf
    rest: dict[int, Term] = {}
    for member in members.values():
        span = _span(member)
        if span is None:
            rest[member.uid] = member
        else:
            ranges, low, high = charsets.intersect(ranges, span[0]), max(low, span[1]), min(high, span[2])
    merged = repeat(chars(ranges), low, high) if low <= high else NOTHING
    if merged is not ANYTHING:
        rest[merged.uid] = merged
    return rest


def _relaxed(members: dict[int, Term]) -> dict[int, Term]:
    """A length that the other members bound already is dropped, so that fewer counts tell states apart."""
    length = next((member for member in members.values() if isinstance(member, Repeat) and member.body is ANY_CHAR), None)
    if length is None or len(members) < 2:
        return members
    rest = {uid: member for uid, member in members.items() if member is not length}
    low = 0 if max(member.min_len for member in rest.values()) >= length.low else length.low
    high = inf if min(member.max_len for member in rest.values()) <= length.high else length.high
    relaxed = repeat(ANY_CHAR, low, high)
    if relaxed is not ANYTHING:
        rest[relaxed.uid] = relaxed
    return rest


def non_empty(term: Term) -> Term:
    """The strings of `term` (not contextual) but for ""."""
    if not term.nullable:
        return term
    if isinstance(term, Values):
        return sorted_values(term.strings[1:])
    if isinstance(term, Repeat) and not term.body.nullable:
        return repeat(term.body, 1, term.high)
    if isinstance(term, Or):
        return union(map(non_empty, term.members))
    return intersection((term, repeat(ANY_CHAR, 1, inf)))
