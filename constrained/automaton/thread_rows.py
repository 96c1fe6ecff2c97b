"""`ThreadRow`: the mask row of one thread with what its walk noted, and where such rows are kept."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.automaton import Thread, decode_content
from constrained.automaton.cells import Cells
from constrained.tokens.rows import MaskRow
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
MAX_THREAD_ROWS = 4096
MAX_STACK_ROWS = 64
# A trie whose strings are tokens without the bytes that they begin with (b"", None: any), a node of it, where a key begins.
WholeKey = tuple[Trie, "bytes | None", int, int]


class Notes:
    """What walks noted beside the bits, before any key is taken out.

    `whole` are keys of the thread's own frame that tokens spell from beginning to end (see `_whole_key`);
    `unsure` are tokens that have to be asked one by one, `asks` says that the answer depends on the item that is being read;
    `left` how many frames some token leaves.
    """

    __slots__ = ("_keys", "asks", "left", "unsure", "whole")

    def __init__(self, whole: list[WholeKey], unsure: list[Int32], asks: bool, left: int) -> None:
        self.whole, self.unsure, self.asks, self.left = whole, unsure, asks, left
        self._keys: dict[bytes, list[Int32]] | None = None

    def keys(self, token_bytes: list[bytes]) -> dict[bytes, list[Int32]]:
        """The tokens that hold a whole key, by its content; read off them when first asked for."""
        if self._keys is None:
            self._keys = {}
            for place in self.whole:
                content, tokens = _whole_key(token_bytes, *place)
                self._keys.setdefault(content, []).append(tokens)
        return self._keys

    def beside(self, other: Notes) -> Notes:
        """What was noted of two parts of a row."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Notes(self.whole + other.whole, self.unsure + other.unsure, self.asks or other.asks, max(self.left, other.left))


class ThreadRow(NamedTuple):
    """The row of one thread, as far as its notes do not take tokens out."""

    row: MaskRow
    notes: Notes


class Rows:
    """Rows of threads, by all of a thread but its stack and by what the frames that its tokens leave return to.

    Bounded: the least recently made are forgotten.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        # Those that depend on no frame below; and, for each number of frames, the rows by what those return to.
        self._flat: OrderedDict[tuple[int, ...], ThreadRow] = OrderedDict()
        self._deep: OrderedDict[tuple[int, ...], dict[int, dict[tuple[int, ...], ThreadRow]]] = OrderedDict()

    def find(self, thread: Thread) -> ThreadRow | None:
        """The row of a thread, where it was kept."""
        key = thread[:5]
        found = self._flat.get(key)
        if found is None:
            for left, by_returns in self._deep.get(key, _NO_ROWS).items():
                found = by_returns.get(self._cells.returns(thread[5], left))
                if found is not None:
                    break
        return found

    def keep(self, thread: Thread, found: ThreadRow) -> ThreadRow:
        """Keep a row; its notes say on how many frames it depends."""
        left, key = found.notes.left, thread[:5]
        if left == 0:
            self._flat[key] = found
            if len(self._flat) > MAX_THREAD_ROWS:
                self._flat.popitem(last=False)
            return found
        kept = self._deep.setdefault(key, {}).setdefault(left, {})
        if len(kept) >= MAX_STACK_ROWS:
            kept.clear()
        kept[self._cells.returns(thread[5], left)] = found
        if len(self._deep) > MAX_THREAD_ROWS:
            self._deep.popitem(last=False)
        return found


def _whole_key(token_bytes: list[bytes], trie: Trie, stripped: bytes | None, node: int, begun: int) -> tuple[bytes, Int32]:
    """The key that ends at a node of a trie and begins at depth `begun`, and the tokens that spell it."""
    tokens = trie.ids[trie.first[node] : trie.first[trie.end[node]]]
    text = token_bytes[int(tokens[0])]
    text = text.lstrip(stripped) if stripped else text
    return decode_content(text[begun : int(trie.depth[node]) - 1]), tokens


NOTHING = Notes([], [], False, 0)
_NO_ROWS: dict[int, dict[tuple[int, ...], ThreadRow]] = {}
