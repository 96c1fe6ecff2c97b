"""`kernel`: numba's `njit`, cached on disk with a stamp over every file that the cached code may contain.

numba stamps a cached function with its own file only; functions that it inlines from elsewhere may change unnoticed, and
stale machine code would run. Here the stamp is a digest of all files of the packages that hold kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

PACKAGES = ("tokens", "automaton")


@cache
def _stamp() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((Path(__file__).parents[1] / package).glob("*.py")):
            source = path.read_bytes()
            if b"@kernel" in source or path.name == "tables.py":
                digest.update(source)
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, without the GIL; the machine code is kept on disk beside the source."""
    compiled = njit(cache=True, nogil=True)(function)
    compiled._cache._cache_file._source_stamp = _stamp()
    return compiled
