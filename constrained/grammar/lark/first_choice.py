"""The texts that a backtracking engine takes whole: a pattern as Python's `re` reads it, greedy, lazy and in order.

The language of `".*?"` is more than what an engine matches with it: behind the first quote that may end it, it looks no
further. A text belongs to a `FirstChoice` where `re.match` on that text alone takes all of it. Its states are lists of
threads in the order of preference; a thread that has matched cuts off all after it (Cox, "Regular Expression Matching: the
Virtual Machine Approach", 2009). A round of a repetition that reads nothing is not preferred to one that reads, which
engines differ in. Lookbehind is a language that follows what is read, lookahead one that a thread owes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import final

from constrained.grammar.language import ANYTHING, NOTHING, Language, LanguageFuelError, charsets
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.lark.syntax import Ahead, Behind, Chars, Choice, Node, Rounds, Sequence, parse, walk

MAX_STATES = 20_000
MAX_THREADS = 2_000

Steps = tuple[tuple[int, int, "FirstChoice"], ...]
Thread = tuple[int, Language]  # what is left to match, and the language that it owes
_END = 0


@lru_cache(maxsize=512)
def first_choice(pattern: str) -> FirstChoice:
    """The texts that `re.match(pattern, ...)` takes whole. Raises `PatternError`."""
    return _Engine(parse(pattern), charsets.ALPHABET).start()


@final
class FirstChoice:
    """One state: what may still follow. Immutable, and one object per state, so `is` and `==` agree."""

    __slots__ = ("_behind", "_engine", "_steps", "_threads", "is_dead")

    def __init__(self, engine: _Engine, threads: tuple[Thread, ...], behind: tuple[Language, ...]) -> None:
        self._engine = engine
        self._threads = threads
        self._behind = behind
        self._steps: Steps | None = None
        self.is_dead: bool | None = None if threads else True

    @property
    def accepts_empty(self) -> bool:
        return bool(self._threads) and self._threads[-1][0] == _END

    @property
    def is_empty(self) -> bool:
        """Whether no text is in it. Raises `LanguageFuelError`."""
        return self._engine.is_dead(self)

    def steps(self) -> Steps:
        """`(low, high, state)`: after a character from `low` to `high`, `state` is what may follow.

        Ascending and disjoint; characters that lead to no text are left out. Raises `LanguageFuelError`.
        """
        if self._steps is None:
            moves = [(ranges, after) for ranges, after in self.moves() if not self._engine.is_dead(after)]
            self._steps = tuple(sorted(((*span, after) for ranges, after in moves for span in ranges), key=lambda s: s[0]))
        return self._steps

    def moves(self) -> Iterator[tuple[Ranges, FirstChoice]]:
        """The steps by classes of characters, those that lead to no text too."""
        return self._engine.moves(self._threads, self._behind)

    def without_empty(self) -> FirstChoice:
        """The same texts but for the empty one."""
        if not self.accepts_empty:
            return self
        return self._engine.state(self._threads[:-1], self._behind)

    def within(self, characters: Ranges) -> FirstChoice:
        """The texts of some characters only; asked of a start."""
        return _Engine(self._engine.root, characters).start()


class _Engine:
    """One pattern over an alphabet: its states, made when first met. Safe between threads."""

    def __init__(self, root: Node, alphabet: Ranges) -> None:
        self.root = root
        self._lock = threading.RLock()
        self._behind: list[Behind] = [node for node in walk(root) if isinstance(node, Behind)]
        self._place = {id(node): index for index, node in enumerate(self._behind)}
        self._classes = _partition([ranges for node in walk(root) for ranges in node.reads], alphabet)
        # What is left to match: (what comes next, how often it came already, what comes then); 0 is the end.
        self._rests: list[tuple[Node, int, int]] = [(root, 0, _END)]
        self._rest_index: dict[tuple[int, int, int], int] = {}
        self._states: dict[tuple[tuple[Thread, ...], tuple[Language, ...]], FirstChoice] = {}

    def start(self) -> FirstChoice:
        """Before the first character."""
        behind = tuple(node.before for node in self._behind)
        threads: list[Thread] = []
        self._open(self._rest(self.root, 0, _END), ANYTHING, behind, threads, set())
        return self.state(tuple(threads), behind)

    def state(self, threads: tuple[Thread, ...], behind: tuple[Language, ...]) -> FirstChoice:
        with self._lock:
            key = (threads, behind if threads else ())
            found = self._states.get(key)
            if found is None:
                if len(threads) > MAX_THREADS:
                    raise LanguageFuelError(MAX_THREADS)
                found = self._states[key] = FirstChoice(self, *key)
            return found

    def moves(self, threads: tuple[Thread, ...], behind: tuple[Language, ...]) -> Iterator[tuple[Ranges, FirstChoice]]:
        """The states after each class of characters that some thread reads."""
        with self._lock:
            for ranges in self._classes:
                after = self._step(threads, behind, ranges[0][0])
                if after is not None:
                    yield ranges, after

    def _step(self, threads: tuple[Thread, ...], behind: tuple[Language, ...], character: int) -> FirstChoice | None:
        moved = tuple(_after(language, character) for language in behind)
        found: list[Thread] = []
        seen: set[Thread] = set()
        for rest, owed in threads:
            node, _, then = self._rests[rest]
            if rest == _END or not isinstance(node, Chars) or not node.holds(character):
                continue
            left = _after(owed, character)
            if left is not NOTHING and self._open(then, left, moved, found, seen):
                break
        return self.state(tuple(found), moved) if found else None

    def _open(self, rest: int, owed: Language, behind: tuple[Language, ...], threads: list[Thread], seen: set[Thread]) -> bool:
        """Append the threads that wait for a character, in order; True where one has matched, which ends the list."""
        pending = [(rest, owed)]
        while pending:
            thread = pending.pop()
            if thread in seen:
                continue
            seen.add(thread)
            rest, owed = thread
            if rest == _END:
                if owed.accepts_empty:
                    threads.append((_END, ANYTHING))
                    return True
                continue
            node, count, then = self._rests[rest]
            if isinstance(node, Chars):
                threads.append(thread)
            elif isinstance(node, Ahead):
                owed = owed & node.after
                pending += [(then, owed)] if not owed.is_empty else []
            elif isinstance(node, Behind):
                pending += [(then, owed)] if behind[self._place[id(node)]].accepts_empty else []
            else:
                pending += [(way, owed) for way in reversed(self._ways(node, count, then))]
        return False

    def _ways(self, node: Sequence | Choice | Rounds, count: int, then: int) -> list[int]:
        """The ways on through a node, in order."""
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._rest(part, 0, then)
            return [then]
        if isinstance(node, Choice):
            return [self._rest(arm, 0, then) for arm in node.arms]
        if count >= node.high:
            return [then]
        more = count + 1 if node.high < float("inf") else min(count + 1, node.low)
        again = self._rest(node.body, 0, self._rest(node, more, then))
        if count < node.low:
            return [again]
        return [then, again] if node.lazy else [again, then]

    def _rest(self, node: Node, count: int, then: int) -> int:
        key = (id(node), count, then)
        found = self._rest_index.get(key)
        if found is None:
            found = self._rest_index[key] = len(self._rests)
            self._rests.append((node, count, then))
        return found

    def is_dead(self, start: FirstChoice) -> bool:
        """Whether no text is left; what is found out on the way is kept."""
        if start.is_dead is None:
            with self._lock:
                self._search(start)
        return bool(start.is_dead)

    def _search(self, start: FirstChoice) -> None:
        sources: dict[FirstChoice, list[FirstChoice]] = {start: []}
        pending = [start]
        while pending:
            here = pending.pop()
            if here.is_dead is False or here.accepts_empty:
                _mark_alive(here, sources)
                return
            if len(sources) > MAX_STATES:
                raise LanguageFuelError(MAX_STATES)
            for _, after in here.moves():
                if after not in sources:
                    pending.append(after)
                sources.setdefault(after, []).append(here)
        for state in sources:
            state.is_dead = True


def _mark_alive(state: FirstChoice, sources: dict[FirstChoice, list[FirstChoice]]) -> None:
    state.is_dead = False
    pending = [*sources[state]]
    while pending:
        here = pending.pop()
        if here.is_dead is None:
            here.is_dead = False
            pending += sources[here]


def _after(language: Language, character: int) -> Language:
    """What may follow a character in a language."""
    if language is ANYTHING:
        return language
    return next((after for low, high, after in language.steps() if low <= character <= high), NOTHING)


def _partition(sets: list[Ranges], alphabet: Ranges) -> list[Ranges]:
    """The alphabet in classes that no set tells apart; what is in no set is left out."""
    distinct = list(dict.fromkeys(sets))
    events = sorted({bound for ranges in distinct for low, high in ranges for bound in (low, high + 1)})
    inside: dict[int, int] = {}
    for index, ranges in enumerate(distinct):
        for low, high in ranges:
            for bound in (low, high + 1):
                inside[bound] = inside.get(bound, 0) ^ (1 << index)
    classes: dict[int, list[tuple[int, int]]] = {}
    member = 0
    for low, stop in pairwise(events):
        member ^= inside[low]
        if member:
            classes.setdefault(member, []).append((low, stop - 1))
    found = (charsets.intersect(charsets.normalise(spans), alphabet) for spans in classes.values())
    return [ranges for ranges in found if ranges]
