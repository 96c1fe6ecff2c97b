"""Emptiness: the length of the shortest text of nodes that are new, as a least fixpoint; then they are trimmed.

A node that no finite text meets stays infinite: it is empty, and whatever leads to it goes. Where only that is asked, any
length will do, and what is plainly not empty is not gone into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from constrained.errors import FuelError
from constrained.grammar.items import ArrayPlan
from constrained.grammar.language import LanguageFuelError, LanguageTimeError, check_time
from constrained.grammar.node import INFINITE, Node
from constrained.grammar.shapes import ArrayShape, NodeKey

if TYPE_CHECKING:
    from constrained.grammar.nodes import Nodes


SOME = 1  # the length of whatever has one, where no more is asked
MAX_OPEN = 12  # nodes that are being measured, each met by the one before


class Measuring:
    """One growth of the nodes: those that are met for the first time, until all are measured.

    `roughly`: until it is known which are empty; all others are `SOME` bytes long.

    A node is measured when it is met, children before parents as far as there is no recursion, and again whenever one that
    it has read has become shorter: lengths only shrink, so it ends. What is first met while another node is measured (what
    members must meet by the clauses that they settle) is measured there and then: else the other would be measured anew
    for each of them.
    """

    def __init__(self, nodes: Nodes, make: Callable[[NodeKey], Node], *, roughly: bool) -> None:
        self._nodes = nodes
        self._make = make
        self.roughly = roughly
        self.fresh: dict[NodeKey, Node] = {}
        self._readers: dict[NodeKey, dict[NodeKey, None]] = {}
        self._reader: NodeKey | None = None
        self._open: list[NodeKey] = []  # those that are being measured
        self._outdated: set[NodeKey] = set()  # those of them that have read what became shorter since
        self._wanted: dict[NodeKey, None] = {}
        self._queue: dict[NodeKey, None] = {}

    def min_len(self, key: NodeKey) -> int:
        """The length of a fresh node as far as it is known; one that nobody met before is met at once, or next."""
        node = self.fresh.get(key)
        if node is None and self.roughly and self._nodes.has_value(key):
            return SOME
        if node is None and 0 < len(self._open) < MAX_OPEN:
            node = self._measure_now(key)
        if self._reader is not None:
            self._readers.setdefault(key, {})[self._reader] = None
        if node is None:
            self._wanted[key] = None
            return INFINITE
        return node.min_len

    def _measure_now(self, key: NodeKey) -> Node | None:
        """Meet a node while another is measured."""
        reader, waiting = self._reader, len(self._queue)
        self._meet([key])
        self._settle(waiting)
        self._reader = reader
        return self.fresh.get(key)

    def run(self, key: NodeKey) -> None:
        """Expand, measure and trim a node and all that it leads to.

        Arrays whose elements must differ count by lower bounds; where they cannot differ they go, and all is measured anew.
        """
        self._meet([key])
        while True:
            self._settle()
            self._reader = None
            lacking = [(node, shape) for node in self.fresh.values() for shape in node.arrays if self._lacks_values(shape)]
            if not lacking:
                break
            for node, shape in lacking:
                node.arrays = tuple(other for other in node.arrays if other != shape)
            for node in self.fresh.values():
                node.min_len = INFINITE
            self._queue = dict.fromkeys(self.fresh)
        for node in self.fresh.values():
            self._trim(node)

    def _meet(self, pending: list[NodeKey]) -> None:
        """Expand the nodes and all that they lead to; they are measured in the reverse of the order in which they are met."""
        nodes, fresh, queue = self._nodes, self.fresh, self._queue
        while pending:
            key = pending.pop()
            if key in fresh or nodes.has(key) or (self.roughly and nodes.has_value(key)):
                continue
            node = fresh[key] = self._make(key)
            if node.min_len >= INFINITE:
                queue[key] = None
            pending += nodes.children(node)

    def _settle(self, waiting: int = 0) -> None:
        """Measure until no more than so many nodes wait."""
        queue, readers = self._queue, self._readers
        while len(queue) > waiting:
            key = queue.popitem()[0]
            node = self.fresh[key]
            self._reader = key
            self._open.append(key)
            length = self._measured(node)
            self._open.pop()
            if key in self._outdated:
                self._outdated.discard(key)
                queue[key] = None
            if self.roughly and length < INFINITE:
                length = SOME
            if length < node.min_len:
                node.min_len = length
                for reader in readers.get(key, ()):
                    if reader in self._open:
                        self._outdated.add(reader)
                    else:
                        queue[reader] = None
            if self._wanted:
                self._meet(list(self._wanted))
                self._wanted = {}

    def _measured(self, node: Node) -> int:
        try:
            check_time()
            return self._nodes.node_len(node)
        except (LanguageFuelError, LanguageTimeError):
            self._nodes.work_at(node.key)
            raise
        except FuelError as error:
            if error.pointer:
                raise
            raise self._nodes.placed(error, node.key) from error

    def _lacks_values(self, shape: ArrayShape) -> bool:
        if not shape.distinct or self._nodes.array_len(shape) >= INFINITE:
            return False
        plan = ArrayPlan(shape, self._nodes)
        plan.settle()
        return not plan.can_end(plan.start)

    # -- trimming

    def _trim(self, node: Node) -> None:
        nodes = self._nodes
        if node.is_empty or node.num_alternatives > 1:
            node.numbers = tuple(s for s in node.numbers if nodes.number_len(s) < INFINITE)
            node.strings = tuple(s for s in node.strings if nodes.string_len(s) < INFINITE)
            node.arrays = tuple(s for s in node.arrays if nodes.array_len(s) < INFINITE)
            node.objects = tuple(s for s in node.objects if nodes.object_len(s) < INFINITE)
        if node.arrays:
            node.arrays = tuple(map(nodes.trimmed, node.arrays))
