"""One small matrix product as LLVM vectors: sums += coefficients times a block of the KV memory, widened on the way.

numba's own loops read the block anew for every query head and check at run time that sums and block do not overlap; here
a row of the block is read and widened once for all lanes, and the sums stay in registers from the first row to the last.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from constrained.decode.vectors import Writer

COLUMNS = 32
_VECTOR = 16
_FLAGS = ["contract"]


def _panel(num_lanes: int) -> Any:
    """panel(matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead) of `num_lanes`.

    sums[lane, offset + column : ...] (+)= the sum over i of coefficients[lane, first + i] * matrix[block, head, i, column :]
    for `COLUMNS` columns and the lanes from `lane` on; the old sums count unless `is_fresh`. The matrix holds int32 (the bits
    of float32) or uint16 (bfloat16) and is C-contiguous in its last axis, as are the float32 coefficients and sums. What lies
    `ahead` bytes further on comes into the cache meanwhile.
    """

    @intrinsic
    def panel(_, matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead):  # type: ignore[no-untyped-def]
        signature = types.void(matrix, block, head, num_rows, column, coefficients, lane, first, sums, offset, is_fresh, ahead)

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            make: Any = make_array
            arrays = [make(signature.args[k])(context, builder, args[k]) for k in (0, 5, 8)]
            numbers = [context.cast(builder, args[k], signature.args[k], types.int64) for k in (1, 2, 3, 4, 6, 7, 9, 10, 11)]
            _build(builder, num_lanes, signature.args[0].dtype.bitwidth, arrays, numbers)
            return context.get_dummy_value()

        return signature, codegen

    return panel


def _build(builder: Any, num_lanes: int, bits: int, arrays: list[Any], numbers: list[Any]) -> None:
    """A loop over the rows, with all sums as vectors that it carries along."""
    matrix, coefficients, sums = arrays
    block, head, num_rows, column, lane, first, shift, is_fresh, ahead = numbers
    int64, int32, single = ir.IntType(64), ir.IntType(32), ir.FloatType()
    vector, words = ir.VectorType(single, _VECTOR), ir.VectorType(int32, _VECTOR)
    element = ir.VectorType(ir.IntType(bits), _VECTOR)
    cells = [(i, part) for i in range(num_lanes) for part in range(COLUMNS // _VECTOR)]

    def offset(start: Any, *steps: tuple[Any, Any]) -> Any:
        for count, stride in steps:
            start = builder.add(start, builder.mul(count, stride))
        return start

    def strides(array: Any, count: int) -> list[Any]:
        return [builder.extract_value(array.strides, k) for k in range(count)]

    by_block, by_head, by_row, by_column = strides(matrix, 4)
    by_lane = strides(coefficients, 1)[0]
    by_sum, by_sum_column = strides(sums, 2)
    first_row = offset(builder.ptrtoint(matrix.data, int64), (block, by_block), (head, by_head), (column, by_column))
    first_coefficient = offset(builder.ptrtoint(coefficients.data, int64), (lane, by_lane), (first, int64(4)))
    first_sum = offset(builder.ptrtoint(sums.data, int64), (lane, by_sum), (builder.add(column, shift), by_sum_column))

    def load(address: Any, kind: Any, align: int) -> Any:
        value = builder.load(builder.inttoptr(address, kind.as_pointer()))
        value.align = align
        return value

    places = {(i, p): offset(first_sum, (int64(i), by_sum), (int64(p * _VECTOR), by_sum_column)) for i, p in cells}
    fresh = builder.icmp_signed("!=", is_fresh, int64(0))
    zero = ir.Constant(vector, [0.0] * _VECTOR)
    old = {cell: builder.select(fresh, zero, load(places[cell], vector, 4)) for cell in cells}

    before = builder.block
    rows, done = builder.append_basic_block("rows"), builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", num_rows, int64(0)), rows, done)

    builder.position_at_end(rows)
    row = builder.phi(int64)
    carried = {cell: builder.phi(vector) for cell in cells}
    Writer(builder).prefetch(offset(builder.add(first_row, ahead), (row, by_row)))
    widened = []
    for part in range(COLUMNS // _VECTOR):
        value = load(offset(first_row, (row, by_row), (int64(part * _VECTOR), by_column)), element, bits // 8)
        if bits == 16:
            value = builder.shl(builder.zext(value, words), ir.Constant(words, [16] * _VECTOR))
        widened.append(builder.bitcast(value, vector))
    new = {}
    for i in range(num_lanes):
        scalar = load(offset(first_coefficient, (int64(i), by_lane), (row, int64(4))), single, 4)
        lone = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, int32(0))
        spread = builder.shuffle_vector(lone, ir.Constant(vector, ir.Undefined), ir.Constant(words, [0] * _VECTOR))
        for part, value in enumerate(widened):
            product = builder.fmul(spread, value, flags=_FLAGS)
            new[i, part] = builder.fadd(product, carried[i, part], flags=_FLAGS)
    following = builder.add(row, int64(1))
    row.add_incoming(int64(0), before)
    row.add_incoming(following, rows)
    for cell in cells:
        carried[cell].add_incoming(old[cell], before)
        carried[cell].add_incoming(new[cell], rows)
    builder.cbranch(builder.icmp_signed("<", following, num_rows), rows, done)

    builder.position_at_end(done)
    final = {cell: builder.phi(vector) for cell in cells}
    for cell in cells:
        final[cell].add_incoming(old[cell], before)
        final[cell].add_incoming(new[cell], rows)
    for cell in cells:
        builder.store(final[cell], builder.inttoptr(places[cell], vector.as_pointer())).align = 4


panel_of_1, panel_of_3, panel_of_4 = _panel(1), _panel(3), _panel(4)
