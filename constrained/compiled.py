"""`compile_json_schema` and `CompiledGrammar`: a grammar and a vocabulary, ready to make matchers."""

from __future__ import annotations

import hashlib
import threading
from _thread import RLock
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from constrained.automaton.automaton import Automaton, Run, State
from constrained.automaton.closing import Closings
from constrained.automaton.contents import shared_contents
from constrained.automaton.forced import forced_run
from constrained.automaton.masks import Masks
from constrained.automaton.sizes import memory_bytes
from constrained.automaton.vocabulary_rows import VocabularyRows, rows_of
from constrained.grammar import texts
from constrained.grammar.check import KeywordReport, SchemaReport, check_schema
from constrained.grammar.location import Locations, NodeLocation
from constrained.grammar.nodes import Nodes
from constrained.grammar.order import property_order
from constrained.grammar.reading import Text, read
from constrained.guide import Location
from constrained.matcher import Matcher
from constrained.options import CompileOptions
from constrained.tokens.fewest import spell
from constrained.tokens.rows import MaskRow
from constrained.tokens.speller import Speller
from constrained.tokens.vocabulary import Vocabulary

__all__ = ["CompiledGrammar", "KeywordReport", "SchemaReport", "check_json_schema", "compile_json_schema"]

DEFAULT = CompileOptions()
FIRST_LOOK = 4096  # states from which on a grammar's memory is measured, each time that they have doubled


class States(Protocol):
    """An automaton over bytes; see `Automaton`."""

    lock: RLock

    @property
    def initial(self) -> State: ...

    @property
    def num_states(self) -> int: ...

    @property
    def shared(self) -> tuple[Any, ...]: ...

    def step_token(self, state: State, token_id: int, shared: int, /) -> State | None: ...

    def advance(self, state: State, data: bytes, history: bytes | bytearray = b"", /) -> tuple[State | None, bool]: ...

    def open_key(self, state: State, history: bytes | bytearray, /) -> bytes | None: ...

    def awaits_item(self, state: State, /) -> bool: ...


class Rows(Protocol):
    """Mask rows of an automaton; see `Masks`."""

    @property
    def tables_at(self) -> int: ...

    def fill(self, state: State, bitmask: NDArray[np.int32], at: int, /) -> bool: ...

    def row(self, state: State, history: bytes | bytearray, /) -> MaskRow: ...

    def next_bytes(self, state: State, history: bytes | bytearray, /) -> list[int]: ...


class Ends(Protocol):
    """Shortest ends of an automaton; see `Closings`."""

    def of(self, state: State, history: bytes | bytearray, /) -> bytes: ...


# The bytes that every completion of a state begins with, given what led to it; see `automaton.forced`.
Forced = Callable[[State, bytes | bytearray], Run]


class Engine:
    """One automaton with its masks and closings: what the matchers of a grammar share."""

    def __init__(self, automaton: States, masks: Rows, closings: Ends, forced: Forced, vocabulary: Vocabulary) -> None:
        shared = rows_of(vocabulary)
        self.automaton = automaton
        self.masks = masks
        self.tables_at = masks.tables_at
        self.closings = closings
        self.forced_run = forced
        self.vocabulary = vocabulary
        self.trie = shared.trie
        self.store = shared.store
        self.token_bytes = vocabulary.token_bytes
        self.num_characters = shared.num_characters
        self.eos_token_ids = vocabulary.eos_token_ids
        self.nothing = shared.no_tokens

    @cached_property
    def speller(self) -> Speller:
        """What spells forced text."""
        return Speller(self.vocabulary)


def schema_parts(nodes: Nodes, vocabulary: Vocabulary, options: CompileOptions) -> tuple[Automaton, Masks, Closings]:
    """The automaton of a JSON Schema's nodes, with its masks and closings."""
    automaton = Automaton(nodes, options)
    masks = Masks(automaton, rows_of(vocabulary), options.spelling)
    return automaton, masks, Closings(automaton, nodes, step=2 if options.whitespace == "indented" else None)


class CompiledGrammar(ABC):
    """A grammar over a vocabulary, made by `compile_json_schema` and its kin. Immutable for its users, shared between threads.

    Its caches grow with what is generated; past `Limits.max_states` or `Limits.max_memory_bytes` a new set is begun, and the
    old one goes when its last matcher goes.
    """

    schema: Any
    """The JSON Schema of the values: of a grammar over raw text, that of a string which holds the text."""
    is_text = False
    """Whether the grammar is one over raw text; else its texts are JSON."""

    def __init__(self, vocabulary: Vocabulary, options: CompileOptions) -> None:
        self.vocabulary = vocabulary
        self.options = options
        self._lock = threading.Lock()
        self._next_look = min(options.limits.max_states, FIRST_LOOK)
        self._engine = self._make_engine()

    @abstractmethod
    def _make_engine(self) -> Engine:
        """Fresh caches."""

    def matcher(self) -> Matcher:
        """A new matcher at the beginning of a document."""
        if self._engine.automaton.num_states > self._next_look:
            with self._lock:
                if self._engine.automaton.num_states > self._next_look:
                    self._bound_memory()
        return Matcher(self._engine)

    def _bound_memory(self) -> None:
        limits, num_states = self.options.limits, self._engine.automaton.num_states
        if num_states > limits.max_states or self.memory_bytes > limits.max_memory_bytes:
            self._engine, num_states = self._make_engine(), 0
        self._next_look = min(limits.max_states, max(2 * num_states, FIRST_LOOK))

    @property
    def memory_bytes(self) -> int:
        """Bytes that the grammar takes with all that it remembers, without what the grammars of a vocabulary share.

        It only grows, until a bound is reached. Measured anew at each call, about a microsecond an object.
        """
        engine = self._engine
        with engine.automaton.lock:
            contents = shared_contents("default"), shared_contents("permissive")
            rows = rows_of(self.vocabulary)
            shared = (self.vocabulary, rows, engine.token_bytes, *contents, *engine.automaton.shared, *_parts_of(rows))
            return memory_bytes(vars(self), shared)

    @property
    @abstractmethod
    def source_of(self) -> tuple[str, Any]:
        """What the grammar was compiled from: "schema", "regex", "choice" or "grammar" (Lark), and what the caller gave."""

    @property
    @abstractmethod
    def schema_hash(self) -> str:
        """SHA-256 of the canonical schema or of the grammar's source, hexadecimal."""

    @property
    def root(self) -> Location | None:
        """What the grammar says of the document's root and, from there, of every place in it; None for raw text."""
        return None

    @property
    def property_order(self) -> tuple[str, ...]:
        """JSON Pointers of the known fields in generation order; `*` stands for any index. Recursion is shown once."""
        return ()

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


def _parts_of(rows: VocabularyRows) -> Iterator[Any]:
    """What grammars hold of the rows that they share."""
    for part in vars(rows).values():
        yield part
        if isinstance(part, Mapping):
            yield from part.values()


class SchemaGrammar(CompiledGrammar):
    """The grammar of a JSON Schema, or of the text of one."""

    def __init__(self, given: Any, vocabulary: Vocabulary, options: CompileOptions) -> None:
        self._given = given
        is_text = isinstance(given, Text)
        self._nodes = Nodes(read(given) if is_text else given, options, is_own=is_text)
        super().__init__(vocabulary, options)

    def _make_engine(self) -> Engine:
        automaton, masks, closings = schema_parts(self._nodes, self.vocabulary, self.options)
        return Engine(automaton, masks, closings, partial(forced_run, automaton, masks), self.vocabulary)

    @cached_property
    def schema(self) -> Any:
        """Not what the nodes read: the caller may change it."""
        return read(self._given) if isinstance(self._given, Text) else self._given

    @property
    def source_of(self) -> tuple[str, Any]:
        return "schema", self.schema

    @cached_property
    def schema_hash(self) -> str:
        return hashlib.sha256(texts.canonical(self.schema).encode()).hexdigest()

    @cached_property
    def root(self) -> NodeLocation:
        return Locations(self._nodes).root

    @cached_property
    def property_order(self) -> tuple[str, ...]:
        return property_order(self._nodes)


def compile_json_schema(schema: Any, vocabulary: Vocabulary, options: CompileOptions | None = None) -> CompiledGrammar:
    """Compile a JSON Schema (an object or a boolean, as `json.loads` gives it, or the JSON text of one) for a vocabulary.

    From text it is somewhat faster: what others hold is copied, since parts of it are read later.

    Raises `SchemaError` and its kin for schemas (each names the JSON Pointer), `OptionError` for options that are not built
    yet, `VocabularyError` where the vocabulary lacks a byte that documents need.
    """
    return SchemaGrammar(schema, vocabulary, options or DEFAULT)


def check_json_schema(schema: Any, options: CompileOptions | None = None) -> SchemaReport:
    """What becomes of each keyword of a schema (or the text of one), without a vocabulary; never raises for a bad schema."""
    return check_schema(schema, options or DEFAULT)
