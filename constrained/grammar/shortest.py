"""The shortest text of each node, compact or indented: what a document is closed with when its budget runs out."""

from __future__ import annotations

from constrained.grammar import texts
from constrained.grammar.nodes import Nodes
from constrained.grammar.shapes import ArrayShape, NodeKey, ObjectShape


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
        length = node.min_len
        for literal in sorted(node.literals):
            if len(literal) == length:
                return literal.encode()
        for numbers in node.numbers:
            if texts.min_number_len(numbers) == length:
                return (texts.shortest_number(numbers) or "").encode()
        for strings in node.strings:
            if texts.min_string_len(strings) == length:
                return texts.shortest_string(strings) or b""
        for array in node.arrays:
            if self._nodes.array_len(array) == length:
                return b"[" + self.array_rest(array, 0, depth + 1)
        shape = next(shape for shape in node.objects if self._nodes.object_len(shape) == length)
        return b"{" + self.object_rest(shape, self.required(shape, 0), depth + 1, first=True)

    def array_rest(self, shape: ArrayShape, index: int, depth: int) -> bytes:
        """The shortest rest of an array whose items stand at `depth`, after `index` items; no comma is behind yet."""
        parts = [b"," if i else b"" for i in range(index, shape.min_items)]
        gap = self.layout.gap(depth)
        items = [self.node(shape.item(i), depth) for i in range(index, shape.min_items)]
        body = b"".join(comma + gap + item for comma, item in zip(parts, items, strict=True))
        return body + (self.layout.gap(depth - 1) if index or items else b"") + b"]"

    def required(self, shape: ObjectShape, position: int) -> list[str]:
        """The required keys at `position` and later, in generation order."""
        return [name for name in list(shape.properties)[position:] if name in shape.required]

    def object_rest(self, shape: ObjectShape, names: list[str], depth: int, *, first: bool) -> bytes:
        """The shortest rest of an object whose members stand at `depth`: the members `names`, then the bracket."""
        gap = self.layout.gap(depth)
        members = [
            (b"" if first and i == 0 else b",")
            + gap
            + texts.quote(name)
            + self.layout.colon
            + self.node(shape.member(name), depth)
            for i, name in enumerate(names)
        ]
        return b"".join(members) + (b"" if first and not names else self.layout.gap(depth - 1)) + b"}"
