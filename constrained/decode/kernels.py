"""How this package compiles its numba kernels: without the GIL, cached on disk, with reductions free to vectorise.

The cache is stamped with a digest of every file that holds a kernel: numba itself looks at a function's own file only, and
a kernel that calls one from another file would run its old code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

WRITTEN_OUT = (
    "order.py",
    "panels.py",
    "shares.py",
    "softmax.py",
    "tiles.py",
    "vectors.py",
)  # instructions that kernels are made of
F = TypeVar("F", bound=Callable[..., object])
_FLOAT_RULES = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: F) -> F:
    """Integer and exact work: no reordering of floating point."""
    return _compiled(function, fastmath=False)


def float_kernel(function: F) -> F:
    """Floating point sums may be reordered; NaN and infinities keep their meaning."""
    return _compiled(function, fastmath=_FLOAT_RULES)


def _compiled(function: F, fastmath: bool | set[str]) -> F:
    compiled: Any = numba.njit(nogil=True, cache=True, fastmath=fastmath)(function)
    compiled._cache._cache_file._source_stamp = _stamp()
    return cast(F, compiled)


@cache
def _stamp() -> str:
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in (*sorted(folder.glob("*kernels.py")), *(folder / name for name in WRITTEN_OUT)):
        digest.update(path.read_bytes())
    return digest.hexdigest()
