"""The shortest text of each node, compact or indented: what a document is closed with when its budget runs out."""

from __future__ import annotations

from collections.abc import Iterator, Set

from constrained.grammar import numerals, texts
from constrained.grammar.items import ArrayPlan, Standing
from constrained.grammar.members import ObjectPlan
from constrained.grammar.nodes import INFINITE, Nodes
from constrained.grammar.progress import Progress
from constrained.grammar.shapes import NodeKey


class Layout:
    """Where whitespace must stand. `step` None is compact; else each level is indented by `step` blanks (json.dumps)."""

    def __init__(self, step: int | None = None) -> None:
        self.step = step
        self.colon = b":" if step is None else b": "

    def gap(self, depth: int) -> bytes:
        """What must stand before a member, an item or a closing bracket at `depth`."""
        return b"" if self.step is None else b"\n" + b" " * (self.step * depth)


class Shortest:
    """Shortest texts by node and depth, memoised. The shortest compact form decides, in every layout."""

    def __init__(self, nodes: Nodes, layout: Layout) -> None:
        self._nodes = nodes
        self.layout = layout
        self._memo: dict[tuple[NodeKey, int], bytes] = {}

    def node(self, key: NodeKey, depth: int) -> bytes:
        """The shortest text of a value that meets the node `key` and stands at `depth`."""
        place = (key, depth if self.layout.step is not None else 0)
        text = self._memo.get(place)
        if text is None:
            text = self._memo[place] = self._build(key, depth)
        return text

    def _build(self, key: NodeKey, depth: int) -> bytes:
        node = self._nodes[key]
        length = self._nodes.min_len(key)
        for literal in sorted(node.literals):
            if len(literal) == length:
                return literal.encode()
        for numbers in node.numbers:
            if numerals.min_number_len(numbers, self._nodes.notation) == length:
                return (numerals.shortest_number(numbers, self._nodes.notation) or "").encode()
        for strings in node.strings:
            if texts.min_string_len(strings) == length:
                return texts.shortest_string(strings) or b""
        for array in node.arrays:
            if self._nodes.array_len(array) == length:
                plan = self._nodes.array_plan(array)
                return b"[" + self.array_rest(plan, plan.start, depth + 1, first=True)
        shape = next(shape for shape in node.objects if self._nodes.object_len(shape) == length)
        members = self._nodes.plan(shape)
        return b"{" + self.object_rest(members, members.start, frozenset(), depth + 1, first=True)

    def array_rest(self, plan: ArrayPlan, standing: Standing, depth: int, *, first: bool) -> bytes:
        """The shortest rest of an array whose items stand at `depth`; no comma is behind the last item yet."""
        parts: list[bytes] = []
        for item in self._items(plan, standing, depth):
            parts.append((b"" if first and not parts else b",") + self.layout.gap(depth) + item)
        return b"".join(parts) + (b"" if first and not parts else self.layout.gap(depth - 1)) + b"]"

    def _items(self, plan: ArrayPlan, standing: Standing, depth: int) -> Iterator[bytes]:
        if plan.is_plain:
            ending = plan.ending(standing)
            yield from (self.node(node, depth) for node in (ending[1] if ending is not None else ()))
            return
        while not plan.may_close(standing):
            node, after = min(plan.choices(standing), key=lambda choice: self._cost(plan, *choice))
            text = self.node(node, depth)
            standing = after.with_value(texts.canonical(texts.parsed(text.decode()))) if plan.awaits_value(after) else after
            yield text

    def _cost(self, plan: ArrayPlan, node: NodeKey, after: Standing) -> int:
        ending = plan.ending(after, node)
        return self._nodes.min_len(node) + (ending[0] if ending is not None else INFINITE)

    def object_rest(self, plan: ObjectPlan, progress: Progress, seen: Set[bytes], depth: int, *, first: bool) -> bytes:
        """The shortest rest of an object whose members stand at `depth`; `seen` are the free keys that are there already."""
        ending = plan.ending(progress)
        parts: list[bytes] = []
        taken = {*seen, *(name.encode() for name in plan.names)}
        for member in ending[1] if ending is not None else ():
            key = member.key
            if key is None:
                key = fresh(b"", taken).decode()
                taken.add(key.encode())
            comma = b"" if first and not parts else b","
            value = self.node(member.node, depth)
            parts.append(comma + self.layout.gap(depth) + texts.quote(key) + self.layout.colon + value)
        return b"".join(parts) + (b"" if first and not parts else self.layout.gap(depth - 1)) + b"}"


def fresh(begun: bytes, taken: Set[bytes]) -> bytes:
    """The shortest string that begins with `begun` and is not `taken`; ASCII is added."""
    layer = [begun]
    while True:
        for candidate in layer:
            if candidate not in taken:
                return candidate
        layer = [candidate + letter for candidate in layer for letter in _LETTERS]


_LETTERS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]
