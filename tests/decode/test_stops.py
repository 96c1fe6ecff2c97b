"""Stop strings: whatever the cuts of the stream, the text before the first one, and nothing held back for no reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from constrained.decode.stops import StopText

TEXT = st.text(alphabet="abé\n", max_size=40)
STOPS = st.lists(st.text(alphabet="abé\n", min_size=1, max_size=4), min_size=1, max_size=4)


def fed(stops: list[str], parts: list[bytes]) -> tuple[bytes, str | None]:
    stop, shown = StopText(stops), b""
    for part in parts:
        shown += stop.feed(part)
        if stop.found is not None:
            return shown, stop.found
    return shown + stop.flush(), None


def first_stop(text: bytes, stops: list[str]) -> tuple[bytes, str | None]:
    """By brute force: byte by byte, the first end of any stop string."""
    for end in range(len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop.encode())]
        if hits:
            longest = max(hits, key=lambda stop: len(stop.encode()))
            return text[: end - len(longest.encode())], longest
    return text, None


@given(TEXT, STOPS, st.data())
def test_cuts_do_not_matter(text: str, stops: list[str], data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert fed(stops, parts) == first_stop(raw, stops)


@given(TEXT, STOPS)
def test_only_what_may_begin_a_stop_is_held_back(text: str, stops: list[str]) -> None:
    stop, shown = StopText(stops), b""
    for i in range(len(text.encode())):
        shown += stop.feed(text.encode()[i : i + 1])
        if stop.found is not None:
            return
        held = text.encode()[len(shown) : i + 1]
        assert not held or any(each.encode().startswith(held) for each in stops)


def test_a_stop_across_three_tokens() -> None:
    stop = StopText(["END", "\n\n"])
    assert [stop.feed(part) for part in (b"a E", b"N", b"x E", b"N", b"D more")] == [b"a ", b"", b"ENx ", b"", b""]
    assert stop.found == "END"
