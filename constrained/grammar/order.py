"""The generation order of a grammar's known fields, as JSON Pointers."""

from __future__ import annotations

from constrained.grammar.nodes import Nodes
from constrained.grammar.schema import escape
from constrained.grammar.shapes import NodeKey

MAX_FIELDS = 10_000


def property_order(nodes: Nodes) -> tuple[str, ...]:
    """Pointers of the fields that the schema names, depth first in generation order; `*` is any index.

    A node that recurs inside itself is not gone into again; past `MAX_FIELDS` the list is cut.
    """
    found: dict[str, None] = {}
    _visit(nodes, nodes.root, "", (), found)
    return tuple(found)[:MAX_FIELDS]


def _visit(nodes: Nodes, key: NodeKey, path: str, above: tuple[NodeKey, ...], found: dict[str, None]) -> None:
    if key in above or not key or len(found) > MAX_FIELDS:
        return
    inside = (*above, key)
    for shape in nodes[key].objects:
        for name, member in shape.properties.items():
            if not nodes.is_empty(member):
                place = f"{path}/{escape(name)}"
                found.setdefault(place)
                _visit(nodes, member, place, inside, found)
    for array in nodes[key].arrays:
        for index, item in enumerate(array.prefix[: array.max_items]):
            found.setdefault(f"{path}/{index}")
            _visit(nodes, item, f"{path}/{index}", inside, found)
        if array.rest and array.max_items > len(array.prefix):
            found.setdefault(f"{path}/*")
            _visit(nodes, array.rest, f"{path}/*", inside, found)
