"""The shortest way to end a document from a state, in bytes.

Whatever a closing begins with, the closing of the state after it is its rest: so a closing can be followed token by token.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property, lru_cache

from constrained.automaton import strings
from constrained.automaton.automaton import Automaton, State, decode_content, item_value, key_content, open_string
from constrained.automaton.cells import NO_KEYS
from constrained.automaton.frames import (
    ArrayItem,
    ArrayNext,
    ArrayOpen,
    Close,
    Done,
    Either,
    Local,
    ObjectColon,
    ObjectKey,
    ObjectNext,
    ObjectOpen,
    Value,
)
from constrained.automaton.strings import step_content, step_string
from constrained.automaton.threads import Thread
from constrained.grammar import texts
from constrained.grammar.members import ObjectPlan
from constrained.grammar.nodes import Nodes
from constrained.grammar.shortest import Layout, Shortest, fresh

# The shortest rest of a character in each state of `strings.UTF8`.
_UTF8_REST = (b"", b"\x80", b"\x80\x80", b"\x80\x80\x80", b"\xa0\x80", b"\x80\x80", b"\x90\x80\x80", b"\x80\x80\x80")
# What an escape is gone on with, in the order in which it is tried: short escapes before \u, low digits first.
_ESCAPE_BYTES = b'nrtbf"\\/u0123456789abcdefABCDEF'


def _by_length(text: bytes) -> tuple[int, bytes]:
    return len(text), text


class Closings:
    """Closings of the states of one automaton, memoised on the states."""

    def __init__(self, automaton: Automaton, nodes: Nodes, *, step: int | None = None) -> None:
        """`step` as in `Layout`."""
        self._automaton = automaton
        self._nodes, self._step = nodes, step
        # (length with the rest of the frame, text, local state behind it), by local state and trie node.
        self._named: dict[tuple[int, int], tuple[int, bytes, int] | None] = {}

    @cached_property
    def _shortest(self) -> Shortest:
        return Shortest(self._nodes, Layout(self._step))

    def of(self, state: State, history: bytes | bytearray) -> bytes:
        """The shortest bytes after which the document may end; `history` led to `state`."""
        if state.closing is not None:
            return state.closing
        with self._automaton.lock:
            closing = min((self._thread(thread, history) for thread in state.threads), key=_by_length)
            varies = self._automaton.locals.endings_vary or any(
                thread[5] in self._automaton.cells.seen for thread in state.threads
            )
            if not varies:
                state.closing = closing
            return closing

    def _thread(self, thread: Thread, history: bytes | bytearray) -> bytes:
        lex, _, _, _, local, cell = thread
        seen = self._automaton.cells.keys(cell)
        if lex >= strings.FREE:
            text = self._string(thread, seen, history)
        else:
            text = self._automaton.plain.closing(lex)
            text += self._local(local, seen, history, text)
        while cell > 0:
            text += self._local(self._automaton.cells.local(cell), self._seen_below(cell), history, text)
            cell = self._automaton.cells.parent(cell)
        return text

    def _seen_below(self, cell: int) -> frozenset[bytes]:
        """The free keys of the frame below the one of `cell`."""
        return self._automaton.cells.keys(self._automaton.cells.parent(cell))

    # -- local states

    def _local(self, local: int, seen: frozenset[bytes], history: bytes | bytearray, text: bytes) -> bytes:
        """The shortest rest of a local state's frame, its bracket included; `history` and then `text` led to it."""
        return self._rest(self._automaton.locals.state(local), seen, history, text)

    def _rest(self, local: Local, seen: frozenset[bytes], history: bytes | bytearray, text: bytes) -> bytes:
        shortest, here = self._shortest, self._automaton.locals
        match local:
            case Done():
                return b""
            case Value(node, after, depth):
                value = shortest.node(node, depth)
                return value + self._local(after, seen, history, text + value)
            case ObjectOpen(plan, depth):
                return shortest.object_rest(here.plans[plan], here.plans[plan].start, seen, depth, first=True)
            case ObjectKey():
                return self._key(local, seen)
            case ObjectColon():
                return self._member(local, seen)
            case ObjectNext(plan, progress, depth):
                return shortest.object_rest(here.plans[plan], progress, seen, depth, first=False)
            case ArrayOpen(plan, depth):
                return shortest.array_rest(here.array_plans[plan], here.array_plans[plan].start, depth, first=True)
            case ArrayItem():
                return self._item(local)
            case ArrayNext(plan, standing, depth):
                items = here.array_plans[plan]
                if items.awaits_value(standing) and not items.may_close(standing):
                    standing = standing.with_value(item_value(history, text)[0])
                return shortest.array_rest(items, standing, depth, first=False)
            case Close(byte, _):
                return bytes([byte])
            case Either(places):
                return min((self._local(place, seen, history, text) for place in places), key=_by_length)

    def _item(self, local: ArrayItem) -> bytes:
        """An item has to come: the cheapest, then what is required."""
        plan, shortest = self._automaton.locals.array_plans[local.plan], self._shortest
        rests = []
        for node, after in plan.choices(local.standing):
            value = shortest.node(node, local.depth)
            known = after.with_value(texts.canonical(texts.parsed(value.decode()))) if plan.awaits_value(after) else after
            rests.append(value + shortest.array_rest(plan, known, local.depth, first=False))
        return min(rests, key=_by_length)

    def _member(self, local: ObjectColon, seen: frozenset[bytes]) -> bytes:
        """The colon, the cheapest value, then what is required; `seen` holds the key."""
        plan, shortest = self._automaton.locals.plans[local.plan], self._shortest
        rests = []
        for node, after in plan.choices(local.progress, local.tag):
            value = shortest.node(node, local.depth)
            rests.append(value + shortest.object_rest(plan, after, seen, local.depth, first=False))
        return shortest.layout.colon + min(rests, key=_by_length)

    def _key(self, local: ObjectKey, seen: frozenset[bytes]) -> bytes:
        """A key has to come: the cheapest member, then what is required."""
        plan = self._automaton.locals.plans[local.plan]
        options = [(plan.names[tag - 1], tag, local.progress) for tag in plan.candidates(local.progress)]
        if plan.may_add(local.progress):
            taken = {*seen, *(name.encode() for name in plan.names)}
            options.append((fresh(b"", taken).decode(), strings.FREE_TAG, local.progress))
        for tag, language in plan.open_classes(local.progress):
            key = language.shortest() or ""
            options.append((key, tag, replace(local.progress, seen=local.progress.seen | {key})))
        closings = []
        for key, tag, progress in options:
            there = seen | {key.encode()} if tag == strings.FREE_TAG else seen
            closings.append(texts.quote(key) + self._member(ObjectColon(local.plan, tag, progress, local.depth), there))
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
            end = text + _escaped(self._language_end(lex, room)) + b'"'
            options.append(self._behind_class(end, self._behind(local, strings.VALUE_TAG), seen, history))
        elif lex >= strings.TRIE:
            node = lex & strings.INDEX
            named = self._named_end(local, node)
            if named is not None:
                end, after = text + named[0], named[1]
                options.append(end + self._local(after, seen, history, end))
            fallback = tables[0][node, strings.FALLBACK]
            if fallback and self._plan(local) is None:
                end = text + _escaped(self._fallback_end(node, need)) + b'"'
                options.append(end + self._local(local, seen, history, end))
            elif fallback and self._behind(local, strings.FREE_TAG) >= 0:
                state = int(tables[0][node, strings.UTF8_STATE])
                options.append(self._free_end(state, 0, local, seen, history, text))
        else:
            options.append(self._free_end(lex & strings.INDEX, need, local, seen, history, text))
        return min(options, key=_by_length)

    def _behind_class(self, end: bytes, after: int, seen: frozenset[bytes], history: bytes | bytearray) -> bytes:
        """`end` ends a string of a language; what follows knows it, if it is the key of a class."""
        known = self._automaton.locals.with_key(after, key_content(end, len(end) - 1, history)[0])
        return end + self._local(after if known is None else known, seen, history, end)

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
        plan, behind = self._plan(local), self._behind(local, strings.FREE_TAG)
        if plan is None:
            end = text + _escaped(rest) + b'"'
            return end + self._local(behind, seen, history, end)
        of_class = isinstance(colon := self._automaton.locals.state(behind), ObjectColon) and plan.is_of_class(colon.tag)
        if of_class:
            return self._behind_class(text + _escaped(rest) + b'"', behind, seen, history)
        written = decode_content(open_string(history) + text) + rest
        key = fresh(written, {*seen, *(name.encode() for name in plan.names)})
        end = text + _escaped(rest + key[len(written) :]) + b'"'
        return end + self._local(behind, seen | {key}, history, end)

    def _language_end(self, lex: int, room: int) -> bytes:
        """The shortest content that ends a string of a language; first the rest of a character that is half read.

        `room` characters may come, that one among them.
        """
        if lex < strings.DFA:
            return b""
        contents = self._automaton.contents
        language = contents.language(lex & strings.INDEX)
        if language is not None:
            return (language.shortest() or "").encode()
        row = contents.table.array[lex & strings.INDEX, strings.BYTE_0 :]
        lowest = {int(to): byte for byte, to in reversed(list(enumerate(row.tolist()))) if to >= 0}
        left = {to: room - contents.begins(to) if to >= strings.DFA else room for to in lowest}
        fitting = [(to, byte) for to, byte in lowest.items() if contents.needed(to) <= left[to]]
        return min((bytes([byte]) + self._language_end(to, left[to]) for to, byte in fitting), key=_by_length)

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

    def _named_end(self, local: int, node: int) -> tuple[bytes, int] | None:
        """The end of a name or enum value below a trie node, and the local state behind it, on the shortest way to the end of
        the frame; memoised for the whole subtree."""
        self._measure_names(local, node)
        best = self._named[local, node]
        return None if best is None else best[1:]

    def _measure_names(self, local: int, node: int) -> None:
        if (local, node) in self._named:
            return
        table = self._automaton.tries.table.array
        for at in range(int(table[node, strings.END]) - 1, node - 1, -1):
            options = []
            after = self._behind(local, int(table[at, strings.TAG])) if table[at, strings.TAG] >= 0 else -1
            if after >= 0:
                options.append((1 + self._rest_len(after), b'"', after))
            child = at + 1
            while child < table[at, strings.END]:
                end = self._named[local, child]
                if end is not None:
                    byte = _escaped(bytes([int(table[child, strings.BYTE])]))
                    options.append((len(byte) + end[0], byte + end[1], end[2]))
                child = int(table[child, strings.END])
            self._named[local, at] = min(options, default=None)

    def _rest_len(self, local: int) -> int:
        """The length of the rest behind a string; nothing where it depends on the string, but not on which of several."""
        here = self._automaton.locals
        state = here.state(local)
        if isinstance(state, ArrayNext) and here.array_plans[state.plan].awaits_value(state.standing):
            return 0
        return len(self._rest(state, NO_KEYS, b"", b""))

    def _plan(self, local: int) -> ObjectPlan | None:
        state = self._automaton.locals.state(local)
        return self._automaton.locals.plans[state.plan] if isinstance(state, ObjectKey) else None

    def _behind(self, local: int, tag: int) -> int:
        """The local state behind a string that ends with `tag`."""
        return self._automaton.locals.behind(local, tag)


_LETTERS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]


@lru_cache(maxsize=4096)
def _escaped(content: bytes) -> bytes:
    """`content` as the inside of a JSON string; it may begin inside a character."""
    text = content.decode("utf-8", "surrogateescape")
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")
