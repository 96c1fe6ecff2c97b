"""What a grammar tells the delta stream about the locations of a document: the `Location` protocol.

Pure typing, so that `constrained.stream` needs no grammar and the grammar needs no stream.
"""

from __future__ import annotations

from typing import Any, Protocol


class Location(Protocol):
    """What the schema says of one place in the document. Immutable; lookups are memoised by the grammar.

    A location may stand for several alternatives at once (a union): then its answers are what holds for all of them
    together (`types` is their union, `enum` is None unless every alternative is finite).
    """

    @property
    def types(self) -> tuple[str, ...]:
        """JSON Schema type names of the values here, in the order null, boolean, integer, number, string, array, object."""

    @property
    def schema_pointer(self) -> str | None:
        """JSON Pointer of the subschema (after `$ref`s), or None where several meet."""

    @property
    def enum(self) -> tuple[Any, ...] | None:
        """Every value possible here, if they are finitely many scalars by enum or const; else None."""

    @property
    def variants(self) -> tuple[tuple[str, Location], ...]:
        """The arms of an undecided union: (schema pointer, location), or empty."""

    def property(self, key: str) -> Location | None:
        """The location of the member `key` of an object here, or None where no such member may be."""

    def item(self, index: int) -> Location | None:
        """The location of element `index` of an array here, or None where no such element may be."""

    def forced_key(self, seen: tuple[str, ...]) -> str | None:
        """The only key that can come next in an object here after the keys `seen`, if just one can and `}` cannot."""
