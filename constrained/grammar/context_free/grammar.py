"""`Grammar`: rules, terminals and what is ignored between terminals, as a grammar's text gives them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from constrained.grammar.language.charsets import Ranges

Symbols = tuple[str, ...]


class Strings(Hashable, Protocol):
    """A set of strings as a lazily made automaton; its states are such sets again. `Language` is one."""

    @property
    def accepts_empty(self) -> bool: ...

    @property
    def is_empty(self) -> bool: ...

    def steps(self) -> Iterable[tuple[int, int, Strings]]: ...

    def without_empty(self) -> Strings: ...

    def within(self, characters: Ranges, /) -> Strings: ...


@dataclass(frozen=True, slots=True, eq=False)
class SchemaTerminal:
    """A terminal whose texts are the JSON documents of a schema."""

    schema: Any


Terminal = Strings | SchemaTerminal


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """`rules` by name, each with its productions; a symbol is a terminal where `terminals` has its name.

    `kind` is what the caller gave ("regex", "choice" or "grammar"), for error messages.
    """

    kind: str
    start: str
    rules: dict[str, list[Symbols]]
    terminals: dict[str, Terminal]
    ignored: tuple[str, ...] = ()


def of_terminal(kind: str, strings: Strings) -> Grammar:
    """The grammar of one terminal alone."""
    return Grammar(kind, "text", {"text": [("TEXT",)]}, {"TEXT": strings})
