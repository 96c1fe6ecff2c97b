"""Mask rows: which tokens lead on from a state, by walking the token trie once for many tokens.

A row of a state is the union of its threads' rows (`row_kernels`); a thread's row depends on the frames that its tokens can
leave, not on those below, and not on the keys seen. Two kinds of token are settled afterwards: those that end a free key are
taken out where the frame has that key already, and the few that end more than one key are asked one by one
(`Automaton.advance` decides).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import joining, row_kernels, strings, tables, walk_items
from constrained.automaton.automaton import Automaton, State, decode_content, open_string
from constrained.automaton.item_tokens import ItemTokens
from constrained.automaton.row_kernels import find_row, write_row
from constrained.automaton.tables import REPLACED
from constrained.automaton.thread_rows import NOTHING, Notes, Rows, ThreadRow
from constrained.automaton.threads import Thread
from constrained.automaton.vocabulary_rows import VocabularyRows
from constrained.automaton.walking import Onto, Scratch, Walker
from constrained.options import Spelling
from constrained.tokens.jit import address
from constrained.tokens.rows import Bits, Digest, MaskRow, Words, clear_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
MAX_PREFIX_ROWS = 4
# From how many threads on they are walked together; how, beside the lexeme position of their gap (`Masks._walk_of`).
MANY_THREADS, WHOLE, BY_ITSELF = 3, -1, -2


class Masks:
    """Mask rows of one automaton over one vocabulary."""

    def __init__(self, automaton: Automaton, shared: VocabularyRows, spelling: Spelling) -> None:
        self._automaton = automaton
        self._shared = shared
        self._strings, self._languages = shared.strings(spelling)
        self._machine, self._num_words = automaton.arena.address, shared.num_words
        self._walker = Walker(automaton)
        self._tables = shared.tables(automaton.plain, spelling)
        self._rows = Rows(automaton, self._tables, shared.store)
        self._cuts = shared.cuts(automaton.plain)
        self._items = ItemTokens(automaton, shared)
        self._insides: dict[tuple[int, ...], tuple[Onto, Trie]] = {}
        # The bitmask that was written into last, where it lies and how many rows it has.
        self._written: tuple[Callable[[], Int32 | None], int, int] = (_no_bitmask, 0, 0)

    @property
    def tables_at(self) -> int:
        """Where kernels find what grammars of the vocabulary share (`VocabularyTables`)."""
        found: int = self._tables.at
        return found

    def fill(self, state: State, bitmask: Int32, at: int) -> bool:
        """Write the row of a state into `bitmask[at]`; False, and nothing written, where more than the state decides it."""
        if not state.is_settled and (state.number < 0 or not self._settles(state)):
            return False
        known, begin, num_rows = self._written
        if known() is not bitmask:
            begin, num_rows = self._look_at(bitmask)
        if not 0 <= at < num_rows:
            return False
        write_row(begin + 4 * at * self._num_words, self._machine, self._num_words, state.row_number)
        return True

    def _look_at(self, bitmask: Int32) -> tuple[int, int]:
        """Where a bitmask lies in memory, and how many rows it has: none if they are not such as kernels write into.

        That is remembered of the last one, as it takes as long to find out as to write a row.
        """
        is_plain = bitmask.dtype == _INT32 and bitmask.ndim == 2 and bitmask.flags.c_contiguous and bitmask.flags.writeable
        if not is_plain or bitmask.shape[1] != self._num_words:
            return 0, 0
        begin, num_rows = address(bitmask), len(bitmask)
        self._written = ref(bitmask), begin, num_rows
        return begin, num_rows

    def row(self, state: State, history: bytes | bytearray) -> MaskRow:
        """The mask row of `state`, which `history` led to; EOS bits are set where the document may end."""
        if state.row is not None:
            return state.row
        if state.prefix_rows is not None:
            known = state.prefix_rows.get(open_string(history))
            if known is not None:
                return known
        threads, seen = state.threads, self._automaton.cells.seen
        with self._automaton.lock:
            if state.number >= 0:
                if state.is_settled or self._settles(state):
                    state.row = found = self._rows.mask_row(state.row_number)
                    return found
                if self._is_in_new_key(state, history):
                    return self._rows.mask_row(state.row_number)
            elif len(threads) >= MANY_THREADS and not any(thread[5] in seen for thread in threads):
                return self._settled(state, *self._together(threads), history)
            return self._settled(state, threads, [self._thread_row(thread) for thread in threads], history)

    def _settles(self, state: State) -> bool:
        """Find the row of a state of a single thread; whether nothing has to be taken out of it."""
        if state.row_number >= 0:
            return state.is_settled
        with self._automaton.lock:
            row, seen = self._row_number(state.number), self._automaton.cells.seen
            notes = self._rows.notes.get(row, NOTHING)
            settles = not notes.places
            if settles and seen and (keys := seen.get(state.threads[0][5])):
                settles = not (self._in_free_key(state.threads[0]) or keys & notes.keys().keys())
            state.row_number, state.is_settled = row, settles
            return settles

    def _is_in_new_key(self, state: State, history: bytes | bytearray) -> bool:
        """Whether a state is in a free key which so far is none of its frame's keys, and nothing else is unsure."""
        thread, notes = state.threads[0], self._rows.notes.get(state.row_number, NOTHING)
        seen = self._automaton.cells.keys(thread[5])
        if notes.places or thread[1] or not self._in_free_key(thread) or seen & notes.keys().keys():
            return False
        content = decode_content(open_string(history))
        return not any(key.startswith(content) for key in seen)

    def _together(self, threads: Sequence[Thread]) -> tuple[list[Thread], list[ThreadRow]]:
        """The rows of many threads: those that are walked alike in one walk. Each row with a thread that stands for it.

        Where the answer depends on an item, each thread has a row of its own.
        """
        groups: dict[tuple[int, int], list[Thread]] = {}
        for thread in threads:
            groups.setdefault((self._walk_of(thread), thread[5]), []).append(thread)
        standing, rows = [], []
        for (walk, cell), alike in groups.items():
            joint = None if walk == BY_ITSELF or len(alike) == 1 else self._walk_all(walk, cell, alike)
            if joint is None or joint.notes.asks:
                standing += alike
                rows += [self._thread_row(thread) for thread in alike]
            else:
                standing.append(alike[0])
                rows.append(joint)
        return standing, rows

    def _walk_of(self, thread: Thread) -> int:
        """How the row of a thread is found: by a walk of the whole vocabulary, `BY_ITSELF`, or that of its gap."""
        lex, esc = thread[0], thread[1]
        if lex < strings.FREE:
            kind = self._automaton.plain.key(lex)[0]
            return lex if kind in ("space", "any") else BY_ITSELF if kind in ("number", "literal") else WHOLE
        shares = lex < strings.TRIE or (esc == 0 and (self._automaton.falls_back(lex) or self._automaton.contents.begins(lex)))
        return BY_ITSELF if shares else WHOLE

    def _walk_all(self, walk: int, cell: int, threads: list[Thread]) -> ThreadRow:
        scratch = self._shared.scratches.here()
        if len(threads) > scratch.size:
            scratch.reserve(2 * len(threads))
        if walk == WHOLE:
            trie, onto, cuts = self._shared.trie, self._tables.alone, 0
            items = [(0, *thread, -1, 0) for thread in threads]
        else:
            trie, cuts = self._shared.gaps.stripped, self._cuts.at
            onto = self._shared.gaps.row(self._automaton.plain.key(walk))
            items = [(0, self._automaton.locals.nothing, 0, 0, 0, thread[4], cell, -1, 0) for thread in threads]
        scratch.items[: len(items), : walk_items.WHY] = items
        walked = self._walker.from_items(scratch, trie, len(items), cell, onto.into, cuts=cuts)
        row = self._row(scratch, onto.base, walked.num_entries, walked.digest)
        return ThreadRow(row, Notes.read(trie, walked.keys, cell))

    def _settled(self, state: State, threads: Sequence[Thread], rows: list[ThreadRow], history: bytes | bytearray) -> MaskRow:
        """The row of a state of which the history may decide, from the rows of `threads`."""
        prefix = self._key_prefix(state, history)
        asks = any(row.notes.asks for row in rows)
        if prefix is None or asks:
            built = self._build(state, threads, rows, prefix or b"", history)
            if prefix is None and not asks:
                state.row = built
            return built
        known = state.prefix_rows
        if known is None or len(known) >= MAX_PREFIX_ROWS:
            known = state.prefix_rows = {}
        row = known.get(prefix)
        if row is None:
            row = known[prefix] = self._build(state, threads, rows, prefix, history)
        return row

    def next_bytes(self, state: State, history: bytes | bytearray) -> list[int]:
        """The bytes that may come next, ascending."""
        with self._automaton.lock:
            scratch = self._shared.scratches.here()
            noted = [key for thread in state.threads for key in self._walker.from_node(scratch, _BYTE_TRIE, thread, None).keys]
            asks = any(earlier == walk_items.ASKED for _, _, earlier, _ in noted)
            found = np.flatnonzero(np.unpackbits(scratch.words[:8].view(np.uint8), bitorder="little")).tolist()
            scratch.clear()
            if asks or any(thread[5] in self._automaton.cells.seen for thread in state.threads):
                advance = self._automaton.advance
                found = [byte for byte in found if advance(state, bytes([byte]), history)[0] is not None]
            return found

    def _key_prefix(self, state: State, history: bytes | bytearray) -> bytes | None:
        """The open free key so far, where the row depends on it; else None."""
        for thread in state.threads:
            if self._in_free_key(thread) and thread[5] in self._automaton.cells.seen:
                return open_string(history)
        return None

    def _in_free_key(self, thread: Thread) -> bool:
        return thread[0] >= strings.FREE and self._automaton.locals.is_key(thread[4])

    def _build(
        self, state: State, threads: Sequence[Thread], rows: list[ThreadRow], prefix: bytes, history: bytes | bytearray
    ) -> MaskRow:
        asked: list[list[Int32]] = []
        out: list[list[Int32]] = []
        for thread, row in zip(threads, rows, strict=True):
            of_thread, taken = (
                self._items.sort(thread, row.notes.unsure, history) if row.notes.asks else (row.notes.unsure[:], [])
            )
            out.append(taken + self._seen_keys(thread, row, prefix, of_thread))
            asked.append(of_thread)
        unsure = _unsure_of_all(rows, asked, out)
        if len(rows) == 1 and not state.is_accepting and not len(unsure) and not out[0]:
            return rows[0].row
        scratch, base = self._shared.scratches.here(), rows[0].row
        if len(rows) == 1 and not len(unsure):
            for tokens in out[0]:
                joining.change(scratch.address, base.at, tokens, False)
        else:
            self._join(scratch, rows, out)
        try:
            self._settle(state, scratch.words, unsure, history)
        except BaseException:
            scratch.clear()
            raise
        if state.is_accepting:
            joining.change(scratch.address, base.at, self._shared.eos, True)
        count, one, two = joining.gather(scratch.address, base.at, self._shared.everything.at, *base.digest)
        return self._row(scratch, base, count, (one, two))

    def _join(self, scratch: Scratch, rows: list[ThreadRow], out: list[list[Int32]]) -> None:
        """The union of rows, each without some tokens, as the words of the scratch."""
        for row, taken in zip(rows, out, strict=True):
            part = row.row.at
            if taken:
                without = row.row.words.view(np.uint32).copy()
                for tokens in taken:
                    clear_bits(without, tokens)
                part = address(without)
            joining.pour(scratch.address, part, REPLACED)

    def _seen_keys(self, thread: Thread, row: ThreadRow, prefix: bytes, unsure: list[Int32]) -> list[Int32]:
        """The tokens of a thread that end a key which its frame has; `prefix` is the open key as written.

        `unsure` takes those of which that can't be said.
        """
        seen = self._automaton.cells.keys(thread[5])
        if not seen:
            return []
        keys = row.notes.keys()
        found = [tokens for content in seen & keys.keys() for tokens in keys[content]]
        if not self._in_free_key(thread):
            return found
        if thread[1] != 0:
            # In the middle of an escape no content is known yet: whatever closes the key is asked.
            unsure.append(self._strings.place(strings.FREE, thread[1]).exit_tokens)
            return found
        content = decode_content(prefix)
        return found + [self._strings.spelled(key[len(content) :]) for key in seen if key.startswith(content)]

    def _settle(self, state: State, words: Words, tokens: Int32, history: bytes | bytearray) -> None:
        """Clear the bits of those `tokens` that cannot follow."""
        for token in tokens.tolist():
            if words[token >> 5] >> np.uint32(token & 31) & np.uint32(1):
                after, _ = self._automaton.advance(state, self._shared.token_bytes[token], history)
                if after is None:
                    words[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))

    # -- one thread

    def _thread_row(self, thread: Thread) -> ThreadRow:
        row = self._row_number(self._automaton.threads.number(thread))
        return ThreadRow(self._rows.mask_row(row), self._rows.notes.get(row, NOTHING))

    def _row_number(self, number: int) -> int:
        """The number of the row of a thread."""
        scratch, shared = self._shared.scratches.here(), self._tables.at
        machine, onto, suffixes = self._automaton.arena, 0, 0
        while (row := find_row(machine.address, scratch.address, shared, number, onto, suffixes)) < 0:
            which = machine.slots[tables.WHICH_ONE]
            if row == row_kernels.PENDING:
                self._walker.fill_in(scratch, which)
            elif row == row_kernels.NEW_KIND:
                self._tables.learn(which)
            elif row == row_kernels.NEW_NUMBER:
                self._tables.learn_number(*divmod(which, tables.GAP_COLUMNS))
            elif row == row_kernels.NEW_STRING:
                inside, behind = self._inside(self._automaton.threads.thread(number))
                onto, suffixes = inside.at, behind.at if behind is not None else 0
            elif row == row_kernels.ROWS_FULL:
                self._rows.make_room()
            elif row == row_kernels.NOTED:
                self._note(scratch, number, which)
                row = which
                break
            else:
                self._walker.grow(scratch, which)
        if scratch.num_wanted[0]:
            self._cuts.ask(scratch.wanted[1 : 1 + scratch.num_wanted[0]])
            scratch.num_wanted[0] = 0
            self._tables.take_numbers()
        return int(row)

    def _inside(self, thread: Thread) -> tuple[Onto, Trie | None]:
        """Where the bits of a thread in a string go, and the trie of what follows its quote; None: all tokens are walked."""
        lex, esc, need, room, _, _ = thread
        contents = self._automaton.contents
        if lex >= strings.DFA and not contents.begins(lex):
            return self._tables.alone, None
        if strings.TRIE <= lex < strings.DFA:
            place = (lex & strings.INDEX) * strings.TRIE_COLUMNS
            lex = strings.FREE | self._automaton.tries.table.cells[place + strings.UTF8_STATE]
        if lex < strings.TRIE:
            need, room = self._strings.classes(need, room)
            where: tuple[int, ...] = (lex, esc, need, room)
        else:
            is_free = room >= strings.UNBOUNDED or room >= self._languages.reach(contents, lex)
            where = (lex, -1 if is_free else self._languages.room(contents, lex, room))
        found = self._insides.get(where)
        if found is None:
            if lex < strings.TRIE:
                found = self._strings.row(lex, esc, need, room), self._strings.place(lex, esc).suffixes
            else:
                languages, limit = self._languages, where[1]
                onto = languages.row(contents, lex) if limit < 0 else languages.limited_row(contents, lex, limit)
                found = onto, self._strings.place(strings.FREE, 0).suffixes
            self._insides[where] = found
            self._rows.words[found[0].base.at] = found[0].base
        return found

    def _note(self, scratch: Scratch, number: int, row: int) -> None:
        """Keep what the walks of a row noted: the first, and from the slot `FIRST_NOTED` on one of the whole vocabulary."""
        thread = self._automaton.threads.thread(number)
        first, keys = self._automaton.arena.slots[tables.FIRST_NOTED], scratch.keys[: self._rows.num_keys(row)].tolist()
        trie, whole, own = self._trie_of(thread), self._shared.trie, thread[5]
        notes = Notes.read(whole, keys, own)
        if trie is not whole:
            notes = Notes.read(trie, keys[:first], own).beside(Notes.read(whole, keys[first:], own))
        if notes is not NOTHING:
            self._rows.notes[row] = notes

    def _trie_of(self, thread: Thread) -> Trie:
        """The trie that was walked first for a thread."""
        lex, esc, _, _, local, _ = thread
        if lex >= strings.FREE:
            is_name = strings.TRIE <= lex < strings.DFA and not self._automaton.falls_back(lex)
            suffixes = None if is_name or (esc and lex >= strings.TRIE) else self._inside(thread)[1]
            return suffixes or self._shared.trie
        key = self._automaton.plain.key
        kind = key(lex)[0]
        if kind in ("number", "literal"):
            kind = key(self._automaton.locals.entry(local))[0]
        return self._shared.gaps.stripped if kind in ("space", "any") else self._shared.trie

    def _row(self, scratch: Scratch, base: Bits | MaskRow, count: int, digest: Digest) -> MaskRow:
        """The stored row that differs from `base` by the scratch's first `count` entries."""
        store = self._shared.store
        return store.find(digest) or store.put(digest, base, scratch.entries[:count])


def _unsure_of_all(rows: list[ThreadRow], asked: list[list[Int32]], out: list[list[Int32]]) -> Int32:
    """The tokens that must be asked of a state: those of its threads, but for what another of them is sure of."""
    of_threads = [np.concatenate(tokens) if tokens else _NO_TOKENS for tokens in asked]
    found = np.unique(np.concatenate(of_threads)) if len(rows) > 1 else np.unique(of_threads[0])
    if len(rows) == 1 or not len(found):
        return found
    is_sure = np.zeros(len(found), np.bool_)
    for row, unsure, taken in zip(rows, of_threads, out, strict=True):
        bits = (row.row.words.view(np.uint32)[found >> 5] >> (found & 31).astype(np.uint32)) & 1
        is_sure |= bits.astype(np.bool_) & ~np.isin(found, np.concatenate([unsure, *taken]))
    return found[~is_sure]


_NO_TOKENS = np.empty(0, np.int32)


def _no_bitmask() -> None:
    return None


_INT32 = np.dtype(np.int32)
_BYTE_TRIE = Trie.build([bytes([byte]) for byte in range(256)])
