"""`Grammar`: rules, terminals and what is ignored between terminals, as a grammar's text gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from constrained.grammar.language import Language

Symbols = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SchemaTerminal:
    """A terminal whose texts are the JSON documents of a schema."""

    schema: Any


Terminal = Language | SchemaTerminal


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


def of_terminal(kind: str, language: Language) -> Grammar:
    """The grammar of one terminal alone."""
    return Grammar(kind, "text", {"text": [("TEXT",)]}, {"TEXT": language})
