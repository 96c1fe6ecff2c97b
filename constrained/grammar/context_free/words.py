"""Shortest texts, in bytes of UTF-8: of string languages, of rules, and of what is left of a goal.

Among the shortest it is always the first in one fixed order, so the rest of a shortest text is the shortest text of the
rest. The order prefers letters and digits to punctuation, blanks, what is beyond ASCII, and control characters.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from constrained.errors import GrammarFuelError
from constrained.grammar.context_free.corners import Corners
from constrained.grammar.context_free.grammar import Strings, Symbols
from constrained.grammar.language import LanguageFuelError

MAX_WORD_LEN = 1 << 20
MAX_STATES = 50_000

_PRINTABLE = [byte for byte in range(0x21, 0x7F) if not chr(byte).isalnum()]
_ORDER = bytes(
    [*b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", *_PRINTABLE, *b" \n\t", *range(0x80, 0x100)]
)
_ORDER += bytes(byte for byte in range(0x80) if byte not in _ORDER)
_RANK = bytes(_ORDER.index(byte) for byte in range(256))
_ASCII = [byte for byte in _ORDER if byte < 0x80]
# Code points by the number of bytes that UTF-8 takes beyond one.
_WIDE = ((0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))

Word = tuple[int, bytes, bytes]


def ranked(word: bytes) -> Word:
    """`word` as something to compare: shorter is less, then the order of this module."""
    return len(word), word.translate(_RANK), word


def first_word(strings: Strings) -> bytes:
    """The first of the shortest of some strings, which are not none at all. Raises `LanguageFuelError`."""
    seen: set[Strings] = set()
    queue: list[tuple[Word, int, Strings]] = [(ranked(b""), 0, strings)]
    pushed = 0
    while True:
        (_, _, word), _, here = heapq.heappop(queue)
        if here in seen:
            continue
        if here.accepts_empty:
            return word
        seen.add(here)
        if len(seen) > MAX_STATES:
            raise LanguageFuelError(MAX_STATES)
        for low, high, after in here.steps():
            if after not in seen:
                for character in _candidates(low, high):
                    pushed += 1
                    heapq.heappush(queue, (ranked(word + character), pushed, after))


def _candidates(low: int, high: int) -> list[bytes]:
    """The first character between two code points of each length in bytes."""
    found = []
    if low < 0x80:
        found.append(bytes([next(byte for byte in _ASCII if low <= byte <= high)]))
    found += [chr(max(low, least)).encode() for least, most in _WIDE if low <= most and high >= least]
    return found


class Words:
    """Shortest texts of a grammar's symbols and places; `terminals` are those of its terminals."""

    def __init__(self, corners: Corners, terminals: Mapping[str, bytes]) -> None:
        self._corners = corners
        self._words = dict(terminals)
        self._up: dict[str, dict[str, bytes]] = {}
        self._rests: dict[int, bytes] = {}
        self._find_rules()

    def rest(self, place: int) -> bytes:
        """The shortest text that finds the goal of a place."""
        known = self._rests.get(place)
        if known is None:
            known = self._rests[place] = self._find_rest(place)
        return known

    def _find_rest(self, place: int) -> bytes:
        here = self._corners.places[place]
        if here.is_found:
            return b""
        up, options = self._ways_up(here.goal), []
        for production, dot in here.items:
            rule, symbols = self._corners.productions[production]
            options.append(ranked(self._joined(symbols[dot:]) + up[rule]))
        return min(options)[2]

    def _joined(self, symbols: Symbols) -> bytes:
        return b"".join(map(self._words.__getitem__, symbols))

    def _find_rules(self) -> None:
        """Rules from the shortest text upwards (Knuth, "A generalization of Dijkstra's algorithm", 1977)."""
        productions = self._corners.productions
        missing = [set(symbols) for _, symbols in productions]
        waiting: dict[str, list[int]] = {}
        for index, symbols in enumerate(missing):
            for symbol in symbols:
                waiting.setdefault(symbol, []).append(index)
        queue = [(ranked(word), name) for name, word in self._words.items()]
        heapq.heapify(queue)
        done: set[str] = set()
        while queue:
            (_, _, word), name = heapq.heappop(queue)
            if name in done:
                continue
            done.add(name)
            self._words[name] = word
            for index in waiting.get(name, ()):
                missing[index].discard(name)
                rule, body = productions[index]
                if not missing[index] and rule not in done:
                    if sum(len(self._words[symbol]) for symbol in body) > MAX_WORD_LEN:
                        message = f"the shortest text of {rule!r} is longer than {MAX_WORD_LEN} bytes"
                        raise GrammarFuelError(message, self._corners.grammar.kind, rule)
                    heapq.heappush(queue, (ranked(self._joined(body)), rule))

    def _ways_up(self, goal: str) -> dict[str, bytes]:
        """For each rule at the left corner of `goal`: what follows it in a shortest text of the goal."""
        known = self._up.get(goal)
        if known is not None:
            return known
        by_rule: dict[str, list[Symbols]] = {}
        inside = self._corners.corners(goal)
        for rule, symbols in self._corners.productions:
            if rule in inside:
                by_rule.setdefault(rule, []).append(symbols)
        found: dict[str, bytes] = {}
        queue = [(ranked(b""), goal)]
        while queue:
            (_, _, word), rule = heapq.heappop(queue)
            if rule in found:
                continue
            found[rule] = word
            for symbols in by_rule.get(rule, ()):
                if symbols[0] not in found:
                    heapq.heappush(queue, (ranked(self._joined(symbols[1:]) + word), symbols[0]))
        self._up[goal] = found
        return found
