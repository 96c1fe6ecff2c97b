"""Rows of edges, and the edges themselves: the tables that the kernel steps through from one local state to another.

An edge may say that it leads `BEHIND` the local state that takes it; rows of such edges are shared by many local states. An
edge that stands alone for its byte is stored once; several for one byte are a chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constrained.automaton.tables import (
    BEHIND,
    CLASS_BYTES,
    CLASS_OF_BYTE,
    EDGE_COLUMNS,
    NUM_CLASSES,
    POP,
    Storage,
    StringTries,
    Table,
)

# (kind, lex, need, room, local, return), as in the edge table; `Edges` come with the byte that each reads.
Edge = tuple[int, int, int, int, int, int]
Edges = Iterable[tuple[int, Edge]]
# Edges that rows of many grammars have, each with the classes of the bytes that it reads.
SharedEdges = tuple[tuple[Edge, tuple[int, ...]], ...]
CLOSES: Edge = (POP, -1, 0, 0, -1, -1)


def shared(edges: Edges) -> SharedEdges:
    """Edges that are to be those of many rows, no two of them for one byte."""
    found: dict[Edge, list[int]] = {}
    for byte, edge in edges:
        found.setdefault(edge, []).append(CLASS_OF_BYTE[byte])
    return tuple((edge, tuple(classes)) for edge, classes in found.items())


class EdgeRows:
    """The rows of one automaton; `tries` are those of its names and values."""

    def __init__(self, tries: StringTries, storage: Storage) -> None:
        self._tries = tries
        self.rows = Table(NUM_CLASSES, 32, storage)
        self.edges = Table(EDGE_COLUMNS, 128, storage)
        self._alone: dict[Edge, int] = {}
        self._closes = self._alone[CLOSES] = self.edges.add((*CLOSES, -1))

    def add(self, edges: Edges, shared: SharedEdges = ()) -> int:
        """A new row; its `shared` edges read no byte that another edge reads."""
        edges = list(edges)  # which may make other rows
        row = self.rows.add()
        first, cells, alone = row * NUM_CLASSES, self.rows.cells, self._alone
        for edge, classes in shared:
            found = alone.get(edge)
            if found is None:
                found = alone[edge] = self.edges.add((*edge, -1))
            for klass in classes:
                cells[first + klass] = found
        for byte, edge in edges:
            place = first + CLASS_OF_BYTE[byte]
            before = cells[place]
            if before >= 0:
                cells[place] = self.edges.add((*edge, self._own(before)))
                continue
            found = alone.get(edge)
            if found is None:
                found = alone[edge] = self.edges.add((*edge, -1))
            cells[place] = found
        return row

    def add_one(self, byte: int, edge: Edge) -> int:
        """A new row of a single edge, which no other row has."""
        row = self.rows.add()
        self.rows.cells[row * NUM_CLASSES + CLASS_OF_BYTE[byte]] = self.edges.add((*edge, -1))
        return row

    def _own(self, index: int) -> int:
        """An edge that is to be one of several: a copy of it where it is stored for all rows."""
        kind, lex, need, room, local, back = self.edges.cells[index * EDGE_COLUMNS : (index + 1) * EDGE_COLUMNS - 1]
        edge = (kind, lex, need, room, local, back)
        return self.edges.add((*edge, -1)) if self._alone.get(edge) == index else index

    def beside(self, row: int, byte: int) -> int:
        """A row like another, with the closing bracket `byte` beside what comes there."""
        made, first = self.rows.add(), row * NUM_CLASSES
        cells, start = self.rows.cells, made * NUM_CLASSES
        cells[start : start + NUM_CLASSES] = cells[first : first + NUM_CLASSES]
        cells[start + CLASS_OF_BYTE[byte]] = self._closes
        return made

    def edges_of(self, row: int, behind: int) -> Iterator[tuple[int, Edge]]:
        """The edges of a row, each with its byte, for a local state that `behind` stands behind."""
        for klass, byte in enumerate(CLASS_BYTES, 1):
            at = self.rows.cells[row * NUM_CLASSES + klass]
            while at >= 0:
                kind, lex, need, room, local, back, at = self.edges.cells[at * EDGE_COLUMNS : (at + 1) * EDGE_COLUMNS]
                local, back = (behind if place == BEHIND else place for place in (local, back))
                yield byte, (kind, lex, need, room, local, back)
