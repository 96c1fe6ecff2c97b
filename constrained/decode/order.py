"""The largest of many numbers by the integers of their own bits, as LLVM vectors; see `mask_kernels`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from constrained.decode.vectors import INT64, Writer

_LANES = 32


def _peak(bits: int) -> Any:
    """peak(address, count): the largest order of `count` (a multiple of 32, at least one) numbers of so many bits.

    The order of a number is its bits, with the magnitude flipped where it is negative.
    """

    @intrinsic
    def peak(_, address, count):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return _build(Writer(builder), bits, *args)

        return types.int64(types.int64, types.int64), codegen

    return peak


def _build(writer: Writer, bits: int, address: Any, count: Any) -> Any:
    b, element = writer.b, ir.IntType(bits)
    kind = ir.VectorType(element, _LANES)
    sign, magnitude = (ir.Constant(kind, [value] * _LANES) for value in (bits - 1, (1 << (bits - 1)) - 1))
    before, loop, done = b.block, b.append_basic_block("vectors"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    at, carried = b.phi(INT64), b.phi(kind)
    value = writer.load(b.add(address, b.mul(at, INT64(bits // 8))), kind, bits // 8)
    order = b.xor(value, b.and_(b.ashr(value, sign), magnitude))
    new = b.select(b.icmp_signed(">", order, carried), order, carried)
    following = b.add(at, INT64(_LANES))
    at.add_incoming(INT64(0), before)
    at.add_incoming(following, loop)
    carried.add_incoming(ir.Constant(kind, [-(1 << (bits - 1))] * _LANES), before)
    carried.add_incoming(new, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    across = b.module.declare_intrinsic(f"llvm.vector.reduce.smax.v{_LANES}i{bits}", (), ir.FunctionType(element, [kind]))
    return b.sext(b.call(across, [new]), INT64)


half_peak, full_peak = _peak(16), _peak(32)
