"""`collapse`: the memory that a process holds by now, moved onto huge pages.

A first mask touches little of much memory, between other programs' work: where each 4 kB have an entry of their own, half of
its waiting for memory begins with the search for the entry. Most Linux systems give huge pages only to who asks ("madvise");
the system call that moves what is there (`MADV_COLLAPSE`) is of Linux 6.1. Everywhere else nothing happens. It knows nothing
of what the memory is for.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path
from time import thread_time

_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_MAPS = Path("/proc/self/maps")
_MADV_COLLAPSE = 25
# How much of a huge page must be in use: what is not is taken as well.
_SHARE_USED = 7 / 8
_PRESENT = b"\x01"
_SHORT = (errno.ENOMEM, errno.EBUSY)  # of the machine, of the group of processes


def collapse(limit_s: float = 1.0) -> int:
    """Move private memory onto huge pages; returns how many bytes lie on such pages now.

    It takes at most `limit_s` of processor time. Memory of files, of machine code, and what is mostly unused (stacks) stays as
    it is; so does everything where the system forbids huge pages ("never"), does not know the call, or is short of memory.
    """
    size = _huge_page_size()
    if size == 0:
        return 0
    memory, deadline, moved = _Memory(), thread_time() + limit_s, 0
    for first, stop in _anonymous():
        for at in memory.used(first, stop, size):
            if thread_time() > deadline:
                return moved
            error = memory.move(at, size)
            if error in _SHORT:
                return moved
            moved += size if error == 0 else 0
    return moved


def _huge_page_size() -> int:
    """Bytes of a huge page; 0 where there are none to be had."""
    if sys.platform != "linux":
        return 0
    try:
        allowed = (_SETTINGS / "enabled").read_text(encoding="ascii")
        return 0 if "[never]" in allowed else int((_SETTINGS / "hpage_pmd_size").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _anonymous() -> Iterator[tuple[int, int]]:
    """First and last address of each mapping that can be written, is nobody else's and of no file."""
    for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        if rights == "rw-p" and inode == "0" and (not name or name[0].startswith(("[heap]", "[anon:"))):
            first, stop = span.split("-")
            yield int(first, 16), int(stop, 16)


class _Memory:
    """The system's calls."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._mincore, self._madvise = libc.mincore, libc.madvise
        self._mincore.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p)
        self._madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)

    def used(self, first: int, stop: int, size: int) -> Iterator[int]:
        """The places of a mapping for a huge page of `size` bytes of which most is in use."""
        first, stop = -(-first // size) * size, stop // size * size
        if first >= stop:
            return
        present = ctypes.create_string_buffer((stop - first) // mmap.PAGESIZE)
        if self._mincore(first, stop - first, present) != 0:
            return  # it is gone by now
        pages, num_pages = present.raw, size // mmap.PAGESIZE
        for at in range(0, len(pages), num_pages):
            if pages.count(_PRESENT, at, at + num_pages) >= _SHARE_USED * num_pages:
                yield first + at * mmap.PAGESIZE

    def move(self, at: int, size: int) -> int:
        """Have one huge page at an address, with what is there; 0, or the number of the error."""
        return ctypes.get_errno() if self._madvise(at, size, _MADV_COLLAPSE) != 0 else 0
