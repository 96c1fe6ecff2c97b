"""Products with one panel of packed weights as LLVM vectors: a few rows by two vectors of columns at a time, in registers
from the first input to the last.

Weights lie in panels of `COLUMNS` columns (see `packing`), so that the loop reads them in order. Rows are bfloat16 (a step
takes two inputs, by one instruction where the CPU has it) or float32 (a step takes one); weights are of the same kind, or
int8 with a scale for each column. Every output is summed in the same order however many rows there are, so a row's result
does not depend on the rows beside it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from constrained.decode.vectors import FLOATS, HALVES, INT8, INT32, INT64, LOG2_E, VECTOR, WORDS, Writer

PARTS = 2
COLUMNS = PARTS * VECTOR
TILE_ROWS = (12, 8, 4, 1) if VECTOR == 16 else (4, 2, 1)
_BYTES = ir.VectorType(INT8, VECTOR)


def _panel(is_half: bool, is_int8: bool, is_gated: bool) -> Any:
    """panel(rows, row_stride, num_rows, weights, num_steps, scales, bias, out, out_stride, ahead): addresses, bytes and counts.

    out[i, 0 : COLUMNS] = bias + scales * (rows[i] times the panel). Gated, the first half of the columns are gates and the
    rest what they gate: out[i, 0 : VECTOR] = silu(gate) * up, rounded where transformers rounds. `ahead` are the weights of the
    panel that this thread reads next, which come into the cache meanwhile.
    """

    @intrinsic
    def panel(_, rows, row_stride, num_rows, weights, num_steps, scales, bias, out, out_stride, ahead):  # type: ignore[no-untyped-def]
        signature = types.void(*[types.int64] * 10)

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            _Panel(builder, is_half, is_int8, is_gated, args).build()
            return context.get_dummy_value()

        return signature, codegen

    return panel


class _Panel(Writer):
    def __init__(self, builder: Any, is_half: bool, is_int8: bool, is_gated: bool, args: Any) -> None:
        super().__init__(builder)
        self._is_half, self._is_int8, self._is_gated = is_half, is_int8, is_gated
        self._step_bytes = COLUMNS * ((2 if is_half else 1) if is_int8 else 4)
        self._rows, self._row_stride, self._num_rows = args[:3]
        self._weights, self._num_steps, self._scales, self._bias = args[3:7]
        self._out, self._out_stride, self._ahead = args[7:]

    def build(self) -> None:
        """A loop for each size of tile, the largest first, over the rows that are left."""
        b = self.b
        at: Any = INT64(0)
        for size in TILE_ROWS:
            before, head = b.block, b.append_basic_block("more")
            body, after = b.append_basic_block("tile"), b.append_basic_block("less")
            b.branch(head)
            b.position_at_end(head)
            row = b.phi(INT64)
            row.add_incoming(at, before)
            following = b.add(row, INT64(size))
            b.cbranch(b.icmp_signed("<=", following, self._num_rows), body, after)
            b.position_at_end(body)
            self._tile(size, row)
            row.add_incoming(following, b.block)
            b.branch(head)
            b.position_at_end(after)
            at = row

    def _tile(self, num_rows: int, row: Any) -> None:
        b = self.b
        sums = self._loop(num_rows, b.add(self._rows, b.mul(row, self._row_stride)), self._to_fetch(num_rows, row))
        out = b.add(self._out, b.mul(row, self._out_stride))
        for i in range(num_rows):
            at = self.at(out, i, self._out_stride)
            values = [self._scaled(sums[i, part], part) for part in range(PARTS)]
            if self._is_gated:
                values = [self._gated(*values)]
            for part, value in enumerate(values):
                self._put(value, b.add(at, INT64(part * VECTOR * (2 if self._is_half else 4))))

    def _to_fetch(self, num_rows: int, row: Any) -> list[Any]:
        """Where a tile begins to fetch the next panel, line by line: the first tile all of it or half, the second the rest."""
        b = self.b
        half = b.mul(self._num_steps, INT64(self._step_bytes // 2))
        is_first = b.icmp_signed("==", row, INT64(0))
        is_second = b.icmp_signed("==", row, INT64(TILE_ROWS[0]))
        first = b.select(is_second, b.add(self._ahead, half), self._weights)
        first = b.select(is_first, self._ahead, first)
        if num_rows == TILE_ROWS[0]:
            return [first]
        return [first, b.select(is_first, b.add(self._ahead, half), self._weights)]

    def _loop(self, num_rows: int, rows: Any, to_fetch: list[Any]) -> dict[tuple[int, int], Any]:
        b = self.b
        cells = [(i, part) for i in range(num_rows) for part in range(PARTS)]
        start = [self.floats(0.0) if self._is_int8 else self._column(self._bias, part) for part in range(PARTS)]
        firsts = [self.at(rows, i, self._row_stride) for i in range(num_rows)]
        before, loop, done = b.block, b.append_basic_block("steps"), b.append_basic_block("done")
        b.branch(loop)
        b.position_at_end(loop)
        step = b.phi(INT64)
        carried = {cell: b.phi(FLOATS) for cell in cells}
        weights = [self._weight(step, part) for part in range(PARTS)]
        for address in to_fetch:
            self.prefetch(b.add(address, b.mul(step, INT64(self._step_bytes // 2))))
        new = {}
        for i, first in enumerate(firsts):
            spread = self.spread(self.load(b.add(first, b.mul(step, INT64(4))), INT32, 2))
            for part, weight in enumerate(weights):
                new[i, part] = self._add_product(carried[i, part], spread, weight)
        following = b.add(step, INT64(1))
        step.add_incoming(INT64(0), before)
        step.add_incoming(following, loop)
        for i, part in cells:
            carried[i, part].add_incoming(start[part], before)
            carried[i, part].add_incoming(new[i, part], loop)
        b.cbranch(b.icmp_signed("<", following, self._num_steps), loop, done)
        b.position_at_end(done)
        return new

    def _weight(self, step: Any, part: int) -> Any:
        """Words of two bfloat16 or one float32."""
        b = self.b
        at = b.add(b.add(self._weights, b.mul(step, INT64(self._step_bytes))), INT64(self._step_bytes // PARTS * part))
        if not self._is_int8:
            return self.load(at, WORDS, 4 * VECTOR)
        if not self._is_half:
            return b.bitcast(b.sitofp(b.sext(self.load(at, _BYTES, VECTOR), WORDS), FLOATS), WORDS)
        pairs = b.sext(self.load(at, HALVES, 2 * VECTOR), WORDS)
        low = b.ashr(b.shl(pairs, self.words(24)), self.words(24))
        low, high = (b.bitcast(b.sitofp(part, FLOATS), WORDS) for part in (low, b.ashr(pairs, self.words(8))))
        return b.or_(b.lshr(low, self.words(16)), high)  # int8 has no more digits than bfloat16

    def _scaled(self, sums: Any, part: int) -> Any:
        if not self._is_int8:
            return sums
        return self.multiply_add(sums, self._column(self._scales, part), self._column(self._bias, part))

    def _column(self, floats: Any, part: int) -> Any:
        return self.load(self.b.add(floats, INT64(4 * VECTOR * part)), FLOATS, 4)

    def _add_product(self, sums: Any, x: Any, weight: Any) -> Any:
        if self._is_half:
            return self.bf16_pairs(sums, x, weight)
        return self.multiply_add(self.b.bitcast(x, FLOATS), self.b.bitcast(weight, FLOATS), sums)

    def _gated(self, gate: Any, up: Any) -> Any:
        b = self.b
        if self._is_half:
            gate, up = self.rounded(gate), self.rounded(up)
        grown = b.fadd(self.floats(1.0), self.exp2(b.fmul(gate, self.floats(-LOG2_E))))
        active = b.fdiv(gate, grown)
        return b.fmul(self.rounded(active) if self._is_half else active, up)

    def _put(self, values: Any, address: Any) -> None:
        if self._is_half:
            self.store(self.halves(values), address, 2)
        else:
            self.store(values, address, 4)


half, half_gated = _panel(True, False, False), _panel(True, False, True)
full, full_gated = _panel(False, False, False), _panel(False, False, True)
half_int8, half_int8_gated = _panel(True, True, False), _panel(True, True, True)
full_int8, full_int8_gated = _panel(False, True, False), _panel(False, True, True)
