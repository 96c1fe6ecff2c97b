"""Normal form of a grammar: no empty production, no useless symbol, terminals that read at least one character.

Only the language matters here, not the trees: what a caller's rule was called is kept for error messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained.errors import EmptyLanguageError, GrammarFuelError
from constrained.grammar.context_free.grammar import Grammar, SchemaTerminal, Symbols, Terminal
from constrained.grammar.language import LanguageFuelError

MAX_PRODUCTIONS = 100_000
_MAX_OPTIONAL = 3  # more optional symbols in one production than this are taken apart first


@dataclass(frozen=True, slots=True, eq=False)
class NormalForm:
    """`productions` are (rule, symbols), no `symbols` empty; `is_nullable`: the empty text is in the language too.

    No production at all is left where the language holds nothing but the empty text. Every symbol is reachable and leads to
    a text.
    """

    kind: str
    start: str
    productions: list[tuple[str, Symbols]]
    terminals: dict[str, Terminal]
    ignored: tuple[str, ...]
    is_nullable: bool


def normal_form(grammar: Grammar) -> NormalForm:
    """Raises `EmptyLanguageError` where no text is in the language, `GrammarFuelError` where a terminal is too complex."""
    terminals, empty = _terminals(grammar)
    productions = [(rule, symbols) for rule, alternatives in grammar.rules.items() for symbols in alternatives]
    texts = _productive(productions, terminals.keys() | empty)
    if grammar.start not in texts:
        raise EmptyLanguageError(f"no text is in the language of {grammar.start!r}", grammar.kind)
    nullable = _productive(productions, empty)
    productions = _without_empty(_split(productions, nullable), nullable, grammar.kind)
    productions = _useful(grammar.start, productions, terminals.keys())
    used = {symbol for _, symbols in productions for symbol in symbols} | set(grammar.ignored)
    return NormalForm(
        grammar.kind,
        grammar.start,
        productions,
        {name: terminal for name, terminal in terminals.items() if name in used},
        tuple(name for name in grammar.ignored if name in terminals),
        grammar.start in nullable,
    )


def _terminals(grammar: Grammar) -> tuple[dict[str, Terminal], set[str]]:
    """The terminals that read something, without the empty text; and the names of those that may read nothing."""
    kept: dict[str, Terminal] = {}
    empty: set[str] = set()
    for name, terminal in grammar.terminals.items():
        if isinstance(terminal, SchemaTerminal):
            kept[name] = terminal
            continue
        if terminal.accepts_empty:
            empty.add(name)
            terminal = terminal.without_empty()
        try:
            if not terminal.is_empty:
                kept[name] = terminal
        except LanguageFuelError as error:
            raise GrammarFuelError(str(error), grammar.kind, name) from error
    return kept, empty


def _productive(productions: list[tuple[str, Symbols]], known: Iterable[str]) -> set[str]:
    """The symbols that lead to texts over `known` symbols only."""
    found = set(known)
    waiting: dict[str, list[int]] = {}
    missing = [len(set(symbols)) for _, symbols in productions]
    for index, (_, symbols) in enumerate(productions):
        for symbol in set(symbols):
            waiting.setdefault(symbol, []).append(index)
    pending = list(found)
    pending += [rule for (rule, _), count in zip(productions, missing, strict=True) if count == 0]
    found.update(pending)
    while pending:
        for index in waiting.pop(pending.pop(), ()):
            missing[index] -= 1
            rule = productions[index][0]
            if missing[index] == 0 and rule not in found:
                found.add(rule)
                pending.append(rule)
    return found


def _split(productions: list[tuple[str, Symbols]], nullable: set[str]) -> list[tuple[str, Symbols]]:
    """The same rules, where productions of many optional symbols are cut in two (so they do not multiply)."""
    done: list[tuple[str, Symbols]] = []
    pending = list(reversed(productions))
    while pending:
        rule, symbols = pending.pop()
        if sum(symbol in nullable for symbol in symbols) <= _MAX_OPTIONAL:
            done.append((rule, symbols))
            continue
        rest = f"{rule}~{len(done)}.{len(pending)}"
        pending.append((rest, symbols[_MAX_OPTIONAL:]))
        done.append((rule, (*symbols[:_MAX_OPTIONAL], rest)))
        if all(symbol in nullable for symbol in symbols[_MAX_OPTIONAL:]):
            nullable.add(rest)
    return done


def _without_empty(productions: list[tuple[str, Symbols]], nullable: set[str], kind: str) -> list[tuple[str, Symbols]]:
    """Each production in all ways of leaving out symbols that may be empty, but for the empty one and for A -> A."""
    kept: dict[tuple[str, Symbols], None] = {}
    for rule, symbols in productions:
        ways: list[Symbols] = [()]
        for symbol in symbols:
            ways = [(*way, symbol) for way in ways] + (ways if symbol in nullable else [])
        for way in ways:
            if way and way != (rule,):
                kept[rule, way] = None
        if len(kept) > MAX_PRODUCTIONS:
            raise GrammarFuelError(f"more than {MAX_PRODUCTIONS} productions", kind, rule)
    return list(kept)


def _useful(start: str, productions: list[tuple[str, Symbols]], terminals: Iterable[str]) -> list[tuple[str, Symbols]]:
    """The productions that lead to texts and that `start` leads to."""
    texts = _productive(productions, terminals)
    by_rule: dict[str, list[Symbols]] = {}
    for rule, symbols in productions:
        if texts.issuperset(symbols):
            by_rule.setdefault(rule, []).append(symbols)
    reached, pending = {start}, [start]
    while pending:
        for symbols in by_rule.get(pending.pop(), ()):
            new = [symbol for symbol in symbols if symbol not in reached]
            reached.update(new)
            pending += new
    return [(rule, symbols) for rule, symbols in productions if rule in reached and texts.issuperset(symbols)]
