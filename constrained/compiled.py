"""`compile_json_schema` and `CompiledGrammar`: a grammar and a vocabulary, ready to make matchers."""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from typing import Any

import numpy as np

from constrained.automaton.automaton import Automaton
from constrained.automaton.closing import Closings
from constrained.automaton.masks import Masks, rows_of
from constrained.grammar import texts
from constrained.grammar.check import KeywordReport, SchemaReport, check_schema
from constrained.grammar.location import Locations, NodeLocation
from constrained.grammar.nodes import Nodes
from constrained.grammar.order import property_order
from constrained.grammar.shortest import Layout, Shortest
from constrained.matcher import Matcher
from constrained.options import CompileOptions
from constrained.tokens.fewest import spell
from constrained.tokens.rows import MaskRow
from constrained.tokens.speller import Speller
from constrained.tokens.vocabulary import Vocabulary

__all__ = ["CompiledGrammar", "KeywordReport", "SchemaReport", "check_json_schema", "compile_json_schema"]

MAX_STATES = 200_000


class Engine:
    """One automaton with its masks and closings: what the matchers of a grammar share."""

    def __init__(self, nodes: Nodes, vocabulary: Vocabulary, options: CompileOptions) -> None:
        shared = rows_of(vocabulary)
        self.automaton = Automaton(nodes, options)
        self.masks = Masks(self.automaton, shared, options.spelling)
        layout = Layout(2 if options.whitespace == "indented" else None)
        self.closings = Closings(self.automaton, Shortest(nodes, layout))
        self.trie = shared.trie
        self.store = shared.store
        self.speller = Speller(vocabulary)
        self.token_bytes = vocabulary.token_bytes
        self.eos_token_ids = vocabulary.eos_token_ids
        self.nothing: MaskRow = shared.store.intern(np.zeros(shared.num_words, np.uint32))


class CompiledGrammar:
    """A grammar over a vocabulary. Immutable for its users, and shared between threads; made by `compile_json_schema`.

    Its caches grow with what is generated; past `MAX_STATES` a new set is begun, and the old one goes when its last
    matcher goes.
    """

    def __init__(self, schema: Any, vocabulary: Vocabulary, options: CompileOptions) -> None:
        self.schema = schema
        self.vocabulary = vocabulary
        self.options = options
        self._nodes = Nodes(schema, options)
        self._lock = threading.Lock()
        self._engine = Engine(self._nodes, vocabulary, options)

    def matcher(self) -> Matcher:
        """A new matcher at the beginning of a document."""
        if self._engine.automaton.num_states > MAX_STATES:
            with self._lock:
                if self._engine.automaton.num_states > MAX_STATES:
                    self._engine = Engine(self._nodes, self.vocabulary, self.options)
        return Matcher(self._engine)

    @cached_property
    def schema_hash(self) -> str:
        """SHA-256 of the canonical schema, hexadecimal."""
        return hashlib.sha256(texts.canonical(self.schema).encode()).hexdigest()

    @cached_property
    def root(self) -> NodeLocation:
        """What the grammar says of the document's root and, from there, of every place in it (`constrained.guide.Location`)."""
        return Locations(self._nodes).root

    @cached_property
    def property_order(self) -> tuple[str, ...]:
        """JSON Pointers of the known fields in generation order; `*` stands for any index. Recursion is shown once."""
        return property_order(self._nodes)

    @cached_property
    def min_bytes(self) -> int:
        """Length of the shortest document in bytes, in this grammar's layout."""
        return len(self._shortest())

    @cached_property
    def min_tokens(self) -> int:
        """An upper bound of the tokens of the shortest document, EOS included."""
        return spell(self.vocabulary.trie, self._shortest()).num_tokens + 1

    def _shortest(self) -> bytes:
        engine = self._engine
        return engine.closings.of(engine.automaton.initial, b"")


def compile_json_schema(schema: Any, vocabulary: Vocabulary, options: CompileOptions | None = None) -> CompiledGrammar:
    """Compile a JSON Schema (an object or a boolean, as `json.loads` gives it) for a vocabulary.

    Raises `SchemaError` and its kin for schemas (each names the JSON Pointer), `OptionError` for options that are not built
    yet, `VocabularyError` where the vocabulary lacks a byte that documents need.
    """
    chosen = options or CompileOptions()
    return CompiledGrammar(schema, vocabulary, chosen)


def check_json_schema(schema: Any, options: CompileOptions | None = None) -> SchemaReport:
    """What becomes of each keyword of a schema, without a vocabulary; never raises for a bad schema."""
    chosen = options or CompileOptions()
    return check_schema(schema, chosen)
