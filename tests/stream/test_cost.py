"""A delta costs the same at any place in the document: counted in calls and in memory, not in time."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import pytest

from constrained.stream import DeltaStream

from .fake_schema import FakeLocation

ROWS = {
    "type": "array",
    "items": {"type": "object", "properties": {"level": {"enum": ["low", "lower"]}}, "required": ["level"]},
}

# A document's beginning, and what then repeats without end.
ENDLESS = {
    "one long string": (b'{"k": "', b"some text \xc3\xa9 \\u00e9 \\ud83d\\ude00", True),
    "one long key": (b'{"', b"some text \\n", True),
    "a long array": (b"[0", b", 12.5", True),
    "a long array of objects": (b'[{"level": "low"}', b', {"level": "lower"}', ROWS),
    "white space": (b"[", b" \n\t", True),
}


def _calls(action: Callable[[], object]) -> int:
    """How many calls of Python or C functions `action` makes."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what it would free, and call for that, is not of the action
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def _peak_bytes(action: Callable[[], object]) -> int:
    """The memory that `action` takes at its peak beyond what was there."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    action()
    return tracemalloc.get_traced_memory()[1] - before


def _fed(beginning: bytes, repeated: bytes, schema: Any, times: int) -> DeltaStream:
    stream = DeltaStream(FakeLocation(schema))
    stream.feed(beginning)
    for _ in range(times):
        stream.feed(repeated)
    return stream


@pytest.mark.parametrize("name", ENDLESS)
def test_calls_per_delta_do_not_grow(name: str) -> None:
    beginning, repeated, schema = ENDLESS[name]
    early, late = (_fed(beginning, repeated, schema, times) for times in (100, 2_000))
    assert _calls(lambda: early.feed(repeated)) == _calls(lambda: late.feed(repeated))


@pytest.mark.parametrize("name", ENDLESS)
def test_memory_per_delta_does_not_grow(name: str) -> None:
    beginning, repeated, schema = ENDLESS[name]
    tracemalloc.start()
    try:
        early, late = (_typical_peak(_fed(beginning, repeated, schema, times), repeated) for times in (100, 2_000))
    finally:
        tracemalloc.stop()
    assert late <= early + 512


def _typical_peak(stream: DeltaStream, repeated: bytes) -> float:
    """The median, because now and then a list or a dict makes room for many more."""
    gc.collect()
    return median(_peak_bytes(lambda: stream.feed(repeated)) for _ in range(31))


@pytest.mark.parametrize("name", ENDLESS)
def test_calls_per_byte_are_bounded(name: str) -> None:
    beginning, repeated, schema = ENDLESS[name]
    stream = _fed(beginning, repeated, schema, 100)
    parts = [repeated[i : i + 1] for i in range(len(repeated))]
    assert _calls(lambda: _feed_all(stream, parts)) <= 100 * len(repeated)


def _feed_all(stream: DeltaStream, parts: Iterable[bytes]) -> None:
    for part in parts:
        stream.feed(part)


def test_the_stream_loads_nothing_heavy() -> None:
    heavy = ("torch", "numba", "numpy", "pydantic", "fastapi", "transformers")
    code = f"import sys, constrained.stream; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
