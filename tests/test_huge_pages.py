"""Memory is moved onto huge pages without a change to what it holds, and nothing else is moved."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from constrained import huge_pages, warming
from constrained.huge_pages import collapse
from tests.grammars import byte_vocabulary

SIZE = 2 << 20


def _is_supported() -> bool:
    """Whether one page can be moved, asked by another way than the module's: a mapping of its own, in a process of its own."""
    code = (
        "import ctypes, mmap; "
        "m = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.write(bytes(4 << 20)); "
        "at = ctypes.addressof(ctypes.c_char.from_buffer(m)); at = -(-at // (2 << 20)) * (2 << 20); "
        "libc = ctypes.CDLL(None); libc.madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int); "
        "raise SystemExit(libc.madvise(at, 2 << 20, 25) != 0)"
    )
    return (
        sys.platform == "linux"
        and huge_pages._huge_page_size() == SIZE
        and subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    )


needs_huge_pages = pytest.mark.skipif(not _is_supported(), reason="the system gives no huge pages of 2 MB")


@contextmanager
def mapping(size: int, fileno: int = -1) -> Iterator[tuple[mmap.mmap, int]]:
    """Private memory, by itself, with its address."""
    flags = mmap.MAP_PRIVATE | (mmap.MAP_ANONYMOUS if fileno < 0 else 0)
    memory = mmap.mmap(fileno, size, flags=flags)
    memory.madvise(mmap.MADV_DONTFORK)  # or the system makes it one with what lies beside it
    cell = ctypes.c_char.from_buffer(memory)
    try:
        yield memory, ctypes.addressof(cell)
    finally:
        del cell
        memory.close()


def kilobytes(name: str, at: int) -> int:
    """A figure of the mapping that holds an address, as the system gives it."""
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            start, stop = (int(end, 16) for end in first.split("-"))
            inside = start <= at < stop
        elif inside and first == f"{name}:":
            return int(rest[0])
    raise AssertionError(f"no {name} at {at:x}")


@needs_huge_pages
def test_memory_in_use_is_moved_as_it_is() -> None:
    with mapping(4 * SIZE) as (memory, at):
        content = bytes(range(256)) * (4 * SIZE // 256)
        memory[:] = content
        before = kilobytes("AnonHugePages", at)
        assert collapse(60) >= 3 * SIZE
        assert kilobytes("AnonHugePages", at) - before >= 3 * SIZE // 1024
        assert memory[:] == content


@needs_huge_pages
def test_memory_that_is_mostly_unused_is_left_alone() -> None:
    with mapping(4 * SIZE) as (memory, at):
        for offset in range(0, 4 * SIZE, SIZE // 4):
            memory[offset] = 1
        before = kilobytes("Rss", at)
        collapse(60)
        assert kilobytes("Rss", at) == before


@needs_huge_pages
def test_the_memory_of_a_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 * SIZE))
    with path.open("r+b") as file, mapping(4 * SIZE, file.fileno()) as (memory, at):
        memory[:] = b"x" * (4 * SIZE)
        collapse(60)
        assert kilobytes("AnonHugePages", at) == 0
    assert path.read_bytes() == bytes(4 * SIZE)


@needs_huge_pages
def test_no_time_moves_nothing() -> None:
    with mapping(4 * SIZE) as (memory, at):
        memory[:] = b"x" * (4 * SIZE)
        before = kilobytes("AnonHugePages", at)
        assert collapse(-1) == 0
        assert kilobytes("AnonHugePages", at) == before


@pytest.mark.parametrize("setting", ["always madvise [never]\n", None])
def test_nothing_is_asked_where_the_system_gives_none(
    setting: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if setting is not None:
        (tmp_path / "enabled").write_text(setting, encoding="ascii")
        (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n", encoding="ascii")
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    monkeypatch.setattr(huge_pages, "_Memory", lambda: pytest.fail("the system was asked"))
    assert collapse() == 0


def test_another_system_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(huge_pages, "_Memory", lambda: pytest.fail("the system was asked"))
    assert collapse() == 0


@pytest.mark.parametrize(("error", "calls"), [(22, 2), (12, 1), (16, 1)])
def test_a_refusal_passes_quietly_and_a_lack_of_memory_ends_it(
    error: int, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Refusing:
        def used(self, first: int, stop: int, size: int) -> list[int]:
            return [first, first + size]

        def move(self, at: int, size: int) -> int:
            asked.append(at)
            return error

    (tmp_path / "enabled").write_text("always [madvise] never\n", encoding="ascii")
    (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n", encoding="ascii")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    monkeypatch.setattr(huge_pages, "_anonymous", lambda: [(0, 2 * SIZE)])
    monkeypatch.setattr(huge_pages, "_Memory", Refusing)
    assert collapse() == 0
    assert len(asked) == calls


def test_the_warm_up_moves_memory_unless_it_is_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(warming, "collapse", lambda: calls.append(True))
    vocabulary = byte_vocabulary()
    warming.warm_up(vocabulary, huge_pages=False)
    assert not calls
    warming.warm_up(vocabulary)
    assert calls == [True]
