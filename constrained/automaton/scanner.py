"""`Scanner`: the row of one place in a string of a language, by a scan of the vocabulary; not safe between threads."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrained.automaton import characters, language_scans, strings
from constrained.automaton.characters import LONG
from constrained.automaton.contents import Contents
from constrained.automaton.language_scans import ITEM_COLUMNS, scan_ends, scan_language
from constrained.automaton.scanned_tokens import ScannedTokens
from constrained.automaton.string_rows import StringRows
from constrained.automaton.tables import Arena
from constrained.automaton.walking import Onto
from constrained.grammar.language import Language
from constrained.tokens.rows import Bits, Digest, RowStore, set_bits

# Sets of fewer characters, and shorter runs, are walked: their tokens are few.
FEW, SHORT = 24, 4
# Rows of tokens that end a string: those of most places are the same few.
MAX_CLOSINGS = 256


class Scanner:
    """Scans of one vocabulary, and the memory that they work in."""

    def __init__(self, tokens: ScannedTokens, num_words: int, free: StringRows, store: RowStore) -> None:
        self._tokens, self._store, self._num_words = tokens, store, num_words
        self._arena, self._kept = Arena(language_scans.NUM_SCAN_SLOTS), list[NDArray[Any]]()
        place = free.place(strings.FREE, 0)
        self.bare = self._row_of(place.suffixes.ids[: place.suffixes.first[1]])
        self._closing, self._closings = np.zeros(num_words, np.int32), OrderedDict[Digest, Bits]()
        known = np.zeros(2 * strings.LOOP_WORDS + 2, np.int32)
        self._known = memoryview(known).cast("B")  # type: ignore[arg-type]  # numpy's stubs hide the buffer
        self._keep(language_scans.S_NODES, tokens.nodes)
        self._keep(language_scans.S_IDS, tokens.trie.ids)
        self._keep(language_scans.S_FREE_INSIDE, self._row_of(place.inside))
        self._keep(language_scans.S_FREE_CLOSING, self._row_of(place.exit_tokens))
        self._keep(language_scans.S_BARE, self.bare)
        self._keep(language_scans.S_STACK, np.zeros((tokens.trie.max_depth + 2, ITEM_COLUMNS), np.int32))
        self._keep(language_scans.S_KNOWN, known)
        self._keep(language_scans.S_CLOSING, self._closing)
        self._keep(language_scans.S_NO_TRIES, np.zeros((1, strings.TRIE_COLUMNS), np.int32))
        self._arena.set(language_scans.S_ENDS, tokens.ends.at)
        self._arena.set(language_scans.S_NUM_WORDS, num_words)
        self._arena.set(language_scans.S_SECRET, store.secret)
        self._make_room(1024)

    def _keep(self, slot: int, array: NDArray[Any]) -> None:
        self._kept.append(array)
        self._arena.put(slot, array)

    def _row_of(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        words = np.zeros(self._num_words, np.uint32)
        set_bits(words, tokens)
        return words.view(np.int32)

    def _make_room(self, num_items: int) -> None:
        """Have memory for so many items, those of the next turn beside them."""
        self._items, self._pending = (np.zeros((num_items, ITEM_COLUMNS), np.int32) for _ in range(2))
        self._arena.set(language_scans.S_MAX_ITEMS, num_items)
        self._arena.put(language_scans.S_ITEMS, self._items)
        self._arena.put(language_scans.S_PENDING, self._pending)

    def scan(self, contents: Contents, lex: int, language: Language) -> Onto:
        """The tokens that stay inside from a place, or end with the quote; and those that may close the string.

        `language` is that of the place. Raises `FuelError`.
        """
        inside = self._store.take(self._num_words)
        self._arena.put(language_scans.S_INSIDE, inside)
        self._closing.fill(0)
        self._take_known(contents, lex, language, inside)
        contents.resolve(lex & strings.INDEX)
        self._walk(contents, lex, is_text=True)
        self._walk(contents, lex, is_text=False)
        one, two, three, four = language_scans.end_scan(self._arena.address)
        inside.flags.writeable = False
        return Onto(Bits(inside, self._arena.slots[language_scans.S_INSIDE], (one, two)), self._closing_bits((three, four)))

    def _closing_bits(self, digest: Digest) -> Bits:
        found = self._closings.get(digest)
        if found is None:
            words = self._store.take(self._num_words)
            words[:] = self._closing
            found = self._closings[digest] = self._store.bits(words.view(np.uint32))
            if len(self._closings) > MAX_CLOSINGS:
                self._closings.popitem(last=False)
        return found

    def _take_known(self, contents: Contents, lex: int, language: Language, inside: NDArray[np.int32]) -> None:
        """Set the tokens of text of which is seen at once that they stay inside a string: `language_scans.scan_language`."""
        ranges, max_len, tight = contents.run(lex & strings.INDEX)
        bits = characters.all_of(ranges)
        if ranges and ranges[-1][1] >= 0x80:
            tight = False  # bytes are no characters
        elif LONG <= max_len < characters.ENDLESS and not tight:
            tight = not self._tokens.text.some_of_length(bits, max_len + 1, language.max_len)
        if bits.bit_count() < FEW or (max_len < SHORT and not tight):
            bits, max_len, tight = 0, 0, False
            inside.fill(0)
        else:
            inside[:] = self._tokens.text.row(bits, max_len).view(np.int32)
        never = characters.TEXT & ~characters.some_of(language.characters)
        passed = bits | never | characters.NEVER | characters.QUOTE_OR_BACKSLASH
        size = 4 * strings.LOOP_WORDS
        self._known[:size] = bits.to_bytes(size, "little")
        self._known[size : 2 * size] = passed.to_bytes(size, "little")
        self._known[2 * size :] = (max_len | tight << 32).to_bytes(8, "little")

    def _walk(self, contents: Contents, lex: int, *, is_text: bool) -> None:
        """Take the tokens of text, or those with a quote or a backslash."""
        trie = self._tokens.trie if is_text else self._tokens.ends
        start = 0, int(trie.edge_first[1]), lex, int(is_text)
        self._items[0], count = start, 1
        while (count := self._turn(contents, count, is_text)) != 0:
            self._items, self._pending = self._pending, self._items
            self._arena.put(language_scans.S_ITEMS, self._items)
            self._arena.put(language_scans.S_PENDING, self._pending)
            if count < 0:  # they are too many: begin again
                self._make_room(2 * len(self._items))
                self._items[0], count = start, 1
            for missing in set(self._items[:count, 2].tolist()):
                contents.resolve(missing & strings.INDEX)

    def _turn(self, contents: Contents, count: int, is_text: bool) -> int:
        table = contents.table.array
        if is_text:
            return int(scan_language(self._arena.address, count, table))
        return int(scan_ends(self._arena.address, count, table, contents.ranges.array))
