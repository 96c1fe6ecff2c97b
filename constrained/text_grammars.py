"""Grammars over raw text, beside JSON Schema: `compile_regex` and `compile_choice`; and `compile_json_object`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from constrained.automaton.forced import forced_steps
from constrained.automaton.scannerless.closing import TextClosings
from constrained.automaton.scannerless.documents import Document, Documents
from constrained.automaton.scannerless.machine import Machine
from constrained.automaton.scannerless.masks import TextMasks
from constrained.automaton.vocabulary_rows import rows_of
from constrained.compiled import CompiledGrammar, Engine, compile_json_schema, schema_parts
from constrained.errors import GrammarError
from constrained.grammar.context_free import Grammar, SchemaTerminal, Terminal, normal_form
from constrained.grammar.context_free.grammar import of_terminal
from constrained.grammar.language import PatternError, charsets, from_pattern, from_values
from constrained.grammar.lark import load_lark
from constrained.grammar.location import Locations
from constrained.grammar.nodes import Nodes
from constrained.options import CompileOptions
from constrained.tokens.vocabulary import Vocabulary


class TextGrammar(CompiledGrammar):
    """A grammar over raw text; `source` is what the caller gave, `schema` that of a string which holds the text."""

    is_text = True

    def __init__(self, grammar: Grammar, source: Any, schema: Any, vocabulary: Vocabulary, options: CompileOptions) -> None:
        self.source = source
        self.schema = schema
        self._grammar = normal_form(_spellable(grammar, vocabulary))
        self._nodes = {
            name: Nodes(terminal.schema, options)
            for name, terminal in self._grammar.terminals.items()
            if isinstance(terminal, SchemaTerminal)
        }
        for name, nodes in self._nodes.items():
            if nodes.minds_values:
                raise GrammarError(
                    "items that must differ, or be equal, cannot be told inside a grammar", self._grammar.kind, name
                )
        super().__init__(vocabulary, options)

    def _make_engine(self) -> Engine:
        documents = {name: self._document(nodes) for name, nodes in self._nodes.items()}
        machine = Machine(self._grammar, documents)
        masks = TextMasks(machine, self.vocabulary)
        return Engine(machine, masks, TextClosings(machine), partial(forced_steps, machine, masks), self.vocabulary)

    def _document(self, nodes: Nodes) -> Document:
        """A JSON Schema as a terminal, with fresh caches."""
        automaton, masks, closings = schema_parts(nodes, self.vocabulary, self.options)
        return Documents(automaton, masks, closings, rows_of(self.vocabulary), Locations(nodes).root.types).start

    @property
    def source_of(self) -> tuple[str, Any]:
        return self._grammar.kind, self.source

    @property
    def schema_hash(self) -> str:
        text = json.dumps({self._grammar.kind: self.source}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _spellable(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The same grammar without the texts that no tokens spell: those with bytes that are no token singly."""
    trie = vocabulary.trie
    single = frozenset(trie.byte[(trie.depth == 1) & (trie.first[1:] > trie.first[:-1])].tolist())
    if len(single) == 256:
        return grammar
    spelled = charsets.spelled_by(single)
    terminals: dict[str, Terminal] = {
        name: terminal if isinstance(terminal, SchemaTerminal) else terminal.within(spelled)
        for name, terminal in grammar.terminals.items()
    }
    return replace(grammar, terminals=terminals)


def compile_regex(pattern: str, vocabulary: Vocabulary) -> TextGrammar:
    """Compile a regular expression of ECMA-262 that the whole text must match, from its first character to its last.

    Raises `GrammarError` for what is no regular expression or is refused (backreferences), `EmptyLanguageError` where nothing
    matches.
    """
    try:
        language = from_pattern(pattern, anchored=True)
    except PatternError as error:
        raise GrammarError(f"{pattern!r}: {error}", "regex") from error
    return TextGrammar(of_terminal("regex", language), pattern, {"type": "string"}, vocabulary, CompileOptions())


def compile_choice(choices: Sequence[str], vocabulary: Vocabulary) -> TextGrammar:
    """Compile a list of texts, of which the whole text must be one. Raises `GrammarError` where it is not one."""
    if isinstance(choices, str) or not choices or not all(isinstance(text, str) for text in choices):
        raise GrammarError("a choice is a list of one or more strings", "choice")
    for text in choices:
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise GrammarError(f"{text!r} holds a lone surrogate, which no text can", "choice")
    values = list(dict.fromkeys(choices))
    grammar = of_terminal("choice", from_values(values))
    return TextGrammar(grammar, values, {"type": "string", "enum": values}, vocabulary, CompileOptions())


def compile_json_object(vocabulary: Vocabulary, options: CompileOptions | None = None) -> CompiledGrammar:
    """Compile "any JSON object", as OpenAI's `json_object` format means it: `compile_json_schema({"type": "object"})`."""
    return compile_json_schema({"type": "object"}, vocabulary, options)


def compile_lark(
    grammar: str,
    vocabulary: Vocabulary,
    options: CompileOptions | None = None,
    *,
    start: str = "start",
    schemas: dict[str, Any] | None = None,
) -> TextGrammar:
    """Compile a grammar in Lark's syntax; `schemas` are JSON Schemas by the names of the terminals that stand for them.

    A text is in the language where some split of it into terminals parses (docs/grammars.md). `options` are those of the
    JSON Schemas. Raises `GrammarError` and its kin, and `SchemaError` and its kin.
    """
    loaded = load_lark(grammar, start, schemas)
    source = {"grammar": grammar, "start": start, "schemas": schemas or {}}
    return TextGrammar(loaded, source, {"type": "string"}, vocabulary, options or CompileOptions())
