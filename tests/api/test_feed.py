"""A feed and its readers: any place to resume, any lag, any trimming gives the same document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.feed import Entry, Feed, FeedLimits, Head, delta_entry
from api.reader import Reader, ReaderLimits, Told
from constrained.errors import EventIdError
from constrained.stream import DeltaStream, Fold, Snapshot, from_wire

WIDE = FeedLimits()
DONE = '{"seq":0}'


class Writer:
    """Writes documents, one for each choice, piece by piece in turn into a feed."""

    def __init__(self, *texts: str, piece: int = 3, limits: FeedLimits = WIDE, coalesce_ms: int = 0) -> None:
        self.streams = [DeltaStream() for _ in texts]
        self.feed = Feed(
            Head("run_1", '{"run":"run_1"}', len(texts), coalesce_ms), limits, lambda choice: self.streams[choice].fold
        )
        longest = max(map(len, texts))
        self.pieces = [
            (choice, text[at : at + piece].encode())
            for at in range(0, longest, piece)
            for choice, text in enumerate(texts)
            if at < len(text)
        ]

    def write(self, num_pieces: int | None = None) -> None:
        now, self.pieces = self.pieces[:num_pieces], self.pieces[num_pieces or len(self.pieces) :]
        for choice, piece in now:
            ops = self.streams[choice].feed(piece)
            if ops:
                self.feed.append(delta_entry(self.feed.seq + len(ops), choice, ops))

    def end(self) -> None:
        self.feed.append(Entry(self.feed.seq + 1, "done", 0, DONE))


class Client:
    """Folds what a reader gets, and checks the order."""

    def __init__(self, num_choices: int = 1) -> None:
        self.folds = [Fold() for _ in range(num_choices)]
        self.place: int | None = None
        self.names: list[str] = []
        self.seq = 0

    def take(self, event: Told) -> None:
        self.names.append(event.name)
        self.place = event.place
        data = json.loads(event.data)
        if event.name in ("delta", "snapshot"):
            assert data["seq"] > self.seq
            self.seq = data["seq"]
        if event.name == "delta":
            for op in data["ops"]:
                self.folds[data["choice"]].apply(from_wire(op))
        elif event.name == "snapshot":
            self.folds[data["choice"]] = Fold.restore(Snapshot.from_wire(data))

    @property
    def values(self) -> list[Any]:
        return [fold.value for fold in self.folds]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


async def read_all(reader: Reader, client: Client) -> None:
    async for batch in reader.batches(list):
        for event in batch:
            client.take(event)


DOCUMENT = '{"name":"Ada Lovelace","tags":["a","b",{"deep":[1,2,3]}],"text":"' + "lorem ipsum " * 20 + '","end":null}'
OTHER = '[true,"' + "x" * 100 + '",{"k":1.5}]'


@given(
    stops=st.lists(st.integers(1, 30), max_size=4),
    limits=st.sampled_from([WIDE, FeedLimits(max_entries=4), FeedLimits(max_bytes=3000), FeedLimits(max_entries=1)]),
    queue=st.sampled_from([ReaderLimits(), ReaderLimits(max_entries=2), ReaderLimits(max_bytes=900)]),
    coalesce_ms=st.sampled_from([0, 16]),
    other=st.booleans(),
)
def test_any_resume_point_and_lag_fold_to_the_same(
    stops: list[int], limits: FeedLimits, queue: ReaderLimits, coalesce_ms: int, other: bool
) -> None:
    """Invariants 8 and 9, and the first: a client that breaks off anywhere and resumes has the whole document at the end."""
    texts = [DOCUMENT, OTHER] if other else [DOCUMENT]

    async def scenario() -> None:
        writer = Writer(*texts, limits=limits, coalesce_ms=coalesce_ms)
        client = Client(len(texts))
        for stop in stops:
            reading = asyncio.create_task(read_all(Reader(writer.feed, queue, client.place), client))
            for _ in range(stop):
                writer.write(1)
                if stop % 2:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
            assert reading.cancelled()
        writer.write()
        writer.end()
        await read_all(Reader(writer.feed, queue, client.place), client)
        assert client.values == [json.loads(text) for text in texts]
        assert client.names[0] == "start"
        assert client.names.count("start") == 1
        assert client.names[-1] == "done"
        assert client.names.count("done") == 1

    run(scenario)


def test_several_readers_go_their_own_way() -> None:
    async def scenario() -> None:
        writer = Writer(DOCUMENT)
        clients = [Client() for _ in range(3)]
        reading = [asyncio.create_task(read_all(Reader(writer.feed, ReaderLimits()), client)) for client in clients]
        while writer.pieces:
            writer.write(1)
            await asyncio.sleep(0)
        writer.end()
        await asyncio.gather(*reading)
        assert [client.values for client in clients] == [[json.loads(DOCUMENT)]] * 3
        assert all("snapshot" not in client.names for client in clients)

    run(scenario)


def test_who_joins_late_gets_the_document_at_once() -> None:
    async def scenario() -> None:
        writer = Writer(DOCUMENT)
        writer.write(20)
        client = Client()
        reading = asyncio.create_task(read_all(Reader(writer.feed, ReaderLimits()), client))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert client.names == ["start", "snapshot"]
        assert client.values == [writer.streams[0].value]
        writer.write()
        writer.end()
        await reading
        assert client.values == [json.loads(DOCUMENT)]

    run(scenario)


def test_a_resume_replays_what_the_log_still_has_however_long_it_is() -> None:
    async def scenario() -> None:
        writer = Writer(DOCUMENT)
        writer.write()
        writer.end()
        client = Client()
        await read_all(Reader(writer.feed, ReaderLimits(max_entries=1), after=0), client)
        assert set(client.names) == {"delta", "done"}
        assert client.values == [json.loads(DOCUMENT)]

    run(scenario)


def test_a_reader_that_falls_behind_gets_one_snapshot_in_place_of_the_backlog() -> None:
    async def scenario() -> None:
        writer = Writer(DOCUMENT)
        client = Client()
        batches = Reader(writer.feed, ReaderLimits(max_entries=4)).batches(list)
        for event in await anext(batches):
            client.take(event)
        writer.write(1)
        for event in await anext(batches):
            client.take(event)
        writer.write(30)
        for event in await anext(batches):
            client.take(event)
        assert client.names == ["start", "delta", "snapshot"]
        assert client.values == [writer.streams[0].value]

    run(scenario)


def test_text_that_waits_together_goes_out_merged_and_structure_keeps_its_order() -> None:
    async def scenario() -> None:
        writer = Writer('["' + "abc" * 10 + '",1,2]', coalesce_ms=16)
        reader = Reader(writer.feed, ReaderLimits(), after=0)
        writer.write()
        writer.end()
        (batch,) = [batch async for batch in reader.batches(list)]
        ops = json.loads(batch[0].data)["ops"]
        assert [(op["op"], op["path"]) for op in ops] == [
            ("open", ""), ("open", "/0"), ("text", "/0"), ("close", "/0"), ("set", "/1"), ("set", "/2"), ("close", ""),
        ]  # fmt: skip
        assert ops[2]["add"] == "abc" * 10

    run(scenario)


def test_the_feed_stays_within_its_bounds() -> None:
    limits = FeedLimits(max_entries=8, max_bytes=8_000)
    writer = Writer('"' + "x" * 50_000 + '"', piece=100, limits=limits)
    while writer.pieces:
        writer.write(1)
        assert writer.feed.end - writer.feed.index_after(writer.feed.seq) == 0  # type: ignore[operator]
        assert writer.feed.num_bytes <= limits.max_bytes + 1000
    assert not writer.feed.has(0)


def test_a_finished_feed_keeps_text_alone() -> None:
    for limits in (WIDE, FeedLimits(max_entries=4)):
        writer = Writer(DOCUMENT, limits=limits)
        writer.write()
        writer.end()
        writer.streams.clear()
        seq, text = writer.feed.snapshot(0)
        assert seq == writer.feed.seq - 1
        assert json.loads(text)["value"] == json.loads(DOCUMENT)


@pytest.mark.parametrize("after", [-1, 10_000])
def test_a_place_that_the_run_has_not_reached_is_refused(after: int) -> None:
    writer = Writer(DOCUMENT)
    writer.write()
    with pytest.raises(EventIdError):
        Reader(writer.feed, ReaderLimits(), after)


def test_a_place_inside_an_entry_is_answered_by_a_snapshot() -> None:
    async def scenario() -> None:
        writer = Writer("[1,2,3,4]", piece=100)
        writer.write()
        writer.end()
        assert writer.feed.seq == 7
        client = Client()
        await read_all(Reader(writer.feed, ReaderLimits(), after=2), client)
        assert client.names == ["snapshot", "done"]
        assert client.values == [[1, 2, 3, 4]]

    run(scenario)


def test_of_several_snapshots_only_the_last_moves_the_place() -> None:
    """Who breaks off between them must not go on from behind what it has not got."""

    async def scenario() -> None:
        writer = Writer(DOCUMENT, OTHER)
        writer.write(10)
        batches = Reader(writer.feed, ReaderLimits()).batches(list)
        await anext(batches)
        first, second = await anext(batches)
        assert (first.name, second.name) == ("snapshot", "snapshot")
        assert first.place == 0
        assert second.place == writer.feed.seq
        assert json.loads(first.data)["seq"] < json.loads(second.data)["seq"]

    run(scenario)


def test_waiting_ends_at_its_time_and_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        writer = Writer(DOCUMENT)
        await writer.feed.wait(0, asyncio.get_running_loop().time())
        waiting = asyncio.create_task(writer.feed.wait(0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        writer.write(1)
        await writer.feed.wait(0)

    run(scenario)
