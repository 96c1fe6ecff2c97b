"""Lark grammars: read by the `lark` package's own loader, as data for `constrained.grammar.context_free`."""

from constrained.grammar.lark.loader import load_lark

__all__ = ["load_lark"]
