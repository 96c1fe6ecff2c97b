r"""Python's regular expressions as trees, read by Python's own parser: what the terminals of Lark grammars are written in.

`\w`, `\d` and `\s` are Unicode's, `.` leaves out the newline only, and the flags i, m, s, x, a and u mean what they mean in
`re`. A terminal has no surroundings: an anchor, a word boundary or a lookaround that may look beyond either end of the
match is refused by name, as are backreferences, conditional and atomic groups, and possessive quantifiers.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, reduce
from math import inf
from re import _constants as sre  # no public parser
from re import _parser
from typing import Any, ClassVar

from constrained.grammar.language import ANYTHING, EMPTY, NOTHING, Language, PatternError, charsets, from_ranges
from constrained.grammar.language.charsets import Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One character out of `ranges`."""

    ranges: Ranges

    @property
    def reads(self) -> tuple[Ranges, ...]:
        """The classes of characters that the node itself tells apart."""
        return (self.ranges,)

    def holds(self, character: int) -> bool:
        """Whether a character is in the class."""
        at = bisect_right(self.ranges, (character, charsets.LAST_CODE_POINT)) - 1
        return at >= 0 and character <= self.ranges[at][1]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """The parts one after the other."""

    parts: tuple[Node, ...]
    reads: ClassVar[tuple[Ranges, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The first arm that leads to a match."""

    arms: tuple[Node, ...]
    reads: ClassVar[tuple[Ranges, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """`body` from `low` to `high` times: as often as possible, or as seldom if `lazy`."""

    body: Node
    low: int
    high: float
    lazy: bool
    reads: ClassVar[tuple[Ranges, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """All that the match has read up to here is in `before`, which tells the classes `reads` apart."""

    before: Language
    reads: tuple[Ranges, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """All that the match reads from here on is in `after`, which tells the classes `reads` apart."""

    after: Language
    reads: tuple[Ranges, ...]


Node = Chars | Sequence | Choice | Rounds | Behind | Ahead
NEVER = Choice(())

_NEWLINE: Ranges = ((0x0A, 0x0A),)
_CLASSES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_REFUSED = {
    sre.GROUPREF: "a backreference",
    sre.GROUPREF_EXISTS: "a conditional group",
    sre.ATOMIC_GROUP: "an atomic group",
    sre.POSSESSIVE_REPEAT: "a possessive quantifier",
}


def parse(pattern: str) -> Node:
    """The tree of a pattern. Raises `PatternError`."""
    try:
        parsed = _parser.parse(pattern)
        return _Reader(parsed.state).read(list(parsed), parsed.state.flags, 0, 0)
    except (re.error, OverflowError) as error:
        raise PatternError(str(error), 0) from error
    except RecursionError as error:
        raise PatternError("the pattern is nested too deeply", 0) from error


def walk(node: Node) -> Iterator[Node]:
    """A tree's nodes, each once."""
    pending, seen = [node], {id(node)}
    while pending:
        here = pending.pop()
        yield here
        new = [child for child in _children(here) if id(child) not in seen]
        seen.update(map(id, new))
        pending += new


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.arms
    return (node.body,) if isinstance(node, Rounds) else ()


class _Reader:
    """One parsed pattern; its items are (operator, argument) as Python's parser makes them.

    `before` and `after` are how many characters of the match surely stand on either side of what is read.
    """

    def __init__(self, state: Any) -> None:
        self._state = state

    def read(self, items: list[Any], flags: int, before: int, after: float) -> Node:
        """The tree of a run of items."""
        parts: list[Node] = []
        for index, item in enumerate(items):
            behind, ahead = self._width(items[:index])[0], self._width(items[index + 1 :])[0]
            kind, argument = item
            parts.append(self._item(kind, argument, flags, before + behind, after + ahead))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _width(self, items: list[Any]) -> tuple[int, float]:
        """The least and the most characters that items match."""
        low, high = _parser.SubPattern(self._state, items).getwidth()
        return low, inf if high >= sre.MAXREPEAT else high

    def _item(self, kind: Any, argument: Any, flags: int, before: int, after: float) -> Node:
        if kind in _REFUSED:
            raise PatternError(f"{_REFUSED[kind]} is not supported", 0)
        if kind in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            return Chars(_class(kind, argument, flags))
        if kind is sre.BRANCH:
            return Choice(tuple(self.read(list(arm), flags, before, after) for arm in argument[1]))
        if kind is sre.SUBPATTERN:
            _, added, removed, body = argument
            return self.read(list(body), (flags | added) & ~removed, before, after)
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            low, high, body = argument
            inner = self.read(list(body), flags, before, after)
            return Rounds(inner, int(low), inf if high is sre.MAXREPEAT else int(high), kind is sre.MIN_REPEAT)
        if kind is sre.AT:
            return _anchor(argument, flags, before, after)
        if kind in (sre.ASSERT, sre.ASSERT_NOT):
            return self._lookaround(argument[0], list(argument[1]), kind is sre.ASSERT, flags, before, after)
        if kind is sre.FAILURE:
            return NEVER
        raise PatternError(f"{kind} is not supported", 0)

    def _lookaround(self, direction: int, items: list[Any], holds: bool, flags: int, before: int, after: float) -> Node:
        width, tree = self._width(items)[1], self.read(items, flags, 0, 0)
        body, reads = _language(tree), tuple(ranges for node in walk(tree) for ranges in node.reads)
        if direction > 0:
            _within(width, after, "a lookahead", "end")
            return Ahead(_signed(body + ANYTHING, holds), reads)
        _within(width, before, "a lookbehind", "start")
        return Behind(_signed(ANYTHING + body, holds), reads)


def _language(node: Node) -> Language:
    """The strings of the inside of a lookaround."""
    if isinstance(node, Chars):
        return from_ranges(node.ranges)
    if isinstance(node, Sequence):
        return reduce(operator.add, map(_language, node.parts), EMPTY)
    if isinstance(node, Choice):
        return reduce(operator.or_, map(_language, node.arms), NOTHING)
    if isinstance(node, Rounds):
        return _language(node.body).repeat(node.low, node.high)
    raise PatternError("an assertion inside a lookaround is not supported", 0)


def _signed(language: Language, holds: bool) -> Language:
    return language if holds else ~language


def _within(reach: float, known: float, what: str, end: str) -> None:
    """Refuse what may look further than the match surely goes."""
    if reach > known:
        raise PatternError(f"{what} that may look beyond the {end} of the match is not supported", 0)


def _anchor(which: Any, flags: int, before: int, after: float) -> Node:
    """Anchors ask what stands beside them; at an end of the match that is not known."""
    multiline = bool(flags & re.MULTILINE)
    if which in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        _within(1, before, "'^' or '\\A'", "start")
        return _after(_NEWLINE, True) if multiline and which is sre.AT_BEGINNING else NEVER
    if which in (sre.AT_END, sre.AT_END_STRING):
        at_line = multiline and which is sre.AT_END
        _within(2 if which is sre.AT_END and not multiline else 1, after, "'$' or '\\Z'", "end")
        return _before(_NEWLINE, True) if at_line else NEVER
    _within(1, min(before, after), "a word boundary", "start or the end")
    word, differs = _category(sre.CATEGORY_WORD, bool(flags & re.ASCII)), which is sre.AT_BOUNDARY
    inside = Sequence((_after(word, True), _before(word, not differs)))
    return Choice((inside, Sequence((_after(word, False), _before(word, differs)))))


def _after(ranges: Ranges, holds: bool) -> Behind:
    """The last character is out of `ranges`, or is not."""
    return Behind(_signed(ANYTHING + from_ranges(ranges), holds), (ranges,))


def _before(ranges: Ranges, holds: bool) -> Ahead:
    """The next character is out of `ranges`, or is not."""
    return Ahead(_signed(from_ranges(ranges) + ANYTHING, holds), (ranges,))


# -- classes of characters


def _class(kind: Any, argument: Any, flags: int) -> Ranges:
    if kind is sre.ANY:
        return charsets.ALPHABET if flags & re.DOTALL else charsets.complement(_NEWLINE)
    items = argument if kind is sre.IN else [(sre.LITERAL, argument)]
    negated = kind is sre.NOT_LITERAL or items[0][0] is sre.NEGATE
    spans = [span for item, value in items for span in _spans(item, value, bool(flags & re.ASCII))]
    ranges = charsets.normalise(spans)
    if flags & re.IGNORECASE:
        ranges = _any_case(ranges, flags & (re.IGNORECASE | re.ASCII))
    return charsets.complement(ranges) if negated else ranges


def _spans(kind: Any, value: Any, ascii_only: bool) -> Ranges:
    if kind is sre.LITERAL:
        return ((value, value),)
    if kind is sre.RANGE:
        return (value,)
    return _category(value, ascii_only) if kind is sre.CATEGORY else ()


@cache
def _category(category: Any, ascii_only: bool) -> Ranges:
    """The characters of a category, as `re` itself sees them."""
    pattern = re.compile(_CLASSES[category] + "+", re.ASCII if ascii_only else 0)
    spans = []
    for low, high in charsets.ALPHABET:
        characters = "".join(map(chr, range(low, high + 1)))
        spans += [(low + run.start(), low + run.end() - 1) for run in pattern.finditer(characters)]
    return charsets.normalise(spans)


@cache
def _cased() -> str:
    """The characters that have another case."""
    every = map(chr, (*range(0xD800), *range(0xE000, 0x20000)))
    return "".join(char for char in every if not char.lower() == char == char.upper() == char.casefold())


def _any_case(ranges: Ranges, flags: int) -> Ranges:
    """The characters that a class of `ranges` matches where case is ignored, as `re` itself has it."""
    inside = "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in ranges)
    found = re.findall(f"[{inside}]", _cased(), flags) if inside else []
    return charsets.normalise([*ranges, *((ord(char), ord(char)) for char in found)])
