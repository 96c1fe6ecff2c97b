"""A Lark grammar's text as a `Grammar`.

The `lark` package reads it: imports from its library, templates, EBNF, `%override` and `%extend` are its matter. What
shapes only the tree (aliases, `?`, `!`, priorities) does not touch the language. Nothing is read from the disk but lark's own
library.
"""

from __future__ import annotations

import math
import re
from typing import Any

from lark import Tree
from lark.exceptions import LarkError
from lark.grammar import Rule
from lark.lexer import Pattern, PatternStr, TerminalDef
from lark.load_grammar import Grammar as Definitions
from lark.load_grammar import GrammarBuilder, PackageResource, stdlib_loader

from constrained.errors import GrammarError, GrammarFuelError, UnsupportedGrammarError
from constrained.grammar.context_free.grammar import Grammar, SchemaTerminal, Terminal
from constrained.grammar.language import PatternError, from_values
from constrained.grammar.lark.directives import take_schemas
from constrained.grammar.lark.first_choice import first_choice

KIND = "grammar"
MAX_EXPANSIONS = 10_000
MAX_TEXT_LEN = 1_000_000


def load_lark(text: str, start: str = "start", schemas: dict[str, Any] | None = None) -> Grammar:
    """The grammar of a Lark text. `schemas` are JSON Schemas by the terminals that stand for them.

    Raises `GrammarError`, `UnsupportedGrammarError` for what cannot be a language (backreferences, lookarounds beyond a
    terminal), `GrammarFuelError` where EBNF multiplies beyond all bounds.
    """
    if len(text) > MAX_TEXT_LEN:
        raise GrammarFuelError(f"the grammar is longer than {MAX_TEXT_LEN} characters", KIND)
    text, found = take_schemas(text, schemas or {})
    terminals, rules, ignored = _compile(text, start)
    languages: dict[str, Terminal] = {terminal.name: _language(terminal) for terminal in terminals}
    languages |= {name: SchemaTerminal(schema) for name, schema in found.items()}
    productions: dict[str, list[tuple[str, ...]]] = {}
    for rule in rules:
        symbols = tuple(str(symbol.name) for symbol in rule.expansion)
        productions.setdefault(str(rule.origin.name), []).append(symbols)
        for symbol in rule.expansion:
            if symbol.is_term and symbol.name not in languages:
                message = "a declared terminal needs a JSON Schema (see schemas)"
                raise UnsupportedGrammarError(message, KIND, str(symbol.name))
    if start not in productions:
        raise GrammarError(f"there is no rule {start!r} to start with", KIND)
    return Grammar(KIND, start, productions, languages, tuple(map(str, ignored)))


def _compile(text: str, start: str) -> tuple[list[TerminalDef], list[Rule], list[str]]:
    builder = GrammarBuilder(import_paths=[_from_library])
    try:
        builder.load_grammar(text, "<string>")
        definitions = builder.build()
        _bound(definitions)
        terminals, rules, ignored = definitions.compile([start], set())
    except GrammarError:
        raise
    except RecursionError as error:
        raise GrammarFuelError("the grammar is nested too deeply", KIND) from error
    except (LarkError, OSError, AssertionError, ValueError, TypeError, KeyError, re.error) as error:
        raise GrammarError(f"not a Lark grammar: {error}", KIND) from error
    return terminals, rules, ignored


def _from_library(base_path: Any, grammar_path: str) -> tuple[Any, str]:
    """Asked first for every import: lark's own library alone is read."""
    if base_path is not None and not isinstance(base_path, PackageResource):
        raise UnsupportedGrammarError(f"{grammar_path!r}: only lark's own library can be imported", KIND)
    try:
        found: tuple[Any, str] = stdlib_loader(base_path, grammar_path)
    except OSError as error:
        raise GrammarError(f"lark's library has no {grammar_path!r}", KIND) from error
    return found


# -- the bound of EBNF: lark writes out every choice of optional parts


def _bound(definitions: Definitions) -> None:
    _bound_templates(definitions)
    for name, _, tree, _ in definitions.rule_defs:
        if tree is not None and _num_expansions(tree) > MAX_EXPANSIONS:
            raise GrammarFuelError(f"its optional parts make more than {MAX_EXPANSIONS} productions", KIND, str(name))


def _bound_templates(definitions: Definitions) -> None:
    """Refuse templates that use themselves with ever larger arguments, which lark would write out for ever."""
    uses: dict[str, set[str]] = {}
    for name, params, tree, _ in definitions.rule_defs:
        if params and tree is not None:
            usages: list[list[Any]] = [use.children for use in tree.find_data("template_usage")]
            grows = any(_is_composed(argument) for use in usages for argument in use[1:])
            uses[str(name)] = {str(use[0].name) for use in usages} if grows else set()
    for name in uses:
        reached: set[str] = set()
        pending = [name]
        while pending:
            new = uses.get(pending.pop(), set()) - reached
            reached |= new
            pending += new
        if name in reached:
            raise GrammarFuelError("a template that uses itself with larger arguments has no end", KIND, name)


def _is_composed(argument: Any) -> bool:
    """Whether an argument of a template is more than one symbol."""
    while isinstance(argument, Tree) and argument.data == "value":
        argument = argument.children[0]
    return isinstance(argument, Tree) and argument.data != "literal"


def _num_expansions(tree: Any) -> float:
    """About how many productions lark makes of a rule's tree."""
    if not isinstance(tree, Tree):
        return 1
    counts = [_num_expansions(child) for child in tree.children]
    if tree.data == "expansions":
        return sum(counts)
    if tree.data in ("expr", "maybe"):
        inner, operator = counts[0], str(tree.children[1]) if len(tree.children) > 1 else "?"
        if operator == "~":
            times = int(str(tree.children[-1]))
            return float(min(inner**times, 10**9)) if inner > 1 and times < 50 else inner + times
        return 2 if operator == "*" else inner + 1
    return min(math.prod(counts), 10**9)


def _language(terminal: TerminalDef) -> Terminal:
    pattern: Pattern = terminal.pattern
    try:
        if isinstance(pattern, PatternStr) and not pattern.flags:
            return from_values([pattern.value])
        return first_choice(pattern.to_regexp())
    except PatternError as error:
        raise UnsupportedGrammarError(f"{pattern.to_regexp()!r}: {error.message}", KIND, str(terminal.name)) from error
