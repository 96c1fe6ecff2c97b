"""Mask rows: which tokens lead on from a state, by walking the token trie once for many tokens.

A row of a state is the union of its threads' rows; a thread's row depends on the frames that its tokens can leave, not on
those below, and not on the keys seen. What lies inside a string, a number or a gap is shared by all grammars of a vocabulary,
and only what may follow it is walked. Two kinds of token are settled afterwards: those that end a free key are taken out where
the frame has that key already, and the few that end more than one key are asked one by one (`Automaton.advance` decides).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import stepping, strings, tables
from constrained.automaton.automaton import Automaton, State, Thread, decode_content, open_string
from constrained.automaton.gap_rows import WHITESPACE
from constrained.automaton.string_rows import StringRow
from constrained.automaton.vocabulary_rows import VocabularyRows
from constrained.automaton.walking import Scratch, Walked, Walker
from constrained.options import Spelling
from constrained.tokens.rows import MaskRow, Words, clear_bits, set_bits
from constrained.tokens.trie import Trie

Int32 = NDArray[np.int32]
MAX_THREAD_ROWS = 4096
MAX_PREFIX_ROWS = 4
MAX_STACK_ROWS = 64
# What stands for a lexeme in the key of rows that belong to none: behind a gap, behind a quote, behind the quote of a key.
BEHIND_GAP, BEHIND_QUOTE, BEHIND_KEY = -1, -2, -3


@dataclass(slots=True)
class ThreadRow:
    """Bits of one thread, before any key is taken out.

    `keys` are tokens that hold a whole free key of the thread's own frame, by the key's content; `unsure` those that
    have to be asked one by one, `asks` says that the answer depends on the item that is being read; `left` how many frames some
    token leaves. `stored` is the row that holds just these bits.
    """

    words: Words
    keys: dict[bytes, list[Int32]] = field(default_factory=dict)
    unsure: list[Int32] = field(default_factory=list)
    asks: bool = False
    left: int = 0
    stored: MaskRow | None = None


class Masks:
    """Mask rows of one automaton over one vocabulary."""

    def __init__(self, automaton: Automaton, shared: VocabularyRows, spelling: Spelling) -> None:
        self._automaton = automaton
        self._shared = shared
        self._strings, self._languages = shared.strings(spelling)
        self._walker = Walker(automaton)
        # By all of a thread but its stack: for each number of frames that its tokens leave, the rows by what those return to.
        self._rows: OrderedDict[tuple[int, ...], dict[int, dict[tuple[int, ...], ThreadRow]]] = OrderedDict()

    def row(self, state: State, history: bytes | bytearray) -> MaskRow:
        """The mask row of `state`, which `history` led to; EOS bits are set where the document may end."""
        if state.row is not None:
            return state.row
        with self._automaton.lock:
            prefix = self._key_prefix(state, history)
            if prefix is None or any(self._thread_row(thread).asks for thread in state.threads):
                built = self._build(state, prefix or b"", history)
                if prefix is None and not any(self._thread_row(thread).asks for thread in state.threads):
                    state.row = built
                return built
            row = state.prefix_rows.get(prefix)
            if row is None:
                if len(state.prefix_rows) >= MAX_PREFIX_ROWS:
                    state.prefix_rows.clear()
                row = state.prefix_rows[prefix] = self._build(state, prefix, history)
            return row

    def next_bytes(self, state: State, history: bytes | bytearray) -> list[int]:
        """The bytes that may come next, ascending."""
        with self._automaton.lock:
            scratch = self._fresh()
            noted = [key for thread in state.threads for key in self._walker.from_node(scratch, _BYTE_TRIE, thread).keys]
            asks = any(earlier == stepping.ASKED for _, _, earlier, _ in noted)
            found = np.flatnonzero(np.unpackbits(scratch.words[:8].view(np.uint8), bitorder="little")).tolist()
            if asks or any(self._automaton.cells.seen[thread[5]] for thread in state.threads):
                advance = self._automaton.advance
                found = [byte for byte in found if advance(state, bytes([byte]), history)[0] is not None]
            return found

    def _key_prefix(self, state: State, history: bytes | bytearray) -> bytes | None:
        """The open free key so far, where the row depends on it; else None."""
        if any(self._in_free_key(thread) and self._automaton.cells.seen[thread[5]] for thread in state.threads):
            return open_string(history)
        return None

    def _in_free_key(self, thread: Thread) -> bool:
        return thread[0] >= strings.FREE and self._automaton.locals.info.array[thread[4], tables.TAGS] >= 0

    def _build(self, state: State, prefix: bytes, history: bytes | bytearray) -> MaskRow:
        if len(state.threads) == 1 and not state.is_accepting:
            row = self._thread_row(state.threads[0])
            if not row.unsure and not self._automaton.cells.seen[state.threads[0][5]]:
                if row.stored is None:
                    row.stored = self._shared.store.intern(row.words)
                return row.stored
        words = np.zeros(self._shared.num_words, np.uint32)
        unsure: list[Int32] = []
        for thread in state.threads:
            row = self._thread_row(thread)
            words |= self._without_seen_keys(thread, row, prefix, unsure)
            unsure += row.unsure
        if unsure:
            self._settle(state, words, np.unique(np.concatenate(unsure)), history)
        if state.is_accepting:
            set_bits(words, self._shared.eos)
        return self._shared.store.intern(words)

    def _without_seen_keys(self, thread: Thread, row: ThreadRow, prefix: bytes, unsure: list[Int32]) -> Words:
        """The thread's bits without the tokens that end a key that its frame has; `prefix` is the open key as written."""
        seen = self._automaton.cells.seen[thread[5]]
        if not seen:
            return row.words
        words = row.words.copy()
        for content in seen & row.keys.keys():
            for tokens in row.keys[content]:
                clear_bits(words, tokens)
        if not self._in_free_key(thread):
            return words
        if thread[1] != 0:
            # In the middle of an escape no content is known yet: whatever closes the key is asked.
            unsure.append(self._strings.place(strings.FREE, thread[1]).exit_tokens)
            return words
        content = decode_content(prefix)
        for key in seen:
            if key.startswith(content):
                clear_bits(words, self._strings.spelled(key[len(content) :]))
        return words

    def _settle(self, state: State, words: Words, tokens: Int32, history: bytes | bytearray) -> None:
        """Clear the bits of those `tokens` that cannot follow."""
        for token in tokens.tolist():
            if words[token >> 5] >> np.uint32(token & 31) & np.uint32(1):
                after, _ = self._automaton.advance(state, self._shared.token_bytes[token], history)
                if after is None:
                    words[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))

    # -- one thread

    def _thread_row(self, thread: Thread) -> ThreadRow:
        lex, esc, need, room, local, cell = thread
        if strings.FREE <= lex < strings.TRIE:
            need, room = self._strings.classes(need, room)
        key = (lex, esc, need, room, local)
        return self._find(key, cell) or self._store(key, cell, self._make((lex, esc, need, room, local, cell)))

    def _find(self, key: tuple[int, ...], cell: int) -> ThreadRow | None:
        for left, rows in self._rows.get(key, _NO_ROWS).items():
            found = rows.get(self._automaton.cells.returns(cell, left) if left else ())
            if found is not None:
                return found
        return None

    def _store(self, key: tuple[int, ...], cell: int, row: ThreadRow) -> ThreadRow:
        kept = self._rows.setdefault(key, {}).setdefault(row.left, {})
        if len(kept) >= MAX_STACK_ROWS:
            kept.clear()
        kept[self._automaton.cells.returns(cell, row.left)] = row
        if len(self._rows) > MAX_THREAD_ROWS:
            self._rows.popitem(last=False)
        return row

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
        scratch, trie = self._fresh(), self._shared.trie
        return self._finish(scratch, trie, self._walker.from_node(scratch, trie, thread), thread[5], b"")

    # -- outside strings

    def _plain_row(self, thread: Thread) -> ThreadRow:
        kind = self._automaton.plain.key(thread[0])[0]
        if kind in ("space", "any"):
            return self._gap_row(thread)
        if kind in ("number", "literal"):
            return self._value_row(thread)
        return self._walked_row(thread)

    def _gap_row(self, thread: Thread) -> ThreadRow:
        """The tokens of whitespace, and what may follow it: once for all gaps before the same place."""
        lex, _, _, _, local, cell = thread
        may_follow, alone = self._shared.gaps.row(self._automaton.plain.key(lex))
        behind = self._behind_gap(local, cell)
        return _joined(alone, behind, may_follow)

    def _behind_gap(self, local: int, cell: int) -> ThreadRow:
        key = (BEHIND_GAP, local)
        found = self._find(key, cell)
        if found is None:
            scratch, trie = self._fresh(), self._shared.gaps.stripped
            walked = self._walker.from_node(scratch, trie, (self._automaton.locals.nothing, 0, 0, 0, local, cell))
            found = self._store(key, cell, self._finish(scratch, trie, walked, cell, WHITESPACE))
        return found

    def _value_row(self, thread: Thread) -> ThreadRow:
        """A number or a literal: the shared row of its inside, and what follows where it may end."""
        lex, _, _, _, local, cell = thread
        inside = self._shared.values.row(self._automaton.plain, lex)
        entry = self._automaton.locals.entry(local)
        row = ThreadRow(inside.inside)
        if inside.may_end:
            row = _joined(row.words, self._thread_row((entry, 0, 0, 0, local, cell)))
        if inside.exits:
            scratch = self._fresh()
            count = len(inside.exits)
            if count > scratch.size:
                scratch.reserve(2 * count)
            scratch.items[:count, : stepping.WHY] = [(node, entry, 0, 0, 0, local, cell, -1, 0) for node in inside.exits]
            walked = self._walker.from_items(scratch, self._shared.trie, count, cell)
            beyond = self._finish(scratch, self._shared.trie, walked, cell, b"")
            row = _noted(row.words | beyond.words, row, beyond)
        return row

    # -- strings

    def _free_row(self, thread: Thread) -> ThreadRow:
        """A free string: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, esc, need, room, local, cell = thread
        bits = self._strings.row(lex, esc, need, room)
        after = self._after_quote(local, strings.FREE_TAG, cell)
        if esc == 0 and lex == strings.FREE:
            return _inside(bits, self._outside(after, self._is_key(local)))
        return _inside(bits, self._beyond(self._strings.place(lex, esc).suffixes, after, self._is_key(local)))

    def _language_row(self, thread: Thread) -> ThreadRow:
        """A string of a language: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, _, _, _, local, cell = thread
        bits = self._languages.row(self._automaton.contents, lex)
        return _inside(bits, self._outside(self._after_quote(local, strings.VALUE_TAG, cell), self._is_key(local)))

    def _outside(self, after: Thread | None, is_key: bool) -> ThreadRow:
        """What may follow a quote inside a token that is read from between characters: once for all strings that end alike."""
        if after is None:
            return ThreadRow(np.zeros(self._shared.num_words, np.uint32))
        key = (BEHIND_KEY if is_key else BEHIND_QUOTE, after[4])
        suffixes = self._strings.place(strings.FREE, 0).suffixes
        return self._find(key, after[5]) or self._store(key, after[5], self._beyond(suffixes, after, is_key))

    def _beyond(self, suffixes: Trie, after: Thread | None, is_key: bool) -> ThreadRow:
        """Tokens by the suffixes that lead on from the thread behind the quote."""
        if after is None:
            return ThreadRow(np.zeros(self._shared.num_words, np.uint32))
        scratch = self._fresh()
        walked = self._walker.from_node(scratch, suffixes, after, keys=int(is_key))
        return self._finish(scratch, suffixes, walked, after[5], None)

    def _fallback_row(self, thread: Thread) -> ThreadRow:
        """A key that is either a known name or free: the row of a free key, with the tokens that end a name put right."""
        lex, _, need, room, local, cell = thread
        state = int(self._automaton.tries.table.array[lex & strings.INDEX, strings.UTF8_STATE])
        need, room = self._strings.classes(need, room)
        free = self._free_row((strings.FREE | state, 0, need, room, local, cell))
        scratch, trie = self._shared.scratches.here(), self._shared.trie
        scratch.words[: len(free.words)] = free.words
        place = (self._automaton.arena.address, scratch.arena.address, scratch.trie(trie), lex, local, cell)
        while True:
            count, num_missing = stepping.settle_names(*place)
            if count < 0:
                scratch.reserve(2 * scratch.size)
            elif num_missing:
                self._walker.fill_in(scratch.pending[:num_missing, stepping.WHY : stepping.WHICH + 1])
            else:
                break
        walked = self._walker.from_items(scratch, trie, count, cell)
        row = self._finish(scratch, trie, walked, cell, b"")
        return _noted(row.words, row, free)

    def _is_key(self, local: int) -> bool:
        return bool(self._automaton.locals.info.array[local, tables.TAGS] >= 0)

    def _after_quote(self, local: int, tag: int, cell: int) -> Thread | None:
        """The thread behind the closing quote of a string with `tag`; None where it may not end so."""
        here = self._automaton.locals
        base = int(here.info.array[local, tables.TAGS])
        if base >= 0:
            local = int(here.tags.array[base + tag, 0])
        return (here.entry(local), 0, 0, 0, local, cell) if local >= 0 else None

    # -- walks

    def _fresh(self) -> Scratch:
        """The scratch of this thread, with no bit set."""
        scratch = self._shared.scratches.here()
        scratch.words.fill(0)
        return scratch

    def _finish(self, scratch: Scratch, trie: Trie, walked: Walked, own: int, stripped: bytes | None) -> ThreadRow:
        """The row of a walk: its bits, and the tokens that end keys of the frame `own`.

        The trie's strings are tokens without the bytes `stripped` at their beginning; None: keys cannot be read off them.
        """
        row = ThreadRow(scratch.words[: self._shared.num_words].copy(), left=walked.left)
        for node, begun, earlier, cell in walked.keys:
            row.asks |= earlier == stepping.ASKED
            if begun < 0 and not earlier and cell == own and stripped is not None:
                continue  # the open key: what it may not be is taken out with its prefix
            tokens = trie.ids[trie.first[node] : trie.first[trie.end[node]]]
            if stripped is None or earlier or begun < 0 or cell != own:
                row.unsure.append(tokens)
                continue
            text = self._shared.token_bytes[int(tokens[0])]
            text = text.lstrip(stripped) if stripped else text
            row.keys.setdefault(decode_content(text[begun : int(trie.depth[node]) - 1]), []).append(tokens)
        return row


def _inside(inside: StringRow, outside: ThreadRow) -> ThreadRow:
    """The row of a string from the tokens that stay in it and those that lead out of it."""
    return _joined(inside.inside, outside, inside.closing)


def _joined(words: Words, row: ThreadRow, mask: Words | None = None) -> ThreadRow:
    """`words`, and the bits of a row under a mask, with what was noted of the row."""
    joined = words | (row.words if mask is None else row.words & mask)
    return ThreadRow(joined, row.keys, row.unsure, row.asks, row.left)


def _noted(words: Words, one: ThreadRow, other: ThreadRow) -> ThreadRow:
    """Bits with what was noted of two rows."""
    keys = (
        one.keys
        if not other.keys
        else {
            content: one.keys.get(content, []) + other.keys.get(content, []) for content in one.keys.keys() | other.keys.keys()
        }
    )
    return ThreadRow(words, keys, one.unsure + other.unsure, one.asks or other.asks, max(one.left, other.left))


_NO_ROWS: dict[int, dict[tuple[int, ...], ThreadRow]] = {}
_BYTE_TRIE = Trie.build([bytes([byte]) for byte in range(256)])
