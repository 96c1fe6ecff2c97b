"""How threads share one computation inside compiled code: each claims the next part, and all go on when every part is done.

No thread waits for another to arrive, only for parts that were claimed. One that comes late, or whose core another process
has, finds the work done; where the counters count another run by then, it claims nothing and leaves. Waiting spins for a few
microseconds and then lets other processes run.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from constrained.decode.kernels import kernel

LINE = 8  # int64 numbers in a cache line: counters of their own lines do not disturb each other
_SPINS = 2000
_INT64 = ir.IntType(64)

RUN_SHIFT = 32  # above: the number of the run; below: parts claimed
CLAIMED = (1 << RUN_SHIFT) - 1
LAST_RUN = (1 << 31) - 1

Counters = NDArray[np.int64]  # [phases, 2, LINE]: the run and its parts claimed; parts done


# numba's own type of an intrinsic does not say that its first parameter is not passed.
_instruction: Any = intrinsic


def counters(num_phases: int) -> Counters:
    return np.zeros((num_phases, 2, LINE), np.int64)


def start_run(parts: Counters, run: int) -> None:
    """Count for another run, when all parts of the last one are done."""
    parts[:, 1, 0] = 0
    parts[:, 0, 0] = run << RUN_SHIFT


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    make: Any = make_array
    first = make(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(first, _INT64.as_pointer()), [index])


@_instruction
def fetch_add(_, array, index):  # type: ignore[no-untyped-def]
    """The number at a flat index, which is one more from then on."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", place, _INT64(1), "seq_cst")

    return types.int64(array, types.int64), codegen


@_instruction
def load(_, array, index):  # type: ignore[no-untyped-def]
    """The number at a flat index, as other threads have left it."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], args[0], args[1])
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(array, types.int64), codegen


@_instruction
def replace(_, array, index, old, new):  # type: ignore[no-untyped-def]
    """Whether the number at a flat index was `old`; it is `new` from then on."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], args[0], args[1])
        old, new = (context.cast(builder, args[k], signature.args[k], types.int64) for k in (2, 3))
        return builder.extract_value(builder.cmpxchg(place, old, new, "seq_cst", "seq_cst"), 1)

    return types.boolean(array, types.int64, old, new), codegen


@_instruction
def put(_, array, index, value):  # type: ignore[no-untyped-def]
    """Store a number where other threads see it, after all that was written before."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(context.cast(builder, args[2], signature.args[2], types.int64), place, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen


@_instruction
def _relax(_):  # type: ignore[no-untyped-def]
    """A hint to the core that this thread spins."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        if builder.module.triple.startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), codegen


@_instruction
def _let_others_run(_):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        if sys.platform != "win32":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(_declared(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


def _declared(module: Any, kind: Any, name: str) -> Any:
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, kind, name)


@kernel
def linger(spins: int) -> int:
    """Wait a moment, the longer the more often it was done; one more than `spins`."""
    if spins < _SPINS:
        _relax()
    else:
        _let_others_run()
    return spins + 1


@kernel
def claim(parts: Counters, run: int, phase: int, num_parts: int) -> int:
    """A part of the phase that is this thread's from now on; `num_parts` where none is left, or where the run is over."""
    at = phase * 2 * LINE
    while True:
        word = load(parts, at)
        part = word & CLAIMED
        if word >> RUN_SHIFT != run or part >= num_parts:
            return num_parts
        if replace(parts, at, word, word + 1):
            return int(part)


@kernel
def finish(parts: Counters, phase: int) -> None:
    """A claimed part is done."""
    fetch_add(parts, phase * 2 * LINE + LINE)


@kernel
def await_all(parts: Counters, run: int, phase: int, num_parts: int) -> None:
    """Return when all parts of the phase are done, or the run is over."""
    spins, at = 0, phase * 2 * LINE
    while load(parts, at + LINE) < num_parts and load(parts, at) >> RUN_SHIFT == run:
        spins = linger(spins)
