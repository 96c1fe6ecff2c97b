"""What the written-out kernels share: LLVM instructions on vectors of float32, and the rounding to bfloat16."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

_FEATURES = llvm.get_host_cpu_features()
VECTOR = 16 if _FEATURES.get("avx512f") else 8
HAS_BF16_DOT = bool(_FEATURES.get("avx512bf16"))
INT64, INT32, INT16, INT8, FLOAT = ir.IntType(64), ir.IntType(32), ir.IntType(16), ir.IntType(8), ir.FloatType()
FLOATS, WORDS, HALVES = (ir.VectorType(kind, VECTOR) for kind in (FLOAT, INT32, INT16))
LOG2_E = 1.4426950408889634
# 2 ** f for f in [0, 1), from the highest power down; error about 1e-7
_EXP2 = (1.8775767e-3, 8.9893397e-3, 5.5826318e-2, 2.4015361e-1, 6.9315308e-1, 9.9999994e-1)
_LARGEST = 126.0  # powers within it are normal numbers: denormals are slow
_CONTRACT = ["contract"]


class BFloat(ir.Type):  # type: ignore[misc]
    """bfloat16, which llvmlite has no name for."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


class Writer:
    """Writes instructions on vectors; addresses are int64."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def load(self, address: Any, kind: Any, align: int) -> Any:
        value = self.b.load(self.b.inttoptr(address, kind.as_pointer()))
        value.align = align
        return value

    def store(self, value: Any, address: Any, align: int) -> None:
        self.b.store(value, self.b.inttoptr(address, value.type.as_pointer())).align = align

    def prefetch(self, address: Any) -> None:
        """Ask for a cache line that is read soon."""
        b = self.b
        place = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [place, INT32, INT32, INT32])
        fetch = b.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        b.call(fetch, [b.inttoptr(address, place), INT32(0), INT32(3), INT32(1)])

    def at(self, start: Any, count: int, stride: Any) -> Any:
        return self.b.add(start, self.b.mul(INT64(count), stride))

    def floats(self, value: float) -> Any:
        return ir.Constant(FLOATS, [value] * VECTOR)

    def words(self, value: int) -> Any:
        return ir.Constant(WORDS, [value] * VECTOR)

    def spread(self, scalar: Any) -> Any:
        """A vector of one value."""
        kind = ir.VectorType(scalar.type, VECTOR)
        undefined = ir.Constant(kind, ir.Undefined)
        lone = self.b.insert_element(undefined, scalar, INT32(0))
        return self.b.shuffle_vector(lone, undefined, self.words(0))

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        return self.b.fadd(self.b.fmul(x, y, flags=_CONTRACT), z, flags=_CONTRACT)

    def bf16_pairs(self, sums: Any, x: Any, y: Any) -> Any:
        """sums + x * y, where each word of x and y holds two bfloat16."""
        b = self.b
        if HAS_BF16_DOT:
            pairs = ir.VectorType(BFloat(), 2 * VECTOR)
            kind = ir.FunctionType(FLOATS, [FLOATS, pairs, pairs])
            dot = b.module.declare_intrinsic(f"llvm.x86.avx512bf16.dpbf16ps.{32 * VECTOR}", (), kind)
            return b.call(dot, [sums, b.bitcast(x, pairs), b.bitcast(y, pairs)])
        for left, right in ((self.high(x), self.high(y)), (self.low(x), self.low(y))):
            sums = self.multiply_add(left, right, sums)
        return sums

    def high(self, words: Any) -> Any:
        """The upper bfloat16 of each word, as float32."""
        return self.b.bitcast(self.b.and_(words, self.words(-65536)), FLOATS)

    def low(self, words: Any) -> Any:
        return self.b.bitcast(self.b.shl(words, self.words(16)), FLOATS)

    def rounded(self, values: Any) -> Any:
        """To the nearest bfloat16, ties to even, still float32."""
        return self.high(self._rounding(values))

    def halves(self, values: Any) -> Any:
        """The bits of the nearest bfloat16."""
        return self.b.trunc(self.b.lshr(self._rounding(values), self.words(16)), HALVES)

    def _rounding(self, values: Any) -> Any:
        b = self.b
        words = b.bitcast(values, WORDS)
        odd = b.and_(b.lshr(words, self.words(16)), self.words(1))
        return b.add(words, b.add(odd, self.words(0x7FFF)))

    def exp2(self, x: Any) -> Any:
        """2 ** x by a polynomial on the fraction and the exponent bits; x is clipped to normal numbers."""
        b = self.b
        for sign, bound in (("<", _LARGEST), (">", -_LARGEST)):
            x = b.select(b.fcmp_ordered(sign, x, self.floats(bound)), x, self.floats(bound))
        whole = self.unary("llvm.floor", x)
        fraction = b.fsub(x, whole)
        power = b.shl(b.add(b.fptosi(whole, WORDS), self.words(127)), self.words(23))
        value = self.floats(_EXP2[0])
        for coefficient in _EXP2[1:]:
            value = self.multiply_add(value, fraction, self.floats(coefficient))
        return b.fmul(value, b.bitcast(power, FLOATS))

    def unary(self, name: str, x: Any) -> Any:
        function = self.b.module.declare_intrinsic(f"{name}.v{VECTOR}f32", (), ir.FunctionType(FLOATS, [FLOATS]))
        return self.b.call(function, [x])
