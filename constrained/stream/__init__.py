"""The typed delta protocol: bytes of a document in, ops out, and the fold of those ops back into a value.

Pure and incremental: no I/O, no second parse, and no knowledge of grammars beyond the `Location` protocol of
`constrained.guide`.
"""

from __future__ import annotations

from constrained.stream.fold import Fold
from constrained.stream.ops import Close, Field, Op, Open, Set, Text, Variant, coalesce, from_wire
from constrained.stream.parser import DeltaStream
from constrained.stream.raw import RawTextStream
from constrained.stream.snapshot import Snapshot, Status

__all__ = [
    "Close",
    "DeltaStream",
    "Field",
    "Fold",
    "Op",
    "Open",
    "RawTextStream",
    "Set",
    "Snapshot",
    "Status",
    "Text",
    "Variant",
    "coalesce",
    "from_wire",
]
