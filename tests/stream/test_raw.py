"""A raw text as the ops of one string, in any chunking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from constrained.stream import Close, Fold, Op, Open, RawTextStream


@given(st.text(), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_any_text_in_any_chunking(text: str, sizes: list[int]) -> None:
    stream = RawTextStream()
    ops: list[Op] = []
    data = text.encode()
    at = turn = 0
    while at < len(data):
        ops += stream.feed(data[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    ops += stream.finish()
    fold = Fold()
    for op in ops:
        fold.apply(op)
    assert fold.value == text == stream.value
    assert (ops[0], ops[-1]) == (Open("", "string"), Close(""))


def test_a_text_that_is_not_finished_is_open() -> None:
    stream = RawTextStream()
    stream.feed("Grüße".encode()[:-1])
    assert (stream.value, stream.open_paths) == ("Grüß", ("",))
