"""Questions about a term that need more than one step: emptiness, shortest string, finiteness, enumeration.

States are terms; they are explored lazily, nearest end first, and what is learnt stays on the terms. A search that
expands more states than `state_limit` allows ends in `LanguageFuelError`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from constrained.grammar.language.boolean import length_bounds
from constrained.grammar.language.derive import accepts_empty, moves
from constrained.grammar.language.errors import LanguageFuelError
from constrained.grammar.language.normal import NOTHING
from constrained.grammar.language.outlook import run
from constrained.grammar.language.terms import And, Moves, Term

DEFAULT_MAX_STATES = 20_000
_max_states: ContextVar[int] = ContextVar("max_states", default=DEFAULT_MAX_STATES)


@contextmanager
def state_limit(num_states: int) -> Iterator[None]:
    """Within it, one question may expand at most `num_states` states."""
    reset = _max_states.set(num_states)
    try:
        yield
    finally:
        _max_states.reset(reset)


def live_moves(term: Term) -> Moves:
    """The steps whose derivative is not empty."""
    return tuple([move for move in moves(term) if move[2].is_empty is False or not is_empty(move[2])])


def is_empty(term: Term) -> bool:
    known = term.is_empty
    if known is None:
        known = term.is_empty = term is NOTHING or (not _has_string(term) and _search_string(term))
    return known


def _has_string(term: Term) -> bool:
    """Whether `term` is known to hold a string, without a step."""
    if term.is_empty is not None:
        return not term.is_empty
    return term.exact or accepts_empty(term) or run(term).max_len > 0 or (isinstance(term, And) and _has_string_of_length(term))


def _has_string_of_length(term: And) -> bool:
    """An exact language cut to lengths: it holds its shortest string, and strings of any length if it is infinite."""
    if len(term.members) != 2:
        return False
    for length, other in (term.members, term.members[::-1]):
        bounds = length_bounds(length)
        if bounds is not None and other.exact:
            low, high = bounds
            return low <= other.min_len <= high or (high == inf and other.max_len >= low)
    return False


def _search_string(start: Term) -> bool:
    """Whether `start` is empty; marks every term on the way to an answer."""
    sources: dict[Term, list[Term]] = {start: []}
    queue: list[tuple[float, int, Term]] = [(start.min_len, 0, start)]
    expanded, limit = 0, _max_states.get()
    while queue:
        term = heapq.heappop(queue)[2]
        expanded += 1
        if expanded > limit:
            raise LanguageFuelError(limit)
        for _, _, after in moves(term):
            if after in sources:
                sources[after].append(term)
                continue
            sources[after] = [term]
            if _has_string(after):
                _mark_inhabited(after, sources)
                return False
            if after.is_empty is None:
                heapq.heappush(queue, (after.min_len, -len(sources), after))
    for term in sources:
        term.is_empty = True
    return True


def _mark_inhabited(term: Term, sources: dict[Term, list[Term]]) -> None:
    pending = [term]
    while pending:
        term = pending.pop()
        if term.is_empty is None:
            term.is_empty = False
            pending += sources[term]


# Shortest strings

# Letters and digits, other ASCII, what JSON escapes, the rest of Unicode; control characters come last.
_PREFERRED = (
    (0x61, 0x7A),
    (0x30, 0x39),
    (0x41, 0x5A),
    (0x23, 0x5B),
    (0x5D, 0x7E),
    (0x20, 0x21),
    (0x22, 0x22),
    (0x5C, 0x5C),
    (0xA1, 0x10FFFF),
)


def _preferred(low: int, high: int) -> tuple[int, int]:
    """`(rank, code point)` of the plainest character between `low` and `high`."""
    for rank, (first, last) in enumerate(_PREFERRED):
        if low <= last and high >= first:
            return rank, max(low, first)
    return len(_PREFERRED), low


def shortest_len(term: Term) -> int | None:
    """The length of the shortest strings in code points, or None where there is none."""
    if term.exact:
        return int(term.min_len)
    if term.shortest_len is None and not is_empty(term):
        _search_shortest(term)
    return term.shortest_len


def _search_shortest(start: Term) -> str:
    """A shortest string of `start`, which is not empty; the lengths on its way are memoised. A* with `min_len` as bound."""
    length: dict[Term, int] = {start: 0}
    came: dict[Term, tuple[Term, int]] = {}
    queue: list[tuple[float, int, int, Term, int]] = [(_bound(start), 0, 0, start, 0)]
    limit, pushed = _max_states.get(), 0
    while True:
        _, ranks, _, term, so_far = heapq.heappop(queue)
        if so_far > length[term]:
            continue
        if _known_len(term) is not None:
            return _way(start, term, came)
        if len(length) > limit:
            raise LanguageFuelError(limit)
        for low, high, after in moves(term):
            if after.is_empty or length.get(after, inf) <= so_far + 1:
                continue
            rank, code_point = _preferred(low, high)
            length[after], came[after] = so_far + 1, (term, code_point)
            pushed += 1
            heapq.heappush(queue, (so_far + 1 + _bound(after), ranks + rank, -pushed, after, so_far + 1))


def _known_len(term: Term) -> int | None:
    if accepts_empty(term):
        return 0
    return int(term.min_len) if term.exact else term.shortest_len


def _bound(term: Term) -> float:
    known = _known_len(term)
    return max(term.min_len, 1) if known is None else known


def _way(start: Term, end: Term, came: dict[Term, tuple[Term, int]]) -> str:
    rest = _known_len(end)
    assert rest is not None
    chars: list[str] = []
    term = end
    term.shortest_len = rest
    while term is not start:
        term, code_point = came[term]
        chars.append(chr(code_point))
        term.shortest_len = rest + len(chars)
    return "".join(reversed(chars)) + _descend(end, rest)


def _descend(term: Term, length: int) -> str:
    """A shortest string of a term whose shortest length is known, its plainest characters first."""
    chars: list[str] = []
    while length:
        length -= 1
        nearer = [(*_preferred(low, high), after) for low, high, after in moves(term) if _reaches(after, length)]
        _, code_point, term = min(nearer, key=lambda option: option[:2])
        chars.append(chr(code_point))
    return "".join(chars)


def _reaches(term: Term, length: int) -> bool:
    return term.min_len <= length and shortest_len(term) == length


def shortest(term: Term) -> str | None:
    """A shortest string, of letters and digits where they are as short as others."""
    length = shortest_len(term)
    return None if length is None else _descend(term, length)


# Finiteness


def is_finite(term: Term) -> bool:
    if term.max_len < inf or is_empty(term):
        return True
    return False if term.exact else not _has_cycle(term)


def _has_cycle(start: Term) -> bool:
    """Depth first; a live term that is met again below itself means strings without end."""
    open_terms, closed = {start}, set[Term]()
    stack = [(start, iter(live_moves(start)))]
    limit = _max_states.get()
    while stack:
        term, rest = stack[-1]
        for _, _, after in rest:
            if after in open_terms or (after.exact and after.max_len == inf):
                return True
            if after not in closed and after.max_len == inf:
                open_terms.add(after)
                stack.append((after, iter(live_moves(after))))
                break
        else:
            stack.pop()
            open_terms.discard(term)
            closed.add(term)
        if len(open_terms) + len(closed) > limit:
            raise LanguageFuelError(limit)
    return False


def strings(term: Term) -> Iterator[str]:
    """Every string of a finite term, in code point order, each made when it is asked for."""
    if accepts_empty(term):
        yield ""
    prefix: list[str] = []
    stack = [_characters(term)]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            del prefix[-1:]
            continue
        character, after = step
        prefix.append(character)
        stack.append(_characters(after))
        if accepts_empty(after):
            yield "".join(prefix)


def _characters(term: Term) -> Iterator[tuple[str, Term]]:
    for low, high, after in live_moves(term):
        for code_point in range(low, high + 1):
            yield chr(code_point), after
