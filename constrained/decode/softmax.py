"""The softmax's two passes over one row of scores as LLVM vectors: the peak, then powers of two relative to it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from constrained.decode.vectors import FLOATS, INT32, INT64, VECTOR, Writer

_LEAST = -126.0
# numba's own type of an intrinsic does not say that its first parameter is not passed.
_instruction: Any = intrinsic


@_instruction
def peak_of(_, row, count):  # type: ignore[no-untyped-def]
    """The largest of `count` (a multiple of the vector, at least one) float32 at an address."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        writer = Writer(builder)
        row, count = args

        def step(address: Any, peak: Any) -> Any:
            value = writer.load(address, FLOATS, 4)
            return builder.select(builder.fcmp_ordered(">", value, peak), value, peak)

        peaks = _loop(writer, row, count, writer.floats(-1e30), step)
        return _across(writer, peaks, "max")

    return types.float32(types.int64, types.int64), codegen


@_instruction
def raise_from(_, row, count, peak):  # type: ignore[no-untyped-def]
    """In place 2 ** (x - peak), 0 where that is below the normal numbers; the sum of them."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        writer = Writer(builder)
        row, count, peak = args
        peaks = writer.spread(peak)

        def step(address: Any, sums: Any) -> Any:
            exponent = builder.fsub(writer.load(address, FLOATS, 4), peaks)
            is_normal = builder.fcmp_ordered(">", exponent, writer.floats(_LEAST))
            power = builder.select(is_normal, writer.exp2(exponent), writer.floats(0.0))
            writer.store(power, address, 4)
            return builder.fadd(sums, power)

        return _across(writer, _loop(writer, row, count, writer.floats(0.0), step), "add")

    return types.float32(types.int64, types.int64, types.float32), codegen


def _loop(writer: Writer, row: Any, count: Any, start: Any, step: Any) -> Any:
    b = writer.b
    before, loop, done = b.block, b.append_basic_block("vectors"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    at, carried = b.phi(INT64), b.phi(FLOATS)
    new = step(b.add(row, b.mul(at, INT64(4))), carried)
    following = b.add(at, INT64(VECTOR))
    at.add_incoming(INT64(0), before)
    at.add_incoming(following, loop)
    carried.add_incoming(start, before)
    carried.add_incoming(new, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    return new


def _across(writer: Writer, values: Any, operation: str) -> Any:
    """One number of a vector's: half by half."""
    b = writer.b
    width = VECTOR
    while width > 1:
        width //= 2
        order = ir.Constant(ir.VectorType(INT32, VECTOR), [(i + width) % VECTOR for i in range(VECTOR)])
        other = b.shuffle_vector(values, values, order)
        if operation == "add":
            values = b.fadd(values, other)
        else:
            values = b.select(b.fcmp_ordered(">", values, other), values, other)
    return b.extract_element(values, INT32(0))
