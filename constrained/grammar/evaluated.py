"""What subschemas have evaluated of one object or array: the annotations that `unevaluated*` goes by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from constrained.grammar.language import Language
from constrained.grammar.string_sets import UNBOUNDED


class Tracking(IntEnum):
    """How far arms know what was evaluated.

    `SOME`: among the arms that a value meets, one has all that was evaluated of it, and none has more: enough to leave the
    rest to `unevaluated*`. `EXACT`: they all have: what the complement needs.
    """

    NONE = 0
    SOME = 1
    EXACT = 2


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Members by their keys, the first `num_items` items, and every item that meets one of the nodes `matching`."""

    names: frozenset[str] = frozenset()
    patterns: tuple[Language, ...] = ()
    all_members: bool = False
    num_items: int = 0
    matching: tuple[tuple[int, ...], ...] = ()

    def join(self, other: Evaluated) -> Evaluated:
        """What either has evaluated."""
        if self == other or other is NOTHING:
            return self
        if self is NOTHING:
            return other
        return Evaluated(
            self.names | other.names,
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            self.all_members or other.all_members,
            max(self.num_items, other.num_items),
            tuple(sorted({*self.matching, *other.matching})),
        )

    @property
    def all_items(self) -> bool:
        return self.num_items >= UNBOUNDED or () in self.matching


NOTHING = Evaluated()
