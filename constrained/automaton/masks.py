"""Mask rows: which tokens lead on from a state, by walking the token trie once for many tokens.

A row of a state is the union of its threads' rows; a thread's row depends on the frames that its tokens can leave, not on
those below, and not on the keys seen. What lies inside a string, a number or a gap is shared by all grammars of a vocabulary,
and only what may follow it is walked. Two kinds of token are settled afterwards: those that end a free key are taken out where
the frame has that key already, and the few that end more than one key are asked one by one (`Automaton.advance` decides).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import joining, strings, trie_walk
from constrained.automaton.automaton import Automaton, State, Thread, decode_content, open_string
from constrained.automaton.gap_rows import WHITESPACE
from constrained.automaton.tables import ADDED, REPLACED
from constrained.automaton.thread_rows import NOTHING, Notes, Rows, ThreadRow, WholeKey
from constrained.automaton.vocabulary_rows import VocabularyRows
from constrained.automaton.walking import Onto, Scratch, Walked, Walker
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
        self._walker = Walker(automaton)
        self._rows = Rows(automaton.cells)
        self._alone = Onto(shared.nothing, shared.everything)
        self._cuts = shared.cuts(automaton.plain)
        self._gaps: dict[tuple[int, bool], Onto] = {}

    def row(self, state: State, history: bytes | bytearray) -> MaskRow:
        """The mask row of `state`, which `history` led to; EOS bits are set where the document may end."""
        if state.row is not None:
            return state.row
        threads, seen = state.threads, self._automaton.cells.seen
        with self._automaton.lock:
            if len(threads) == 1:
                row = self._thread_row(threads[0])
                if state.is_accepting or row.notes.unsure or seen[threads[0][5]]:
                    return self._settled(state, threads, [row], history)
                state.row = row.row
                return row.row
            if len(threads) >= MANY_THREADS and not any(seen[thread[5]] for thread in threads):
                return self._settled(state, *self._together(threads), history)
            return self._settled(state, threads, [self._thread_row(thread) for thread in threads], history)

    def _together(self, threads: Sequence[Thread]) -> tuple[list[Thread], list[ThreadRow]]:
        """The rows of many threads: those that are walked alike in one walk. Each row with a thread that stands for it."""
        groups: dict[tuple[int, int], list[Thread]] = {}
        for thread in threads:
            groups.setdefault((self._walk_of(thread), thread[5]), []).append(thread)
        standing, rows = [], []
        for (walk, cell), alike in groups.items():
            if walk == BY_ITSELF or len(alike) == 1:
                standing += alike
                rows += [self._thread_row(thread) for thread in alike]
            else:
                standing.append(alike[0])
                rows.append(self._walk_all(walk, cell, alike))
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
            trie, onto, stripped, cuts = self._shared.trie, self._alone, b"", 0
            items = [(0, *thread, -1, 0) for thread in threads]
        else:
            trie, stripped, cuts = self._shared.gaps.stripped, WHITESPACE, self._cuts.at
            onto = self._shared.gaps.row(self._automaton.plain.key(walk))
            items = [(0, self._automaton.locals.nothing, 0, 0, 0, thread[4], cell, -1, 0) for thread in threads]
        scratch.items[: len(items), : trie_walk.WHY] = items
        walked = self._walker.from_items(scratch, trie, len(items), cell, onto, cuts=cuts)
        row = self._row(scratch, onto.base, walked.num_entries, walked.digest)
        return ThreadRow(row, self._notes(trie, walked, cell, stripped))

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
            asks = any(earlier == trie_walk.ASKED for _, _, earlier, _ in noted)
            found = np.flatnonzero(np.unpackbits(scratch.words[:8].view(np.uint8), bitorder="little")).tolist()
            scratch.clear()
            if asks or any(self._automaton.cells.seen[thread[5]] for thread in state.threads):
                advance = self._automaton.advance
                found = [byte for byte in found if advance(state, bytes([byte]), history)[0] is not None]
            return found

    def _key_prefix(self, state: State, history: bytes | bytearray) -> bytes | None:
        """The open free key so far, where the row depends on it; else None."""
        for thread in state.threads:
            if self._in_free_key(thread) and self._automaton.cells.seen[thread[5]]:
                return open_string(history)
        return None

    def _in_free_key(self, thread: Thread) -> bool:
        return thread[0] >= strings.FREE and self._automaton.locals.is_key(thread[4])

    def _build(
        self, state: State, threads: Sequence[Thread], rows: list[ThreadRow], prefix: bytes, history: bytes | bytearray
    ) -> MaskRow:
        unsure: list[Int32] = []
        out: list[list[Int32]] = []
        for thread, row in zip(threads, rows, strict=True):
            out.append(self._seen_keys(thread, row, prefix, unsure))
            unsure += self._unsure(thread, row) if len(state.threads) == 1 else row.notes.unsure
        if len(rows) == 1 and not state.is_accepting and not unsure and not out[0]:
            return rows[0].row
        scratch, base = self._shared.scratches.here(), rows[0].row
        if len(rows) == 1 and not unsure:
            for tokens in out[0]:
                joining.change(scratch.address, base.at, tokens, False)
        else:
            self._join(scratch, rows, out)
        try:
            if unsure:
                self._settle(state, scratch.words, np.unique(np.concatenate(unsure)), history)
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

    def _unsure(self, thread: Thread, row: ThreadRow) -> list[Int32]:
        """The tokens of a thread that must be asked one by one; not those that at most begin an item which can be ended."""
        lex, esc, _, _, local, cell = thread
        if not row.notes.asks or esc:
            return row.notes.unsure
        locals_, in_string, in_object = self._automaton.locals, lex >= strings.FREE, False
        opening = locals_.opening_next(local)
        if opening is None and locals_.ends_member(local):
            opening, in_object = locals_.opening_next(self._automaton.cells.local(cell)), True
        if opening is None:
            return row.notes.unsure
        clear = self._shared.next_items.of(opening, in_string=in_string, in_object=in_object)
        return [tokens[~clear[tokens]] for tokens in row.notes.unsure]

    def _seen_keys(self, thread: Thread, row: ThreadRow, prefix: bytes, unsure: list[Int32]) -> list[Int32]:
        """The tokens of a thread that end a key which its frame has; `prefix` is the open key as written.

        `unsure` takes those of which that can't be said.
        """
        seen = self._automaton.cells.seen[thread[5]]
        if not seen:
            return []
        keys = row.notes.keys(self._shared.token_bytes)
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
        lex = thread[0]
        if strings.FREE <= lex < strings.TRIE:
            _, esc, need, room, local, cell = thread
            thread = (lex, esc, *self._strings.classes(need, room), local, cell)
        elif thread[3] < strings.UNBOUNDED and thread[1] == 0 and self._automaton.contents.begins(lex):
            _, esc, need, room, local, cell = thread
            thread = (lex, esc, need, self._languages.room(self._automaton.contents, lex, room), local, cell)
        return self._rows.find(thread) or self._rows.keep(thread, self._make(thread))

    def _make(self, thread: Thread) -> ThreadRow:
        lex, esc = thread[0], thread[1]
        if lex < strings.FREE:
            return self._plain_row(thread)
        if lex < strings.TRIE:
            return self._free_row(thread)
        if esc == 0 and self._automaton.falls_back(lex):
            return self._fallback_row(thread)
        if esc == 0 and self._automaton.contents.begins(lex):
            return self._language_row(thread)
        return self._walked_row(thread)

    def _walked_row(self, thread: Thread) -> ThreadRow:
        """By a walk of the whole vocabulary: of those branches that lead on."""
        return self._walk(self._shared.trie, thread, self._alone, b"")

    # -- outside strings

    def _plain_row(self, thread: Thread) -> ThreadRow:
        kind = self._automaton.plain.key(thread[0])[0]
        if kind in ("space", "any"):
            return self._gap_row(thread)
        if kind in ("number", "literal"):
            return self._value_row(thread)
        return self._walked_row(thread)

    def _gap_row(self, thread: Thread) -> ThreadRow:
        """The tokens of whitespace, and what may follow it."""
        lex, _, _, _, local, cell = thread
        locals_ = self._automaton.locals
        before_text = locals_.begins_text(local)
        start = (locals_.nothing, 0, 0, 0, local, cell)
        inside = self._gaps.get((lex, before_text))
        if inside is None:
            key = self._automaton.plain.key(lex)
            inside = self._gaps[lex, before_text] = self._shared.gaps.row(key, before_text=before_text)
        cuts = self._cuts.without_text if before_text else self._cuts.at
        return self._walk(self._shared.gaps.stripped, start, inside, WHITESPACE, cuts=cuts)

    def _value_row(self, thread: Thread) -> ThreadRow:
        """A number or a literal: the shared row of its inside, and what follows where it may end."""
        lex, _, _, _, local, cell = thread
        inside = self._shared.values.row(self._automaton.plain, lex)
        entry = self._automaton.locals.entry(local)
        base: Bits | MaskRow = self._shared.nothing
        ended = NOTHING
        if inside.may_end:
            found = self._thread_row((entry, 0, 0, 0, local, cell))
            base, ended = found.row, found.notes
        scratch, count = self._shared.scratches.here(), len(inside.exits)
        if count > scratch.size:
            scratch.reserve(2 * count)
        if count:
            scratch.items[:count, : trie_walk.WHY] = [(node, entry, 0, 0, 0, local, cell, -1, 0) for node in inside.exits]
        joining.pour(scratch.address, inside.inside.at, ADDED)
        return self._from_items(scratch, count, cell, Onto(base, self._shared.everything), ended)

    # -- strings

    def _free_row(self, thread: Thread) -> ThreadRow:
        """A free string: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, esc, need, room, local, cell = thread
        suffixes = self._strings.place(lex, esc).suffixes
        return self._string_row(local, strings.FREE_TAG, cell, self._strings.row(lex, esc, need, room), suffixes)

    def _language_row(self, thread: Thread) -> ThreadRow:
        """A string of a language: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, _, _, room, local, cell = thread
        suffixes, contents = self._strings.place(strings.FREE, 0).suffixes, self._automaton.contents
        is_free = room >= strings.UNBOUNDED or room >= self._languages.reach(contents, lex)
        inside = self._languages.row(contents, lex) if is_free else self._languages.limited_row(contents, lex, room)
        return self._string_row(local, strings.VALUE_TAG, cell, inside, suffixes)

    def _string_row(self, local: int, tag: int, cell: int, inside: Onto, suffixes: Trie) -> ThreadRow:
        after = self._after_quote(local, tag, cell)
        if after is None:
            return ThreadRow(self._row(self._shared.scratches.here(), inside.base, 0, inside.base.digest), NOTHING)
        return self._walk(suffixes, after, inside, None, keys=int(self._automaton.locals.is_key(local)))

    def _fallback_row(self, thread: Thread) -> ThreadRow:
        """A key that is either a known name or free: the row of a free key, with the tokens that end a name put right."""
        lex, _, need, room, local, cell = thread
        state = self._automaton.tries.table.cells[(lex & strings.INDEX) * strings.TRIE_COLUMNS + strings.UTF8_STATE]
        free = self._thread_row((strings.FREE | state, 0, need, room, local, cell))
        scratch, trie = self._shared.scratches.here(), self._shared.trie
        place = (self._automaton.arena.address, scratch.arena.address, trie.at, lex, local, cell, free.row.at)
        while True:
            count, num_missing = trie_walk.settle_names(*place)
            if count < 0:
                scratch.reserve(2 * scratch.size)
            elif num_missing:
                self._walker.fill_in(scratch, num_missing)
            else:
                break
        onto = Onto(free.row, self._shared.everything)
        return self._from_items(scratch, count, cell, onto, free.notes)

    def _after_quote(self, local: int, tag: int, cell: int) -> Thread | None:
        """The thread behind the closing quote of a string with `tag`; None where it may not end so."""
        here = self._automaton.locals
        local = here.behind(local, tag)
        return (here.entry(local), 0, 0, 0, local, cell) if local >= 0 else None

    # -- walks

    def _walk(
        self, trie: Trie, start: Thread, onto: Onto, stripped: bytes | None, *, keys: int = 0, cuts: int = 0
    ) -> ThreadRow:
        """The row of a trie's strings, tokens without their beginning, that lead on from a thread (see `_notes`)."""
        scratch = self._shared.scratches.here()
        walked = self._walker.from_node(scratch, trie, start, onto, keys=keys, cuts=cuts)
        if scratch.num_wanted[0]:
            self._cuts.ask(scratch.wanted[1 : 1 + scratch.num_wanted[0]])
            scratch.num_wanted[0] = 0
        store = self._shared.store
        row = store.find(walked.digest) or store.put(walked.digest, onto.base, scratch.entries[: walked.num_entries])
        if not walked.keys and not walked.left:
            return ThreadRow(row, NOTHING)
        return ThreadRow(row, self._notes(trie, walked, start[5], stripped))

    def _from_items(self, scratch: Scratch, count: int, own: int, onto: Onto, notes: Notes) -> ThreadRow:
        """The row of the scratch's bits and of what its first `count` items lead to, with `notes` beside what that notes."""
        walked = self._walker.from_items(scratch, self._shared.trie, count, own, onto)
        row = self._row(scratch, onto.base, walked.num_entries, walked.digest)
        return ThreadRow(row, self._notes(self._shared.trie, walked, own, b"").beside(notes))

    def _row(self, scratch: Scratch, base: Bits | MaskRow, count: int, digest: Digest) -> MaskRow:
        """The stored row that differs from `base` by the scratch's first `count` entries."""
        store = self._shared.store
        return store.find(digest) or store.put(digest, base, scratch.entries[:count])

    def _notes(self, trie: Trie, walked: Walked, own: int, stripped: bytes | None) -> Notes:
        """What a walk noted: the tokens that end keys of the frame `own`.

        The trie's strings are tokens without the bytes `stripped` at their beginning; None: keys cannot be read off them.
        """
        if not walked.keys:
            return Notes([], [], False, walked.left) if walked.left else NOTHING
        whole: list[WholeKey] = []
        unsure, asks = [], False
        for node, begun, earlier, cell in walked.keys:
            if begun < 0 and not earlier and cell == own and stripped is not None:
                continue  # the open key: what it may not be is taken out with its prefix
            if stripped is None or earlier or begun < 0 or cell != own:
                asks |= earlier == trie_walk.ASKED
                unsure.append(trie.ids[trie.first[node] : trie.first[trie.end[node]]])
            else:
                whole.append((trie, stripped, node, begun))
        return Notes(whole, unsure, asks, walked.left)


_BYTE_TRIE = Trie.build([bytes([byte]) for byte in range(256)])
