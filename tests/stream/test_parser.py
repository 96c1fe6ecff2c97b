"""Edge cases of the parser: numbers, strings, nesting, malformed bytes, ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import InternalError, StreamError
from constrained.stream import Close, DeltaStream, Op, Open, Set, Text, coalesce

from .documents import fold_ops, same, single_bytes, stream_ops


def feed_all(stream: DeltaStream, parts: list[bytes]) -> None:
    for part in parts:
        stream.feed(part)


def test_one_document_op_by_op() -> None:
    assert stream_ops([b'{"a": ["x", 1], ', b'"b": {}}']) == [
        Open("", "object"),
        Open("/a", "array"),
        Open("/a/0", "string"),
        Text("/a/0", "x"),
        Close("/a/0"),
        Set("/a/1", 1),
        Close("/a"),
        Open("/b", "object"),
        Close("/b"),
        Close(""),
    ]


@pytest.mark.parametrize(
    ("lexeme", "value", "raw"),
    [
        ("0", 0, None),
        ("-0", 0, None),
        ("-0.0", -0.0, None),
        ("12", 12, None),
        ("-1.5e-3", -0.0015, None),
        ("0.1", 0.1, None),
        ("1E5", 100000.0, None),
        (str(2**53), 2**53, None),
        (str(2**53 + 1), 2**53 + 1, str(2**53 + 1)),
        (str(2**70), 2**70, None),
        (str(2**70 + 1), 2**70 + 1, str(2**70 + 1)),
        ("0.1000000000000000000001", 0.1, "0.1000000000000000000001"),
        ("1e400", float("inf"), "1e400"),
        ("-1e400", float("-inf"), "-1e400"),
        ("1e-400", 0.0, "1e-400"),
        ("0e400", 0.0, None),
        ("5e-324", 5e-324, None),
        ("1e99999999999999999999", float("inf"), "1e99999999999999999999"),
        ("1e-99999999999999999999", 0.0, "1e-99999999999999999999"),
        ("-0e99999999999999999999", -0.0, None),
    ],
)
def test_numbers(lexeme: str, value: float, raw: str | None) -> None:
    for document, path in ((lexeme, ""), (f"[{lexeme}]", "/0"), (f'{{"n":{lexeme} }}', "/n")):
        for parts in ([document.encode()], single_bytes(document.encode())):
            [found] = [op for op in stream_ops(parts) if isinstance(op, Set)]
            assert same(found, Set(path, value, raw))
            assert same(found.value, json.loads(lexeme))


def test_integers_of_any_length_are_exact() -> None:
    lexeme = "-" + "7" * 10_000
    [op] = stream_ops([lexeme.encode()])
    assert isinstance(op, Set)
    assert op.value == -7 * (10**10_000 - 1) // 9
    assert op.raw == lexeme


def test_a_number_at_the_root_ends_with_the_document() -> None:
    stream = DeltaStream()
    assert stream.feed(b"12") == []
    assert not stream.is_complete
    assert stream.feed(b"3") == []
    assert stream.finish() == [Set("", 123)]
    assert stream.is_complete
    assert stream.finish() == []


def test_a_number_is_set_when_the_byte_behind_it_comes() -> None:
    stream = DeltaStream()
    assert stream.feed(b"[1") == [Open("", "array")]
    assert stream.feed(b"2.") == []
    assert stream.feed(b"5e1") == []
    assert stream.feed(b"\n") == [Set("/0", 125.0)]


@pytest.mark.parametrize("literal", ["true", "false", "null"])
def test_literals_over_every_cut(literal: str) -> None:
    for cut in range(len(literal) + 1):
        assert stream_ops([literal[:cut].encode(), literal[cut:].encode()]) == [Set("", json.loads(literal))]


@pytest.mark.parametrize(
    "spelling",
    [
        "é",
        "€",
        "😀",
        "\\u00e9",
        "\\uD83D\\uDE00",
        "\\ud83d\\ude00\\ud83d\\ude00",
        "\\n",
        '\\"',
        "\\\\",
        "\\/",
        "\\u0000",
        "a😀b",
    ],
)
def test_a_character_is_given_out_whole_over_every_cut(spelling: str) -> None:
    document = f'"{spelling}"'.encode()
    whole = json.loads(document)
    for cut in range(len(document) + 1):
        parts = [document[:cut], document[cut:]]
        ops = stream_ops(parts)
        assert coalesce(ops) == [Open("", "string"), Text("", whole), Close("")]
    pieces = [op.add for op in stream_ops(single_bytes(document)) if isinstance(op, Text)]
    assert pieces == list(whole)


@pytest.mark.parametrize("document", ["{}", "[]", '""', '{"":{"":""}}', "[[],{},[{}]]", " [ ] ", '{"a" : [ ]\r\n}\t'])
def test_empty_things(document: str) -> None:
    assert same(fold_ops(stream_ops(single_bytes(document.encode()))).value, json.loads(document))


def test_an_empty_string_has_no_text() -> None:
    assert stream_ops([b'""']) == [Open("", "string"), Close("")]


def test_empty_chunks_do_nothing() -> None:
    stream = DeltaStream()
    assert stream.feed(b"") == []
    assert stream.feed(b"[") == [Open("", "array")]
    assert stream.feed(b"") == []


def test_nesting_is_not_bounded_by_the_interpreters_stack() -> None:
    depth = 2_000
    stream = DeltaStream()
    opened = stream.feed(b'[{"k":' * depth)
    assert len(opened) == 2 * depth
    assert len(stream.open_paths) == 2 * depth
    snapshot = stream.fold.snapshot()
    assert snapshot.to_wire()["open"][-1] == "/0/k" * (depth - 1) + "/0"
    stream.feed(b"7" + b"}]" * depth)
    stream.finish()
    value: Any = stream.value
    for _ in range(depth):
        value = value[0]["k"]
    assert value == 7


def test_the_value_is_live_while_a_string_grows() -> None:
    stream = DeltaStream()
    stream.feed(b'{"a": "x')
    assert stream.value == {"a": "x"}
    stream.feed(b"y")
    assert stream.value == {"a": "xy"}
    assert stream.open_paths == ("", "/a")
    stream.feed(b'z"')
    assert stream.value == {"a": "xyz"}
    assert stream.open_paths == ("",)


@pytest.mark.parametrize(
    ("document", "offset", "message"),
    [
        (b"x", 0, "does not begin a value"),
        (b" \xef\xbb\xbf1", 1, "does not begin a value"),
        (b"[,", 1, "does not begin a value"),
        (b"[1,]", 3, "does not begin a value"),
        (b"[1 2", 3, "',' or the end of the array"),
        (b'{"a":1]', 6, "',' or the end of the object"),
        (b"{1", 1, "a key or } is expected"),
        (b'{"a":1,}', 7, "a key is expected"),
        (b'{"a" 1', 5, "':' is expected"),
        (b"[] ]", 3, "after the end of the document"),
        (b"[nul!", 1, "null"),
        (b"[truE", 1, "true"),
        (b"[01,", 1, "is not a JSON number"),
        (b"[-]", 1, "is not a JSON number"),
        (b"[1.]", 1, "is not a JSON number"),
        (b"[.5]", 1, "does not begin a value"),
        (b"[1e+]", 1, "is not a JSON number"),
        (b'{"a":1,"b":2,"\\u0061":3', 13, "duplicate key 'a'"),
        (b'["a\x1f', 3, "must be escaped"),
        (b'["\\x', 3, "does not follow a backslash"),
        (b'["\\u12g', 6, "not a hexadecimal digit"),
        (b'["\\ud83d"', 8, "high surrogate"),
        (b'["\\ud83d\\n', 9, "high surrogate"),
        (b'["\\ud83d\\u0041', 13, "does not complete a surrogate pair"),
        (b'["\\ude00', 7, "does not complete a surrogate pair"),
        (b'["\xff', 2, "not UTF-8"),
        (b'["a\xc3"', 3, "not UTF-8"),
        (b'["\xed\xa0\x80', 2, "not UTF-8"),
        (b'["\xf0\x9f\x98\\', 2, "not UTF-8"),
    ],
)
def test_malformed_bytes_name_their_offset_over_any_chunking(document: bytes, offset: int, message: str) -> None:
    for parts in ([document], single_bytes(document)):
        stream = DeltaStream()
        with pytest.raises(StreamError, match=message) as caught:
            feed_all(stream, parts)
        assert caught.value.offset == offset
        assert f"(byte {offset})" in str(caught.value)
        assert isinstance(caught.value, InternalError)
        with pytest.raises(StreamError, match="failed before"):
            stream.feed(b" ")


@pytest.mark.parametrize("document", [b"", b" ", b"[", b'{"a"', b'{"a":', b'"a', b'"\\', b"tru", b"-", b"1e", b"[1", b'{"a":1'])
def test_a_document_that_ends_early(document: bytes) -> None:
    stream = DeltaStream()
    stream.feed(document)
    assert not stream.is_complete
    with pytest.raises(StreamError, match=r"ends early|not a JSON number"):
        stream.finish()


@given(st.binary(max_size=12) | st.text('{}[]",:\\u0019aeE.+-tfn ', max_size=12).map(str.encode))
def test_any_bytes_are_read_as_json_reads_them_or_refused(data: bytes) -> None:
    try:
        ops: list[Op] = stream_ops(single_bytes(data))
    except StreamError:
        _assert_refused(data)
    else:
        assert same(fold_ops(ops).value, json.loads(data))


def _assert_refused(data: bytes) -> None:
    """`json` refuses it too, but for what it takes beyond RFC 8259 or the protocol leaves out."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
        json.dumps(value, ensure_ascii=False).encode()  # fails on a lone surrogate
    except (ValueError, RecursionError):
        return
    raise AssertionError(f"{data!r} is JSON: {value!r}")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _no_constants(name: str) -> None:
    raise ValueError(name)
