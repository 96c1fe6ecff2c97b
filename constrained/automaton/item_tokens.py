"""Tokens that hold the comma behind an item of an array whose items must differ: which follow, which do not, which to ask."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import strings
from constrained.automaton.automaton import Automaton, item_value, open_string
from constrained.automaton.cells import BOTTOM
from constrained.automaton.frames import ArrayItem, ArrayNext, ArrayOpen
from constrained.automaton.next_items import Ending, Further, Opening
from constrained.automaton.threads import Thread
from constrained.automaton.vocabulary_rows import VocabularyRows
from constrained.grammar.items import Standing
from constrained.grammar.shapes import NodeKey
from constrained.grammar.string_sets import UNBOUNDED

Int32 = NDArray[np.int32]
AHEAD = 8  # items that one token may add, as far as what it adds is looked at


class Items(NamedTuple):
    """What follows an item of an array whose items must differ.

    `values` are those of the items before it. `opening` is what may be begun of the next one and can be ended then, whatever
    they are; None where that is not known. `behind_any` is the local state behind an item of the same array without that items
    must differ; None where that is another array. `is_endless`: several items more may come.
    """

    values: tuple[str, ...]
    opening: Opening | None
    behind_any: int | None
    is_endless: bool


class Sorted(NamedTuple):
    """The tokens that must be asked one by one, and those that cannot follow."""

    asked: list[Int32]
    out: list[Int32]


class _Ended(NamedTuple):
    """A token that ends an item: up to the comma, and what it holds behind that."""

    head: bytes
    further: Further


class ItemTokens:
    """The tokens of one automaton and one vocabulary."""

    def __init__(self, automaton: Automaton, shared: VocabularyRows) -> None:
        self._automaton = automaton
        self._shared = shared
        # By the place behind an item: False for a token that no array of such items can hold, None for one that must be asked.
        self._known: dict[tuple[int, Ending, int], _Ended | Literal[False] | None] = {}

    def sort(self, thread: Thread, unsure: list[Int32], history: bytes | bytearray) -> Sorted:
        """The tokens of which a thread is not sure, where they ask for the value of an item; `history` led to the thread."""
        lex, esc, _, _, local, cell = thread
        if esc:
            return Sorted(list(unsure), [])
        ending = Ending.IN_STRING if lex >= strings.FREE else Ending.ELSEWHERE
        items = self._behind(local)
        if items is None and (items := self._at(local)) is not None:
            ending = Ending.BEFORE
        if items is None:
            outer = self._behind(self._automaton.cells.local(cell)) if self._automaton.locals.ends_member(local) else None
            return Sorted(self._left(outer, unsure, ending, in_object=True), [])
        asked: list[int] = []
        out: list[int] = []
        for tokens in self._left(items, unsure, ending, in_object=False):
            for token in tokens.tolist():
                follows = self._follows(items, token, ending, history)
                if not follows:
                    (asked if follows is None else out).append(token)
        return Sorted(*([np.array(tokens, np.int32)] if tokens else [] for tokens in (asked, out)))

    def _behind(self, local: int) -> Items | None:
        """What may follow an item of an array, whatever its value; None where no item ends at the local state."""
        here = self._automaton.locals.state(local)
        return self._items(here.plan, here.standing, here.depth) if isinstance(here, ArrayNext) else None

    def _at(self, local: int) -> Items | None:
        """What may follow the item that begins at a local state; None where none does."""
        match self._automaton.locals.state(local):
            case ArrayItem(plan, standing, depth):
                return self._items(plan, standing, depth)
            case ArrayOpen(plan, depth):
                return self._items(plan, self._automaton.locals.array_plans[plan].start, depth)
        return None

    def _items(self, plan_index: int, standing: Standing, depth: int) -> Items:
        locals_ = self._automaton.locals
        plan = locals_.array_plans[plan_index]
        if not plan.is_uniform:
            return Items(standing.values, None, None, is_endless=False)
        is_roomy = plan.is_roomy(standing, AHEAD)
        shape = replace(plan.shape, distinct=False, min_items=0, max_items=UNBOUNDED)
        others = locals_.array_plan(locals_.nodes.array_plan(shape))
        behind_any = locals_.index(ArrayNext(others, locals_.array_plans[others].start, depth))
        opening = self._opening(plan.shape.rest, is_roomy=is_roomy)
        return Items(standing.values, opening, behind_any, is_endless=is_roomy and plan.shape.max_items >= UNBOUNDED)

    def _opening(self, rest: NodeKey, *, is_roomy: bool) -> Opening | None:
        """By the node of the items; `is_roomy`: there are several values that the array does not hold."""
        node = self._automaton.locals.nodes[rest]
        if not rest:
            return Opening.ANYTHING
        if any(s.values is None and s.language is None and s.max_len >= UNBOUNDED for s in node.strings):
            return Opening.STRING
        kinds = (node.literals, node.strings, node.numbers, node.arrays, node.objects)
        match is_roomy, [kind for kind in kinds if kind]:
            case (False, _):
                return None
            case (_, [only]) if only is node.strings:
                return Opening.QUOTE
            case (_, [only]) if only is node.objects:
                return Opening.OBJECT
            case (_, [only]) if only is node.numbers and any(n.values is None and n.lower is None for n in node.numbers):
                return Opening.NUMBER
        return Opening.NOTHING

    def _left(self, items: Items | None, unsure: list[Int32], ending: Ending, *, in_object: bool) -> list[Int32]:
        """Without the tokens that at most begin an item which can be ended."""
        if items is None or items.opening is None:
            return list(unsure)
        sure = self._shared.next_items.of(items.opening, ending, in_object=in_object)
        return [tokens[~sure[tokens]] for tokens in unsure]

    def _follows(self, items: Items, token: int, ending: Ending, history: bytes | bytearray) -> bool | None:
        """Whether a token can follow; None where it must be asked."""
        if items.behind_any is None:
            return None
        place = (items.behind_any, ending, token)
        if place not in self._known:
            self._known[place] = self._read(items.behind_any, token, ending)
        ended = self._known[place]
        if not ended:
            return ended
        texts, rest = ended.further
        if not items.is_endless or items.opening is None or len(texts) + 1 > AHEAD:
            return None
        if re.fullmatch(items.opening.value, rest, re.DOTALL) is None:
            return None
        if len({*items.values, *texts}) < len(items.values) + len(texts):
            return False
        return _value(history, ended.head, ending) not in texts

    def _read(self, behind_any: int, token: int, ending: Ending) -> _Ended | Literal[False] | None:
        parts = self._shared.next_items.split(token, ending)
        if parts is None:
            return None
        head, tail = parts
        begun, bracket, _ = tail.partition(b"]")
        if (bracket and not begun.strip()) or not self._fits(behind_any, begun):
            return False
        return _Ended(head, self._shared.next_items.further(tail))

    def _fits(self, behind_any: int, tail: bytes) -> bool:
        """Whether the array could go on like this behind a comma if no two of its items had to differ."""
        automaton = self._automaton
        start = automaton.state_of([(automaton.locals.entry(behind_any), 0, 0, 0, behind_any, BOTTOM)])
        return automaton.advance(start, b"," + tail)[0] is not None


def _value(history: bytes | bytearray, head: bytes, ending: Ending) -> str:
    """The canonical text of the item that ends before the comma which ends `head`."""
    if ending is Ending.IN_STRING:
        raw = open_string(history) + head[: head.rindex(b'"')]
        if raw.isascii() and b"\\" not in raw:
            return f'"{raw.decode()}"'
    return item_value(history, head[:-1])[0]
