"""Mask rows: which tokens lead on from a state, by walking the token trie once for many tokens.

A row of a state is the union of its threads' rows; a thread's row depends on the shape of its stack, not on the keys
seen. Two kinds of token are settled afterwards: those that end a free key are taken out where the frame has that key
already, and the few that end more than one key are asked one by one (`Automaton.advance` decides).
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import scans, stepping, strings, tables
from constrained.automaton.automaton import Automaton, State, Thread, decode_content, open_string
from constrained.automaton.language_rows import LanguageRows
from constrained.automaton.string_rows import StringRow, StringRows
from constrained.errors import InternalError, VocabularyError
from constrained.options import Spelling
from constrained.tokens.rows import MaskRow, RowStore, Words, clear_bits, set_bits
from constrained.tokens.trie import Trie
from constrained.tokens.vocabulary import Vocabulary

Int32 = NDArray[np.int32]
MAX_THREAD_ROWS = 4096
MAX_PREFIX_ROWS = 4


class VocabularyRows:
    """What all grammars over one vocabulary share: its trie, its string rows and its store of rows.

    Raises `VocabularyError` where no token is one of the bytes that documents need singly.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.num_words = vocabulary.num_words
        self.token_bytes = vocabulary.token_bytes
        self.trie = vocabulary.trie
        _require_bytes(self.trie)
        self._strings: dict[Spelling, tuple[StringRows, LanguageRows]] = {}
        self.store = RowStore()
        self.eos = np.array(sorted(vocabulary.eos_token_ids), np.int32)

    def strings(self, spelling: Spelling) -> tuple[StringRows, LanguageRows]:
        """The vocabulary seen from inside free strings, and from inside strings of languages."""
        found = self._strings.get(spelling)
        if found is None:
            free = StringRows(self.trie, self.token_bytes, self.num_words, permissive=spelling == "permissive")
            found = self._strings.setdefault(spelling, (free, LanguageRows(self.trie, self.num_words, free)))
        return found


def _require_bytes(trie: Trie) -> None:
    """All printable ASCII must be there byte by byte, and all continuation bytes where a token ends inside a character."""
    single = set(trie.byte[(trie.depth == 1) & (trie.first[1:] > trie.first[:-1])].tolist())
    needed = [*range(0x20, 0x7F), *(range(0x80, 0xC0) if any(byte >= 0x80 for byte in single) else ())]
    missing = [byte for byte in needed if byte not in single]
    if missing:
        raise VocabularyError(f"no token is the single byte 0x{missing[0]:02x}, which documents may need")


_shared: weakref.WeakKeyDictionary[Vocabulary, VocabularyRows] = weakref.WeakKeyDictionary()


def rows_of(vocabulary: Vocabulary) -> VocabularyRows:
    """The shared rows of a vocabulary, made when first asked for."""
    found = _shared.get(vocabulary)
    if found is None:
        found = _shared.setdefault(vocabulary, VocabularyRows(vocabulary))
    return found


@dataclass(slots=True)
class ThreadRow:
    """Bits of one thread, before any key is taken out.

    `keys` are tokens that hold a whole free key of the thread's own frame, by the key's content; `unsure` those that
    have to be asked one by one, `asks` says that the answer depends on the item that is being read.
    """

    words: Words
    keys: dict[bytes, list[Int32]] = field(default_factory=dict)
    unsure: list[Int32] = field(default_factory=list)
    asks: bool = False


class Masks:
    """Mask rows of one automaton over one vocabulary."""

    def __init__(self, automaton: Automaton, shared: VocabularyRows, spelling: Spelling) -> None:
        self._automaton = automaton
        self._shared = shared
        self._strings, self._languages = shared.strings(spelling)
        self._thread_rows: OrderedDict[tuple[int, ...], ThreadRow] = OrderedDict()
        self._ends: dict[int, list[list[int]]] = {}
        self._stack = np.zeros((shared.trie.max_depth + 2, stepping.ITEM_COLUMNS), np.int32)
        self._items = np.zeros((4096, stepping.ITEM_COLUMNS), np.int32)
        self._pending = np.zeros((2048, stepping.ITEM_COLUMNS), np.int32)
        self._keys = np.zeros((4096, 4), np.int32)

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
            words = np.zeros(8, np.uint32)
            row = ThreadRow(words)
            for thread in state.threads:
                self._walk(_BYTE_TRIE, [_item(0, thread)], words, row, thread[5], None)
            found = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
            if row.asks or any(self._automaton.cells.seen[thread[5]] for thread in state.threads):
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
        key = (lex, esc, need, room, local, self._automaton.cells.shape[cell])
        found = self._thread_rows.get(key)
        if found is None:
            found = self._thread_rows[key] = self._make((lex, esc, need, room, local, cell))
            if len(self._thread_rows) > MAX_THREAD_ROWS:
                self._thread_rows.popitem(last=False)
        return found

    def _make(self, thread: Thread) -> ThreadRow:
        lex, esc = thread[0], thread[1]
        if strings.FREE <= lex < strings.TRIE:
            return self._free_row(thread)
        if esc == 0 and self._automaton.falls_back(lex):
            return self._fallback_row(thread)
        if esc == 0 and self._automaton.contents.begins(lex):
            return self._language_row(thread)
        row = ThreadRow(np.zeros(self._shared.num_words, np.uint32))
        self._walk(self._shared.trie, [_item(0, thread)], row.words, row, thread[5], self._shared.token_bytes)
        return row

    def _free_row(self, thread: Thread) -> ThreadRow:
        """A free string: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, esc, need, room, local, cell = thread
        bits = self._strings.row(lex, esc, need, room)
        after = self._after_quote(local, strings.FREE_TAG, cell)
        if esc == 0 and lex == strings.FREE:
            return _joined(bits, self._outside(after, self._is_key(local)))
        return _joined(bits, self._beyond(self._strings.place(lex, esc).suffixes, after, self._is_key(local)))

    def _language_row(self, thread: Thread) -> ThreadRow:
        """A string of a language: the shared row of its inside, and a walk of the suffixes behind its quote."""
        lex, _, _, _, local, cell = thread
        bits = self._languages.row(self._automaton.contents, lex)
        return _joined(bits, self._outside(self._after_quote(local, strings.VALUE_TAG, cell), self._is_key(local)))

    def _outside(self, after: Thread | None, is_key: bool) -> ThreadRow:
        """What may follow a quote inside a token that is read from between characters: once for all strings that end alike."""
        if after is None:
            return ThreadRow(np.zeros(self._shared.num_words, np.uint32))
        key = (-1, int(is_key), 0, 0, after[4], self._automaton.cells.shape[after[5]])
        found = self._thread_rows.get(key)
        if found is None:
            suffixes = self._strings.place(strings.FREE, 0).suffixes
            found = self._thread_rows[key] = self._beyond(suffixes, after, is_key)
        return found

    def _beyond(self, suffixes: Trie, after: Thread | None, is_key: bool) -> ThreadRow:
        """Tokens by the suffixes that lead on from the thread behind the quote."""
        row = ThreadRow(np.zeros(self._shared.num_words, np.uint32))
        if after is not None:
            self._walk(suffixes, [_item(0, after, keys=int(is_key))], row.words, row, after[5], None)
        return row

    def _fallback_row(self, thread: Thread) -> ThreadRow:
        """A key that is either a known name or free: the row of a free key, with the tokens that end a name put right."""
        lex, _, need, room, local, cell = thread
        state = int(self._automaton.tries.table.array[lex & strings.INDEX, strings.UTF8_STATE])
        need, room = self._strings.classes(need, room)
        row = self._free_row((strings.FREE | state, 0, need, room, local, cell))
        trie, items = self._shared.trie, []
        for node, tag in self._named_ends(lex):
            clear_bits(row.words, trie.ids[trie.first[node] : trie.first[trie.end[node]]])
            after = self._after_quote(local, tag, cell) if tag >= 0 else None
            if after is not None:
                set_bits(row.words, trie.ids[trie.first[node] : trie.first[node + 1]])
                items.append(_item(node, after))
        if items:
            self._walk(trie, items, row.words, row, cell, self._shared.token_bytes)
        return row

    def _is_key(self, local: int) -> bool:
        return bool(self._automaton.locals.info.array[local, tables.TAGS] >= 0)

    def _named_ends(self, lex: int) -> list[list[int]]:
        """Where in the token trie the names below a place of a string trie end: (node, tag)."""
        known = self._ends.get(lex)
        if known is None:
            found = np.empty((4096, 2), np.int32)
            while (count := scans.spelled(lex, *self._shared.trie.spelling, *self._automaton.content, found)) < 0:
                found = np.empty((4 * len(found), 2), np.int32)
            known = self._ends[lex] = found[:count].tolist()
        return known

    def _after_quote(self, local: int, tag: int, cell: int) -> Thread | None:
        """The thread behind the closing quote of a string with `tag`; None where it may not end so."""
        here = self._automaton.locals
        base = int(here.info.array[local, tables.TAGS])
        if base >= 0:
            local = int(here.tags.array[base + tag, 0])
        return (here.entry(local), 0, 0, 0, local, cell) if local >= 0 else None

    # -- walking

    def _walk(
        self, trie: Trie, start: list[list[int]], words: Words, row: ThreadRow, own: int, token_bytes: list[bytes] | None
    ) -> None:
        """Set in `words` what the items lead through; note in `row` the tokens that end keys of the frame `own`.

        `token_bytes` None: the trie's strings are not whole tokens, so keys are not read off them.
        """
        automaton = self._automaton
        cells = automaton.cells.table
        scratch = len(automaton.cells)
        while True:
            count, num_cells = len(start), scratch
            if count > len(self._items):
                self._items = np.zeros((2 * count, stepping.ITEM_COLUMNS), np.int32)
            self._items[:count] = start
            noted: list[list[int]] = []
            status = stepping.FINISHED
            while count:
                cells.reserve(4096 + num_cells - scratch)
                status, _, waiting, num_keys, num_cells = stepping.walk(
                    self._stack, self._items, count, words, self._pending, self._keys, num_cells, scratch,
                    *trie.whole, *automaton.arrays,
                )  # fmt: skip
                if status != stepping.FINISHED:
                    break
                noted += self._keys[:num_keys].tolist()
                self._items[:waiting] = self._pending[:waiting]
                self._resolve(waiting)
                count = waiting
            if status == stepping.FINISHED:
                break
            self._grow(status)
        if noted:
            self._note_keys(trie, noted, row, own, token_bytes)

    def _resolve(self, waiting: int) -> None:
        """Fill in what the pending items met that was not there yet."""
        plain, here, contents = self._automaton.plain, self._automaton.locals, self._automaton.contents
        for lex, local in {(int(item[stepping.I_LEX]), int(item[stepping.I_LOCAL])) for item in self._pending[:waiting]}:
            if lex >= strings.DFA and contents.is_unknown(lex & strings.INDEX):
                contents.resolve(lex & strings.INDEX)
            elif lex < strings.FREE and plain.table.array[lex, 0] == tables.UNRESOLVED:
                plain.resolve(lex)
            else:
                here.resolve(local)

    def _grow(self, status: int) -> None:
        if status == stepping.ITEMS_FULL:
            self._items = np.zeros((2 * len(self._items), stepping.ITEM_COLUMNS), np.int32)
            self._automaton.cells.table.reserve(2 * len(self._automaton.cells.table.array))
        elif status == stepping.PENDING_FULL:
            self._pending = np.zeros((2 * len(self._pending), stepping.ITEM_COLUMNS), np.int32)
            self._items = np.zeros((max(len(self._items), len(self._pending)), stepping.ITEM_COLUMNS), np.int32)
        elif status == stepping.KEYS_FULL:
            self._keys = np.zeros((2 * len(self._keys), 4), np.int32)
        elif status == stepping.CELLS_FULL:
            self._automaton.cells.table.reserve(2 * len(self._automaton.cells.table.array))
        else:
            raise InternalError(f"the mask walk ended with status {status}")

    def _note_keys(self, trie: Trie, noted: list[list[int]], row: ThreadRow, own: int, token_bytes: list[bytes] | None) -> None:
        for node, begun, earlier, cell in noted:
            row.asks |= earlier == stepping.ASKED
            if begun < 0 and not earlier and cell == own and token_bytes is not None:
                continue  # the open key: what it may not be is taken out with its prefix
            tokens = trie.ids[trie.first[node] : trie.first[trie.end[node]]]
            if token_bytes is None or earlier or begun < 0 or cell != own:
                row.unsure.append(tokens)
                continue
            text = token_bytes[int(tokens[0])]
            row.keys.setdefault(decode_content(text[begun : int(trie.depth[node]) - 1]), []).append(tokens)


def _joined(inside: StringRow, outside: ThreadRow) -> ThreadRow:
    """The row of a string from the tokens that stay in it and those that lead out of it."""
    words = inside.inside | (outside.words if inside.closing is None else outside.words & inside.closing)
    return ThreadRow(words, outside.keys, outside.unsure)


def _item(node: int, thread: Thread, keys: int = 0) -> list[int]:
    return [node, stepping.BELOW, *thread, -1, keys]


_BYTE_TRIE = Trie.build([bytes([byte]) for byte in range(256)])
