"""How this package compiles its numba kernels: without the GIL, cached on disk, with reductions free to vectorise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Integer and exact work: no reordering of floating point."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))


def float_kernel(function: F) -> F:
    """Floating point sums may be reordered; NaN and infinities keep their meaning."""
    return cast(F, numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})(function))
