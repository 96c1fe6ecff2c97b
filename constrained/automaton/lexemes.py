"""The lexemes outside strings as rows of the plain table: whitespace, literals and numbers, made when first met.

A plain lexeme state is a key: ("space", newlines, blanks) left to spend, ("return", blanks) after a carriage return, ("any",
whitespace left to spend), ("layout", what must follow), ("literal", the suffixes that may follow), or ("number", numeral).
Space and layout stand before what comes next; literals and numbers are values, and a gap may follow them.
"""

from __future__ import annotations

import threading

from constrained.automaton.edge_rows import SharedEdges
from constrained.automaton.tables import BYTE_CLASS, NO, NUM_CLASSES, UNRESOLVED, VALUE, WHOLE, YES, Shared
from constrained.grammar.leaves import Leaf
from constrained.grammar.numerals import Notation, Numeral
from constrained.options import CompileOptions

# Blanks of a gap in the flexible layout; characters of a gap in the permissive spelling.
MAX_BLANKS = 32
MAX_WHITESPACE = 256
# States, of about 150 bytes each in the table, after which new grammars begin a new one.
MAX_STATES = 65_536
PlainKey = tuple[object, ...]

NOTHING: PlainKey = ("layout", b"")


def gap(options: CompileOptions) -> PlainKey:
    """The lexeme state before whatever a gap may stand before."""
    if options.whitespace != "flexible":
        return NOTHING
    if options.spelling == "permissive":
        return ("any", MAX_WHITESPACE if options.max_whitespace is None else options.max_whitespace)
    return ("space", 1, MAX_BLANKS if options.max_whitespace is None else options.max_whitespace)


def literal(*texts: bytes) -> PlainKey:
    """The lexeme state before any one of `texts`."""
    return ("literal", frozenset(texts))


def layout(text: bytes) -> PlainKey:
    """The lexeme state before `text`, which must stand there."""
    return ("layout", text)


def left(key: PlainKey, place: int) -> int:
    """What a gap has left to spend."""
    found = key[place]
    assert isinstance(found, int)
    return found


class PlainLexemes:
    """Plain lexeme states by index; rows are filled by `resolve`. Safe between threads; a row once filled stays as it is."""

    def __init__(self) -> None:
        self.table = Shared(NUM_CLASSES, 1024)
        self._keys: list[PlainKey] = []
        self._index: dict[PlainKey, int] = {}
        self._begins: dict[PlainKey, tuple[tuple[int, int], ...]] = {}
        self._lock = threading.RLock()
        # Edges into the numbers and literals of leaves, by the notation (`Locals`).
        self.leaf_edges: dict[Notation, dict[Leaf, SharedEdges]] = {}
        self.resolve(self.index(literal(b"")))  # `ENDED`: the end of every literal is known wherever one is read

    def index(self, key: PlainKey) -> int:
        """The index of a state; its row may still be empty."""
        found = self._index.get(key)
        if found is None:
            with self._lock:
                found = self._index.get(key)
                if found is None:
                    found = self.table.add()
                    self._keys.append(key)
                    self._index[key] = found
        return found

    def key(self, index: int) -> PlainKey:
        """The state that an index stands for."""
        return self._keys[index]

    def resolve(self, index: int) -> None:
        """Fill the row of a state."""
        if self.table.array[index, 0] != UNRESOLVED:
            return
        with self._lock:
            may_end, steps = self._expand(self._keys[index])
            targets = {BYTE_CLASS[byte]: self.index(to) for byte, to in steps.items()}
            row = self.table.array[index]
            for klass, target in targets.items():
                row[klass] = target
            kind = self._keys[index][0]
            row[0] = NO if not may_end else VALUE if kind in ("literal", "number") else YES
            if kind == "literal" and not targets:
                row[0] = WHOLE

    def begins(self, key: PlainKey) -> tuple[tuple[int, int], ...]:
        """The bytes that lead on from a state, each with the index of where it leads."""
        known = self._begins.get(key)
        if known is None:
            known = tuple((byte, self.index(to)) for byte, to in self._expand(key)[1].items())
            if len(self._begins) < MAX_STATES:
                self._begins[key] = known
        return known

    def closing(self, index: int) -> bytes:
        """The shortest way to end the lexeme from a state."""
        key = self._keys[index]
        if key[0] in ("space", "any"):
            return b""
        if key[0] == "return":
            return b"\n"
        if key[0] == "layout":
            return bytes(key[1])  # type: ignore[call-overload, no-any-return]
        if key[0] == "literal":
            suffixes: frozenset[bytes] = key[1]  # type: ignore[assignment]
            return min(suffixes, key=lambda suffix: (len(suffix), suffix))
        return _number(key).closing or b""

    def _expand(self, key: PlainKey) -> tuple[bool, dict[int, PlainKey]]:
        if key[0] == "space":
            return True, _space_steps(*key[1:])  # type: ignore[arg-type]
        if key[0] == "any":
            return True, dict.fromkeys(b" \t\n\r", ("any", left(key, 1) - 1)) if left(key, 1) else {}
        if key[0] == "return":
            return False, {ord("\n"): ("space", 0, key[1])}
        if key[0] == "layout":
            rest: bytes = key[1]  # type: ignore[assignment]
            return not rest, {rest[0]: ("layout", rest[1:])} if rest else {}
        if key[0] == "literal":
            suffixes: frozenset[bytes] = key[1]  # type: ignore[assignment]
            groups: dict[int, set[bytes]] = {}
            for suffix in suffixes:
                if suffix:
                    groups.setdefault(suffix[0], set()).add(suffix[1:])
            return b"" in suffixes, {byte: ("literal", frozenset(group)) for byte, group in groups.items()}
        here = _number(key)
        return here.accepts, {byte: ("number", to) for byte, to in here.steps.items()}


def _number(key: PlainKey) -> Numeral:
    here = key[1]
    assert isinstance(here, Numeral)
    return here


def _space_steps(newlines: int, blanks: int) -> dict[int, PlainKey]:
    """One blank or newline spent."""
    steps: dict[int, PlainKey] = {}
    if blanks:
        steps = dict.fromkeys(b" \t", ("space", newlines, blanks - 1))
    if newlines:
        steps |= {ord("\n"): ("space", 0, blanks), ord("\r"): ("return", blanks)}
    return steps


_shared: list[PlainLexemes] = []
_lock = threading.Lock()


def shared_lexemes() -> PlainLexemes:
    """The lexemes that a new grammar uses: those of the grammars before it, as long as they are not too many."""
    with _lock:
        if not _shared or _shared[-1].table.size > MAX_STATES:
            _shared[:] = [PlainLexemes()]
        return _shared[-1]
