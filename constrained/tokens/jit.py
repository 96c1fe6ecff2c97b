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

import numba
import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

PACKAGES = ("tokens", "automaton")
KERNELS: list[Any] = []  # all that there are, in the order in which their modules were loaded


@cache
def _stamp() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            source = path.read_bytes()
            if b"@kernel" in source or path.name == "tables.py":
                digest.update(source)
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, without the GIL; the machine code is kept on disk beside the source."""
    compiled: Any = njit(cache=True, nogil=True)(function)
    compiled._cache._cache_file._source_stamp = _stamp()
    KERNELS.append(compiled)
    return compiled


@intrinsic
def _unowned(_, array):  # type: ignore[no-untyped-def]  # numba
    """The same array without its owner, for use inside one kernel call (the caller's reference keeps it alive).

    numba counts references at every call that hands on an array, by atomic operations: a hundred nanoseconds a step. An
    array without an owner costs nothing.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        make: Any = make_array
        owned = make(array)(context, builder, args[0])
        view = make(array)(context, builder)
        for name in ("nitems", "itemsize", "data", "shape", "strides"):
            setattr(view, name, getattr(owned, name))
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), codegen


unowned: Any = _unowned


def _pointer(element: Any) -> Any:
    """An intrinsic that takes an address for a pointer."""
    pointer: Any = types.CPointer

    @intrinsic
    def cast(_, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return pointer(element)(types.int64), codegen

    return cast


_int32_pointer, _int64_pointer, _uint8_pointer = _pointer(types.int32), _pointer(types.int64), _pointer(types.uint8)

_carray: Any = vars(numba)["carray"]
# How many rows an array is said to have that a kernel makes of an address: it is never asked.
_ROWS = 1 << 30


@kernel
def int32_table(address, columns):  # type: ignore[no-untyped-def]  # numba
    """The int32 [?, columns] array at an address, for use inside a kernel; unowned."""
    return _carray(_int32_pointer(address), (_ROWS, columns), np.int32)


@kernel
def int32_array(address):  # type: ignore[no-untyped-def]  # numba
    """The int32 [?] array at an address."""
    return _carray(_int32_pointer(address), (_ROWS,), np.int32)


@kernel
def int64_array(address):  # type: ignore[no-untyped-def]  # numba
    """The int64 [?] array at an address."""
    return _carray(_int64_pointer(address), (_ROWS,), np.int64)


@kernel
def int64_table(address, columns):  # type: ignore[no-untyped-def]  # numba
    """The int64 [?, columns] array at an address."""
    return _carray(_int64_pointer(address), (_ROWS, columns), np.int64)


@kernel
def uint8_array(address):  # type: ignore[no-untyped-def]  # numba
    """The uint8 [?] array at an address."""
    return _carray(_uint8_pointer(address), (_ROWS,), np.uint8)


@kernel
def address(array):  # type: ignore[no-untyped-def]  # numba
    """Where the elements of an array lie in memory."""
    return array.ctypes.data
