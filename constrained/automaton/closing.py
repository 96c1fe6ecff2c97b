"""The shortest way to end a document from a state, in bytes.

Whatever a closing begins with, the closing of the state after it is its rest: so a closing can be followed token by token.
"""

from __future__ import annotations

import json
from functools import lru_cache

from constrained.automaton import strings
from constrained.automaton.automaton import Automaton, State, Thread, decode_content, open_string
from constrained.automaton.cells import NO_KEYS
from constrained.automaton.frames import (
    ArrayItem,
    ArrayNext,
    ArrayOpen,
    Close,
    Done,
    Local,
    ObjectColon,
    ObjectKey,
    ObjectNext,
    ObjectOpen,
    Value,
)
from constrained.automaton.plans import ObjectPlan
from constrained.automaton.strings import step_content, step_string
from constrained.automaton.tables import TAGS
from constrained.grammar import texts
from constrained.grammar.shortest import Shortest

# The shortest rest of a character in each state of `strings.UTF8`.
_UTF8_REST = (b"", b"\x80", b"\x80\x80", b"\x80\x80\x80", b"\xa0\x80", b"\x80\x80", b"\x90\x80\x80", b"\x80\x80\x80")
# What an escape is gone on with, in the order in which it is tried: short escapes before \u, low digits first.
_ESCAPE_BYTES = b'nrtbf"\\/u0123456789abcdefABCDEF'


_UNKNOWN = b"?"  # stands for "not computed yet" in a memo whose values may be None


def _by_length(text: bytes) -> tuple[int, bytes]:
    return len(text), text


class Closings:
    """Closings of the states of one automaton, memoised on the states."""

    def __init__(self, automaton: Automaton, shortest: Shortest) -> None:
        self._automaton = automaton
        self._shortest = shortest
        self._named: dict[tuple[int, int], bytes | None] = {}

    def of(self, state: State, history: bytes | bytearray) -> bytes:
        """The shortest bytes after which the document may end; `history` led to `state`."""
        if state.closing is not None:
            return state.closing
        with self._automaton.lock:
            closing = min((self._thread(thread, history) for thread in state.threads), key=_by_length)
            if not any(self._automaton.cells.seen[thread[5]] for thread in state.threads):
                state.closing = closing
            return closing

    def _thread(self, thread: Thread, history: bytes | bytearray) -> bytes:
        lex, _, _, _, local, cell = thread
        seen = self._automaton.cells.seen[cell]
        if lex >= strings.FREE:
            text = self._string(thread, seen, history)
        else:
            text = self._automaton.plain.closing(lex) + self._local(local, seen)
        while cell > 0:
            text += self._local(self._automaton.cells.local(cell), NO_KEYS)
            cell = self._automaton.cells.parent(cell)
        return text

    # -- local states

    def _local(self, local: int, seen: frozenset[bytes]) -> bytes:
        """The shortest rest of a local state's frame, its bracket included."""
        return self._rest(self._automaton.locals.states[local], seen)

    def _rest(self, local: Local, seen: frozenset[bytes]) -> bytes:
        shortest = self._shortest
        match local:
            case Done():
                return b""
            case Value(node, after, depth):
                return shortest.node(node, depth) + self._local(after, seen)
            case ObjectOpen(plan, depth):
                return self._members(plan, 0, depth, first=True)
            case ObjectKey():
                return self._key(local, seen)
            case ObjectColon(plan, tag, depth):
                here = self._automaton.locals.plans[plan]
                value = shortest.layout.colon + shortest.node(here.member(tag), depth)
                return value + self._members(plan, here.after(tag), depth, first=False)
            case ObjectNext(plan, position, depth):
                return self._members(plan, position, depth, first=False)
            case ArrayOpen(shape, depth):
                return shortest.array_rest(shape, 0, depth)
            case ArrayItem(shape, index, depth):
                return shortest.node(shape.item(index), depth) + shortest.array_rest(shape, index + 1, depth)
            case ArrayNext(shape, count, depth):
                return shortest.array_rest(shape, count, depth)
            case Close(byte, _):
                return bytes([byte])

    def _members(self, plan: int, position: int, depth: int, *, first: bool) -> bytes:
        here = self._automaton.locals.plans[plan]
        names = [name for name in here.names[position:] if name in here.shape.required]
        return self._shortest.object_rest(here.shape, names, depth, first=first)

    def _key(self, local: ObjectKey, seen: frozenset[bytes]) -> bytes:
        """A key has to come: the cheapest member, then what is required."""
        here = self._automaton.locals.plans[local.plan]
        options = [(texts.quote(here.names[i]), i + 1) for i in here.candidates(local.position)]
        if here.may_add(local.position):
            taken = {*seen, *(name.encode() for name in here.declared)}
            options.append((texts.quote(_fresh(b"", taken).decode()), strings.FREE_TAG))
        for tag, language in here.open_classes(local.position, local.seen):
            options.append((texts.quote(language.shortest() or ""), tag))
        closings = (key + self._rest(ObjectColon(local.plan, tag, local.depth), seen) for key, tag in options)
        return min(closings, key=_by_length)

    # -- strings

    def _string(self, thread: Thread, seen: frozenset[bytes], history: bytes | bytearray) -> bytes:
        """The shortest rest of a string, its quote and what comes behind it."""
        lex, esc, need, room, local, _ = thread
        if esc >> strings.MODE_SHIFT == strings.AFTER_BACKSLASH:
            return self._escaped_rest(thread, seen, history)
        tables = self._automaton.content
        text = b""
        while esc:
            byte, (_, lex, esc, need, room, _) = next(
                (byte, step)
                for byte in _ESCAPE_BYTES
                if (step := step_string(byte, lex, esc, need, room, *tables))[0] == strings.ALIVE
            )
            text += bytes([byte])
        options = []
        if lex >= strings.DFA:
            after = self._behind(local, strings.VALUE_TAG)
            options.append(_escaped(self._language_end(lex)) + b'"' + self._local(after, NO_KEYS))
        elif lex >= strings.TRIE:
            node = lex & strings.INDEX
            named = self._named_end(local, node)
            options += [named] if named is not None else []
            fallback = tables[0][node, strings.FALLBACK]
            if fallback and self._plan(local) is None:
                options.append(_escaped(self._fallback_end(node, need)) + b'"' + self._local(local, NO_KEYS))
            elif fallback:
                state = int(tables[0][node, strings.UTF8_STATE])
                options.append(self._free_end(state, 0, local, seen, history, text))
        else:
            options.append(self._free_end(lex & strings.INDEX, need, local, seen, history, text))
        return text + min(options, key=_by_length)

    def _escaped_rest(self, thread: Thread, seen: frozenset[bytes], history: bytes | bytearray) -> bytes:
        """After a backslash: the short escape with the shortest rest; \\u where there is none."""
        lex, esc, need, room, local, cell = thread
        options: list[bytes] = []
        for byte in _ESCAPE_BYTES:
            result, to, esc_to, need_to, room_to, _ = step_string(byte, lex, esc, need, room, *self._automaton.content)
            if result == strings.ALIVE and (esc_to == 0 or not options):
                after = (to, esc_to, need_to, room_to, local, cell)
                begun = bytes([byte])
                options.append(begun + self._string(after, seen, bytes(history) + begun))
        return min(options, key=_by_length)

    def _free_end(
        self, utf8_state: int, need: int, local: int, seen: frozenset[bytes], history: bytes | bytearray, text: bytes
    ) -> bytes:
        """End a free string; a free key must differ from the keys of its frame."""
        rest = _UTF8_REST[utf8_state]
        rest += b"a" * max(need - bool(rest), 0)
        plan = self._plan(local)
        if plan is not None and plan.additional and (taken := {*seen, *(name.encode() for name in plan.declared)}):
            written = decode_content(open_string(history) + text) + rest
            rest += _fresh(written, taken)[len(written) :]
        return _escaped(rest) + b'"' + self._local(self._behind(local, strings.FREE_TAG), seen)

    def _language_end(self, lex: int) -> bytes:
        """The shortest content that ends a string of a language; first the rest of a character that is half read."""
        if lex < strings.DFA:
            return b""
        contents = self._automaton.contents
        language = contents.language(lex & strings.INDEX)
        if language is not None:
            return (language.shortest() or "").encode()
        row = contents.table.array[lex & strings.INDEX, strings.BYTE_0 :]
        lowest = {int(to): byte for byte, to in reversed(list(enumerate(row.tolist()))) if to >= 0}
        return min((bytes([byte]) + self._language_end(to) for to, byte in lowest.items()), key=_by_length)

    def _fallback_end(self, node: int, need: int) -> bytes:
        """The shortest content that ends a string which may not be one of a trie's, from a node of it."""
        table = self._automaton.tries.table.array
        layer = [(node, b"", need)]
        while True:
            following = []
            for at, text, left in layer:
                state = int(table[at, strings.UTF8_STATE]) if at >= 0 else 0
                if state == 0 and left <= 0 and (at < 0 or table[at, strings.TAG] != strings.EXCLUDED):
                    return text
                for rest in _LETTERS if state == 0 else (_UTF8_REST[state],):
                    following.append((self._descend(at, rest), text + rest, left - 1))
            layer = following

    def _descend(self, node: int, content: bytes) -> int:
        """The trie node after `content`; -1 outside the trie."""
        lex = strings.TRIE | node if node >= 0 else -1
        for byte in content:
            lex = step_content(byte, lex, *self._automaton.content) if lex >= strings.TRIE else -1
        return lex & strings.INDEX if lex >= strings.TRIE else -1

    def _named_end(self, local: int, node: int) -> bytes | None:
        """The shortest way to end a name or enum value below a trie node; memoised for the whole subtree."""
        known = self._named.get((local, node), _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        table = self._automaton.tries.table.array
        for at in range(int(table[node, strings.END]) - 1, node - 1, -1):
            options = []
            after = self._behind(local, int(table[at, strings.TAG])) if table[at, strings.TAG] >= 0 else -1
            if after >= 0:
                options.append(b'"' + self._local(after, NO_KEYS))
            child = at + 1
            while child < table[at, strings.END]:
                end = self._named[local, child]
                if end is not None:
                    options.append(_escaped(bytes([int(table[child, strings.BYTE])])) + end)
                child = int(table[child, strings.END])
            self._named[local, at] = min(options, key=_by_length, default=None)
        return self._named[local, node]

    def _plan(self, local: int) -> ObjectPlan | None:
        state = self._automaton.locals.states[local]
        return self._automaton.locals.plans[state.plan] if isinstance(state, ObjectKey) else None

    def _behind(self, local: int, tag: int) -> int:
        """The local state behind a string that ends with `tag`."""
        here = self._automaton.locals
        base = int(here.info.array[local, TAGS])
        return local if base < 0 else int(here.tags.array[base + tag, 0])


def _fresh(begun: bytes, taken: set[bytes]) -> bytes:
    """The shortest string that begins with `begun` and is not `taken`; ASCII is added."""
    layer = [begun]
    while True:
        for candidate in layer:
            if candidate not in taken:
                return candidate
        layer = [candidate + letter for candidate in layer for letter in _LETTERS]


_LETTERS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]


@lru_cache(maxsize=4096)
def _escaped(content: bytes) -> bytes:
    """`content` as the inside of a JSON string; it may begin inside a character."""
    text = content.decode("utf-8", "surrogateescape")
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")
