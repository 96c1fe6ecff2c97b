"""A small run of the service's benchmark; a stream that is wrong must show."""

from __future__ import annotations

import json

import pytest

from benchmarks import service
from benchmarks.service_document import Expected, document, tokens
from benchmarks.service_load import Stream

SMALL = [
    "--streams",
    "3",
    "--rounds",
    "1",
    "--steps",
    "15",
    "--interval-ms",
    "10",
    "--long",
    "20000",
    "--wire-interval-ms",
    "1",
]


def test_the_command_prints_a_table_and_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert service.main(SMALL) == 0
    *table, last = capsys.readouterr().out.splitlines()
    assert any("deltas/s on one core" in line for line in table)
    data = json.loads(last)
    assert data["wrong"] == 0
    assert data["throughput"]["ours_us"] > 0
    assert data["throughput"]["bare_us"] > 0
    assert set(data["length"]) == {"10000", "20000"}
    assert data["wire"]["ours_bytes"] < data["wire"]["ours_uncoalesced_bytes"] < data["wire"]["chat_bytes"]


def test_a_stream_is_wrong_where_anything_differs() -> None:
    cut = tokens(document(400), [4] * 40)
    expected = Expected.of(cut)
    body = "".join(
        f'event: delta\ndata: {{"seq":{number},"choice":0,"ops":{json.dumps([op.to_wire() for op in ops])}}}\n\n'
        for number, ops in enumerate(expected.ops)
        if ops
    )

    def stream(text: str) -> Stream:
        data = text.encode()
        chunk = f"HTTP/1.1 200 OK\r\n\r\n{len(data):x}\r\n".encode() + data + b"\r\n"
        return Stream(b"", [(0.0, chunk[:100]), (1.0, chunk[100:])])

    assert service.wrong_streams([stream(body)], expected) == 0
    wrong = body.replace("Part", "Parts")
    assert service.wrong_streams([stream(wrong)], expected) == 1
    assert service.wrong_streams([stream(body + body.split("\n\n")[-2] + "\n\n")], expected) == 1
