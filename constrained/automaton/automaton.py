"""The lazy pushdown automaton of one grammar over bytes: states are interned sets of threads, made when first met.

`advance` is the one definition of what may follow what; mask rows (`rows.py`) are a faster way to ask it about every
token at once, and closings (`closing.py`) a way to ask for the shortest end.
"""

from __future__ import annotations

import json
from _thread import RLock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrained.automaton import stepping, strings, tables, ways
from constrained.automaton.cells import BOTTOM, Cells
from constrained.automaton.contents import shared_contents
from constrained.automaton.lexemes import shared_lexemes
from constrained.automaton.locals import Locals
from constrained.automaton.tables import StringTries
from constrained.automaton.threads import NO_ROOM, Thread, Threads
from constrained.errors import FuelError
from constrained.grammar import texts
from constrained.grammar.nodes import Nodes
from constrained.options import CompileOptions
from constrained.tokens.jit import address
from constrained.tokens.rows import MaskRow

# From how many threads on they are run in one call, and through how many bytes at most.
MANY_THREADS, MAX_TOGETHER = 4, 64
# Cells of all tables of a new automaton, those of its rows among them; and of the changes of those.
STORAGE, UNFILLED = 6720, 8192


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes that are forced, `data`; behind them one of the bytes `following` comes, or the end where it is empty.

    `is_settled`: the run is the same whatever led to its state.
    """

    data: bytes
    following: tuple[int, ...]
    is_settled: bool


class State:
    """An interned set of threads. `next` memoises tokens; the other slots are filled when first asked for.

    `keeps_text`: plain text inside a string (`string_rows.count_characters`) leads back to the state. `number` is that of a
    state of a single thread (`Threads`), else -1; `row_number` that of the thread's row (`Masks`), once it is known, and
    `is_settled` whether that is the row of the state: nothing is taken out of it.
    """

    number = -1
    row_number = -1
    is_settled = False

    row: MaskRow | None = None
    prefix_rows: dict[bytes, MaskRow] | None = None
    closing: bytes | None = None
    forced: Run | None = None
    forced_tokens: tuple[int, ...] | None = None
    tokens_to_end: int | None = None
    is_complete: bool | None = None

    keeps_text = False

    def __init__(self, threads: tuple[Thread, ...], *, is_accepting: bool) -> None:
        self.threads = threads
        self.is_accepting = is_accepting
        self.next: dict[int, State] = {}


class Alone(State):
    """The state of the thread `number`, read when it is asked for."""

    def __init__(self, threads: Threads, number: int, *, is_accepting: bool, keeps_text: bool) -> None:
        self._of = threads
        self.number = number
        self.is_accepting = is_accepting
        self.keeps_text = keeps_text
        self.next: dict[int, State] = {}

    @property
    def threads(self) -> tuple[Thread, ...]:  # type: ignore[override]
        return (self._of.thread(self.number),)


_NO_DATA = memoryview(b"")


class _ManyWaysError(Exception):
    """There are more ways to read several bytes than are taken up at once."""


class Automaton:
    """States and tables of one grammar. All methods are safe between threads; a lock guards whatever makes something new."""

    def __init__(self, nodes: Nodes, options: CompileOptions) -> None:
        self.lock = RLock()
        self._max_threads = 2 * options.limits.max_alternatives
        self._states: dict[tuple[Thread, ...], State] = {}
        self._alone: dict[int, Alone] = {}  # those of a single thread, by its number
        self.plain = shared_lexemes()
        self.arena = storage = tables.Storage(STORAGE, UNFILLED)
        self.tries = StringTries(storage)
        self.tries.table.add((0, 1, strings.NO_TAG, 0, 0))
        self.contents = shared_contents(options.spelling)
        self.locals = Locals(nodes, options, self.plain, self.tries, self.contents, storage)
        self.cells = Cells(storage)
        self.threads = Threads(storage)
        self._enter_tables()
        self._data, self._data_at = _NO_DATA, 0
        start = (self.locals.entry(self.locals.start), 0, 0, 0, self.locals.start, BOTTOM)
        self.initial: State = self._add_alone(self.threads.number(start))

    def __del__(self) -> None:
        """States lead to each other in circles. To wait for the garbage collector would be to stop some later generation."""
        for state in (*self._states.values(), *self._alone.values()):
            state.next.clear()

    @property
    def shared(self) -> tuple[Any, ...]:
        """What other grammars hold too."""
        return (self.plain, self.contents)

    @property
    def num_states(self) -> int:
        """How many states, local states and cells there are: what a bound on memory counts."""
        taken = self.arena.slots
        return len(self._states) + taken[tables.THREADS_TAKEN] + len(self.locals) + taken[tables.CELLS_TAKEN]

    def step_token(self, state: State, token_id: int, shared: int) -> State | None:
        """The state of a single thread after a token of the vocabulary at `shared` (`vocabulary_tables`).

        None where `advance` has to be asked, and for tokens without bytes.
        """
        if state.number < 0:
            return None
        with self.lock:
            while (number := self.threads.step(shared, state.number, token_id)) == NO_ROOM:
                if not self.threads.grow():
                    self.cells.table.reserve(self.cells.table.capacity)
            if number < 0:
                return None
            return self._alone.get(number) or self._add_alone(number)

    def advance(self, state: State, data: bytes, history: bytes | bytearray = b"") -> tuple[State | None, bool]:
        """The state after `data`, or None where it is not allowed; and whether that depends on `history`.

        `history` are the bytes that led to `state`: an open key that began in it must differ from the frame's other keys.
        """
        with self.lock:
            try:
                return self._advance(state, data, history)
            except _ManyWaysError:
                # Ways are made one between the parts.
                half = len(data) // 2
                between, depends = self.advance(state, data[:half], history)
                if between is None:
                    return None, depends
                after, depends_too = self.advance(between, data[half:], bytes(history) + data[:half])
                return after, depends or depends_too

    def _advance(self, state: State, data: bytes, history: bytes | bytearray) -> tuple[State | None, bool]:
        self._load(data)
        threads: list[Thread] = []
        depends = False
        left: Sequence[Thread] = state.threads
        if len(left) >= MANY_THREADS and len(data) <= MAX_TOGETHER:
            left = self._run_all(state.threads, len(data), threads)
        for thread in left:
            depends |= self._run(thread, data, history, threads)
        return (self._intern(threads) if threads else None), depends

    def _load(self, data: bytes) -> None:
        """Put `data` where kernels read it."""
        size = len(data)
        if size > len(self._data):
            self._data = memoryview(bytearray(max(256, 2 * size)))
            self._data_at = address(np.frombuffer(self._data, np.uint8))
        self._data[:size] = data
        self.cells.table.reserve(size + 16)

    def _run_all(self, threads: tuple[Thread, ...], stop: int, ended: list[Thread]) -> list[Thread]:
        """Many threads through the data that is loaded: `ended` takes what they become; those that need Python's help."""
        after, results = np.array(threads, np.int64), np.empty(len(threads), np.int64)
        cells = self.cells
        scratch = cells.table.size
        cells.table.reserve(len(threads) * (stop + 1) + 16)
        num_cells = stepping.run_all(self.arena.address, self._data_at, stop, scratch, after, results)
        rest = []
        for thread, result, (lex, esc, need, room, local, cell) in zip(threads, results.tolist(), after.tolist(), strict=True):
            if result == strings.ALIVE:
                ended.append((lex, esc, need, room, local, cell))
            elif result != strings.DEAD:
                rest.append(thread)
        if num_cells > scratch:
            # Scratch cells are read first: those that are adopted are written over them.
            chains = [cells.chain(thread[5], scratch) for thread in ended]
            ended[:] = [(*thread[:5], cells.push_all(*chain)) for thread, chain in zip(ended, chains, strict=True)]
        return rest

    def _run(self, thread: Thread, data: bytes, history: bytes | bytearray, ended: list[Thread]) -> bool:
        """One thread through `data`, which is loaded: `ended` takes the threads it becomes; whether `history` was asked."""
        depends = False
        pending = [(thread, 0)]
        cells, machine, stop = self.cells, (self.arena.address, self._data_at), len(data)
        while pending:
            if len(pending) + len(ended) > self._max_threads and stop > 1:
                raise _ManyWaysError
            here, position = pending.pop()
            scratch = len(cells)
            result, position, which, num_cells, *found = stepping.run(*machine, position, stop, scratch, *here)
            if result == stepping.DEAD:
                continue
            if num_cells > scratch:
                found[5] = cells.adopt(found[5], scratch)
            lex, esc, need, room, local, cell = found
            here = (lex, esc, need, room, local, cell)
            if position >= stop:
                ended.append(here)
            elif result == stepping.NEW_LEX:
                self.plain.resolve(which)
                pending.append((here, position))
            elif result == stepping.NEW_CONTENT:
                self.contents.resolve(which)
                pending.append((here, position))
            elif result == stepping.NEW_LOCAL:
                self.locals.resolve(which)
                pending.append((here, position))
            elif result == stepping.NEW_KEY:
                self.locals.resolve_key(which)
                pending.append((here, position))
            elif result == stepping.EDGE:
                for edge in self._chain(which):
                    if self.locals.edge_rows.edges.array[edge, tables.KIND] == tables.ASK:
                        value, inside = item_value(history, data[:position])
                        depends |= not inside
                        after = self.locals.with_value(local, value)
                        if after is not None:
                            lex_after = int(self.locals.edge_rows.edges.array[edge, tables.LEX])
                            pending.append(((lex_after, 0, 0, 0, after, cell), position + 1))
                    else:
                        pending.append((self._follow(edge, local, cell), position + 1))
            else:
                content, inside = key_content(data, position, history)
                depends |= not inside
                of_class = self.locals.with_key(local, content)
                if of_class is not None:
                    pending.append(((lex, esc, need, room, of_class, cell), position + 1))
                elif content not in cells.keys(cell):
                    pending.append(((lex, esc, need, room, local, cells.with_key(cell, content)), position + 1))
        return depends

    def falls_back(self, lex: int) -> bool:
        """Whether a string of a trie may leave it for a free string from here on."""
        return strings.TRIE <= lex < strings.DFA and bool(self.tries.table.array[lex & strings.INDEX, strings.FALLBACK])

    def state_of(self, threads: list[Thread]) -> State:
        """The state that is this set of threads."""
        with self.lock:
            return self._intern(threads)

    def needs_history(self, state: State) -> bool:
        """Whether what may follow depends on what led to the state: its frame has free keys, or `awaits_item`."""
        return any(thread[5] in self.cells.seen for thread in state.threads) or self.awaits_item(state)

    def awaits_item(self, state: State) -> bool:
        """Whether the value of an item that is being read, or was just read, decides what may follow it."""
        for *_, local, cell in state.threads:
            while not self.locals.awaits_value(local):
                if cell <= BOTTOM:
                    break
                local, cell = self.cells.local(cell), self.cells.parent(cell)
            else:
                return True
        return False

    def open_key(self, state: State, history: bytes | bytearray) -> bytes | None:
        """The key that is being read, as it is written, where there is one; `history` led to `state`.

        State and open key together decide all that may follow, unless the state `awaits_item`: nothing else of the history is
        ever asked.
        """
        is_open = any(thread[0] >= strings.FREE and self.locals.is_key(thread[4]) for thread in state.threads)
        return open_string(history) if is_open else None

    @property
    def content(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tables of the string machine, in the order in which kernels take them."""
        return (self.tries.table.array, self.contents.table.array, self.contents.ranges.array)

    def _enter_tables(self) -> None:
        """Let kernels find the tables."""
        here, arena = self.locals, self.arena
        self.plain.table.lend(arena, tables.PLAIN)
        here.edge_rows.rows.enter(arena, tables.LOCAL_ROWS)
        here.info.enter(arena, tables.LOCALS)
        here.edge_rows.edges.enter(arena, tables.EDGES)
        here.tags.enter(arena, tables.TAG_ROWS)
        self.tries.table.enter(arena, tables.TRIES)
        self.contents.table.lend(arena, tables.LANGUAGES)
        self.contents.ranges.lend(arena, tables.RANGES)

    def _chain(self, edge: int) -> list[int]:
        found = []
        while edge >= 0:
            found.append(edge)
            edge = int(self.locals.edge_rows.edges.array[edge, tables.NEXT])
        return found

    def _follow(self, edge: int, here: int, cell: int) -> Thread:
        kind, lex, need, room, local, after, _ = self.locals.edge_rows.edges.array[edge].tolist()
        if tables.BEHIND in (local, after):
            behind = self.locals.after(here)
            local, after = (behind if place == tables.BEHIND else place for place in (local, after))
        if kind == tables.POP:
            local = self.cells.local(cell)
            return (self.locals.entry(local), 0, 0, 0, local, self.cells.parent(cell))
        if kind == tables.PUSH:
            cell = self.cells.push(cell, after)
        if lex == tables.ENDED:
            lex = self.locals.entry(local)
        return (lex, 0, need, room, local, cell)

    def _intern(self, threads: list[Thread]) -> State:
        if len(threads) >= min(ways.MANY, self._max_threads):
            threads = ways.merged(threads, self.cells, self.locals)
        if len(threads) > self._max_threads:
            raise FuelError(f"more than {self._max_threads} ways to read the document so far (twice max_alternatives)")
        if len(threads) == 1:
            number = self.threads.number(threads[0])
            return self._alone.get(number) or self._add_alone(number)
        key = tuple(sorted(set(threads)))
        if len(key) == 1:
            return self._intern([key[0]])
        state = self._states.get(key)
        if state is None:
            accepting = any(self.locals.is_done(thread[4]) and self._may_end(thread[0]) for thread in key)
            state = self._states[key] = State(key, is_accepting=accepting)
        return state

    def _add_alone(self, number: int) -> State:
        flags = self.threads.flags(number)
        accepting = flags & tables.DONE_HERE != 0 and self._may_end(self.threads.thread(number)[0])
        keeps_text = flags & tables.KEEPS_TEXT != 0
        state = self._alone[number] = Alone(self.threads, number, is_accepting=accepting, keeps_text=keeps_text)
        return state

    def _may_end(self, lex: int) -> bool:
        if lex >= strings.FREE:
            return False
        self.plain.resolve(lex)
        return bool(self.plain.table.array[lex, 0] > tables.NO)


def item_value(history: bytes | bytearray, data: bytes) -> tuple[str, bool]:
    """The canonical text of the JSON value that ends before the end of `history` and `data`; and whether it began in `data`."""
    size = 256
    while True:
        cut = max(len(history) - size, 0)
        cut -= _backslashes(history, cut)  # or the first quote behind them might be taken for another kind
        tail = bytes(history[cut:]) + data
        start = _value_start(tail)
        if start > 0 or cut == 0:
            begun = max(start, 0)
            return texts.canonical(texts.parsed(tail[begun:].decode())), begun >= len(tail) - len(data)
        size *= 4


def _value_start(text: bytes) -> int:
    """Index at which the JSON value that ends `text` (but for whitespace) begins; 0 or less where that may lie before."""
    at, depth = len(text) - 1, 0
    while at >= 0:
        byte = text[at]
        if byte == strings.QUOTE:
            at = _opening_quote(text, at)
            if depth == 0:
                return at
        elif byte in b"]}":
            depth += 1
        elif byte in b"[{":
            depth -= 1
            if depth == 0:
                return at
        elif depth == 0 and byte not in b" \t\r\n":
            while at > 0 and text[at - 1] not in b' \t\r\n,:[{"':
                at -= 1
            return at
        at -= 1
    return at


def key_content(data: bytes, position: int, history: bytes | bytearray) -> tuple[bytes, bool]:
    """The decoded key whose closing quote is `data[position]`, in UTF-8; and whether it began in `data`."""
    begun = _opening_quote(data, position, history)
    if begun >= 0:
        return decode_content(data[begun + 1 : position]), True
    return decode_content(open_string(history) + data[:position]), False


def open_string(history: bytes | bytearray) -> bytes:
    """The bytes of the string that is open at the end of `history`, without its opening quote."""
    return bytes(history[_opening_quote(history, len(history)) + 1 :])


def _opening_quote(data: bytes | bytearray, position: int, before: bytes | bytearray = b"") -> int:
    """Index of the quote that opened the string around `position`: the last one that no backslash escapes; -1 if none.

    `before` are the bytes before `data`, whose last backslashes may escape its first quote.
    """
    at = data.rfind(b'"', 0, position)
    while at >= 0:
        backslashes = _backslashes(data, at)
        if backslashes == at:
            backslashes += _backslashes(before, len(before))
        if backslashes % 2 == 0:
            break
        at = data.rfind(b'"', 0, at)
    return at


def _backslashes(data: bytes | bytearray, end: int) -> int:
    """How many backslashes stand directly before `end`."""
    start = end
    while start > 0 and data[start - 1] == strings.BACKSLASH:
        start -= 1
    return end - start


def decode_content(raw: bytes) -> bytes:
    """The content of the inside of a JSON string, in UTF-8; `raw` may end inside a character, not inside an escape."""
    text = raw.decode("utf-8", "surrogateescape")
    if "\\" in text:
        text = json.loads(f'"{text}"')
    return text.encode("utf-8", "surrogateescape")
