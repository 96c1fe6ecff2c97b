"""`Notation`: how the numbers of one grammar may be written."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.options import CompileOptions


@dataclass(frozen=True, slots=True)
class Notation:
    """A spelling profile with its runs of digits; the fields are `CompileOptions.spelling` and `Limits`."""

    permissive: bool = False
    max_digits: int = 64
    max_exponent_digits: int = 3

    @classmethod
    def of(cls, options: CompileOptions) -> Notation:
        """The notation that a compile asks for."""
        limits = options.limits
        name = options.spelling == "permissive", limits.max_digits, limits.max_exponent_digits
        return DEFAULT if name == _DEFAULT else cls(*name)

    @property
    def max_exponent(self) -> int:
        """The largest exponent of either sign."""
        return int(10**self.max_exponent_digits) - 1


DEFAULT = Notation()
_DEFAULT = False, DEFAULT.max_digits, DEFAULT.max_exponent_digits
