"""`Feed`: what has been told of one run so far, for any number of readers.

A feed is a bounded list of entries and the means to make a snapshot of each choice; what the list has lost, a snapshot
replaces. Belongs to one event loop. Knows neither the engine nor transports: whoever generates or follows the run appends,
and each reader keeps its own place. A reader that waits costs the run nothing, and one that never reads again costs nothing
but what it holds itself.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Literal

from api.futures import resolve
from api.wire import one_line, to_json
from constrained.errors import EventIdError
from constrained.stream import Fold, Op, Snapshot, Text, coalesce

Kind = Literal["delta", "snapshot", "error", "done"]
TERMINAL = ("error", "done")
ENTRY_OVERHEAD_BYTES = 400
"""What an entry costs beyond its text, about: objects, operations, references."""


@dataclass(slots=True)
class Entry:
    """What is told together. Of a delta, `text` is the JSON of its ops without brackets; else it is the event's data.

    `seq` numbers its last op within the run; `mark` is how many bytes the feed has taken up to its end.
    """

    seq: int
    kind: Kind
    choice: int
    text: str
    ops: tuple[Op, ...] = ()
    mark: int = 0

    @property
    def is_terminal(self) -> bool:
        return self.kind in TERMINAL

    @property
    def data(self) -> str:
        """The JSON of the event's data."""
        return delta_data(self.seq, self.choice, self.text) if self.kind == "delta" else self.text


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What one feed may keep; past a limit the older half goes."""

    max_entries: int = 4096
    max_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a run when it begins; `start` is the JSON of its first event, `key` the API key that it belongs to."""

    run: str
    start: str
    num_choices: int = 1
    coalesce_ms: int = 0
    resumable: bool = False
    key: str | None = None


@dataclass(slots=True)
class _Kept:
    """A choice's latest snapshot as JSON, and the op that it ends with."""

    seq: int = -1
    text: str = ""


@dataclass(slots=True)
class Document:
    """What the feed knows of one choice: the op told last, how to get at its fold, and a snapshot while it is fresh."""

    fold: Callable[[], Fold] | None
    seq: int = 0
    kept: _Kept = field(default_factory=_Kept)


class Feed:
    """The entries of one run. `fold_of` gives the document of a choice as the entries so far leave it.

    `first` is the index of the first entry that is kept, `end` the one behind the last.
    """

    def __init__(
        self,
        head: Head,
        limits: FeedLimits,
        fold_of: Callable[[int], Fold] | None = None,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self.head = head
        self.seq = 0
        self.terminal: Entry | None = None
        self.num_readers = 0
        self.first = 0
        self.end = 0
        self.trimmed_seq = 0
        self.on_change: Callable[[], None] | None = None
        self._limits = limits
        self._settle = settle
        self._entries: list[Entry] = []
        self._taken = self._dropped = 0
        self._documents = [Document(_bound(fold_of, choice) if fold_of else None) for choice in range(head.num_choices)]
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def run(self) -> str:
        return self.head.run

    @property
    def num_bytes(self) -> int:
        """What the entries and the kept snapshots take, about."""
        return self._taken - self._dropped + sum(len(document.kept.text) for document in self._documents)

    @property
    def seqs(self) -> list[int]:
        """For each choice the op that was told last; 0 where there is none."""
        return [document.seq for document in self._documents]

    # -- writing

    def append(self, entry: Entry) -> None:
        """Tell one more thing; nothing may follow a terminal entry."""
        assert self.terminal is None, "nothing follows the end of a run"
        self._taken += len(entry.text) + ENTRY_OVERHEAD_BYTES
        entry.mark = self._taken
        if entry.seq > self.seq:
            self.seq = entry.seq
        self._entries.append(entry)
        self.end += 1
        if entry.kind in TERMINAL:
            self._end(entry)
        else:
            document = self._documents[entry.choice]
            if entry.seq > document.seq:
                document.seq = entry.seq
            if len(self._entries) > self._limits.max_entries or self._taken - self._dropped > self._limits.max_bytes:
                self._trim()
        if self.on_change is not None:
            self.on_change()
        if self._waiting:
            self._wake()

    def _end(self, entry: Entry) -> None:
        """What is kept of a finished run is text: the entries, or where some are gone the last snapshots."""
        if self.trimmed_seq:
            for choice in range(len(self._documents)):
                self.snapshot(choice)
        self.terminal = entry
        for document in self._documents:
            document.fold = None

    def _trim(self) -> None:
        """Drop the older half, and at least what is over the limit."""
        cut = len(self._entries) // 2
        target = self._entries[-1].mark - self._limits.max_bytes // 2
        while cut < len(self._entries) - 1 and self._entries[cut].mark < target:
            cut += 1
        dropped = self._entries[cut - 1]
        self.trimmed_seq, self._dropped = dropped.seq, dropped.mark
        del self._entries[:cut]
        self.first += cut

    def skip_to(self, trimmed_seq: int, seqs: Sequence[int]) -> None:
        """For a run that is followed, where entries up to `trimmed_seq` were missed; its documents stand at `seqs` now."""
        self.first = self.end = self.end + 1  # no reader's place is among what comes
        self._dropped = self._taken
        self._entries.clear()
        self.trimmed_seq = trimmed_seq
        for document, seq in zip(self._documents, seqs, strict=True):
            document.seq = seq
        self.seq = max(self.seq, trimmed_seq, *seqs)

    # -- reading

    def entry(self, index: int) -> Entry:
        return self._entries[index - self.first]

    def seq_before(self, index: int) -> int:
        """The number of the entry before the one at `index`, 0 where that is the first."""
        return self._entries[index - self.first - 1].seq if index > self.first else self.trimmed_seq

    def has(self, index: int) -> bool:
        """Whether nothing from `index` on has been dropped."""
        return index >= self.first

    def bytes_from(self, index: int) -> int:
        """What the entries from `index` on take."""
        before = self._entries[index - self.first - 1].mark if index > self.first else self._dropped
        return self._taken - before

    def index_after(self, seq: int) -> int | None:
        """The index of the entry behind the op `seq`; None where that was dropped, or lies inside an entry.

        Raises `EventIdError` where the run has no such op yet.
        """
        if not 0 <= seq <= self.seq:
            raise EventIdError(f"The run has told {self.seq} operations; there is nothing after {seq}", "after")
        if seq < self.trimmed_seq:
            return None
        place = bisect_right(self._entries, seq, key=lambda entry: entry.seq)
        at_edge = seq == (self._entries[place - 1].seq if place else self.trimmed_seq)
        return self.first + place if at_edge else None

    def settle(self) -> None:
        """Tell now what waits to be told together."""
        if self._settle is not None and self.terminal is None:
            self._settle()

    def snapshot(self, choice: int) -> tuple[int, str]:
        """(seq, the JSON of a snapshot event) of one choice. Costs what the document costs, once for each seq."""
        document = self._documents[choice]
        if document.kept.seq != document.seq:
            fold = self._refolded(choice) if document.fold is None else document.fold()
            text = snapshot_data(document.seq, choice, fold.snapshot())
            if self.terminal is not None:  # it is not kept: the entries say the same
                return document.seq, text
            document.kept = _Kept(document.seq, text)
        return document.seq, document.kept.text

    def _refolded(self, choice: int) -> Fold:
        """The document of a finished run, whose entries are all there."""
        fold = Fold()
        for entry in self._entries:
            if entry.choice == choice and not entry.is_terminal:
                fold = folded(fold, entry)
        return fold

    def fold_of(self, choice: int) -> Fold:
        """The document of a choice as everything up to now leaves it; to be read, not written."""
        self.settle()
        document = self._documents[choice]
        return self._refolded(choice) if document.fold is None else document.fold()

    # -- waiting

    def changed(self) -> asyncio.Future[None]:
        """Done when the next thing is told. One for each who waits, so that any of them may give up."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    async def wait(self, index: int, until: float | None = None) -> None:
        """Until there is an entry at `index`, or the loop's clock shows `until`."""
        if index < self.end:
            return
        waiter = self.changed()
        timer = None if until is None else asyncio.get_running_loop().call_at(until, resolve, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            resolve(waiter)


def _bound(fold_of: Callable[[int], Fold], choice: int) -> Callable[[], Fold]:
    return lambda: fold_of(choice)


def folded(fold: Fold, entry: Entry) -> Fold:
    """The fold after one more entry of its choice."""
    if entry.kind == "snapshot":
        return Fold.restore(Snapshot.from_json(entry.text))
    for op in entry.ops:
        fold.apply(op)
    return fold


def delta_entry(seq: int, choice: int, ops: Sequence[Op]) -> Entry:
    """An entry of ops, adjacent texts merged."""
    if len(ops) == 1:
        return Entry(seq, "delta", choice, _op_json(ops[0]), (ops[0],))
    merged = coalesce(ops)
    return Entry(seq, "delta", choice, ops_text(merged), tuple(merged))


def ops_text(ops: Sequence[Op]) -> str:
    """Their JSON without brackets."""
    return ",".join([_op_json(op) for op in ops])


def _op_json(op: Op) -> str:
    """Of text, which most deltas are, written without an encoder of objects."""
    if type(op) is not Text:
        return to_json(op.to_wire())
    return one_line(f'{{"op":"text","path":{encode_basestring(op.path)},"add":{encode_basestring(op.add)}}}')


def delta_data(seq: int, choice: int, text: str) -> str:
    return f'{{"seq":{seq},"choice":{choice},"ops":[{text}]}}'


def snapshot_data(seq: int, choice: int, snapshot: Snapshot, edited: str | None = None) -> str:
    more = {} if edited is None else {"edited": edited}
    return to_json({"seq": seq, "choice": choice, **snapshot.to_wire(), **more})
