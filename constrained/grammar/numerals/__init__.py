"""Numerals: numbers of an exact set as they are written, read byte by byte."""

from constrained.grammar.numerals.machine import numeral
from constrained.grammar.numerals.notation import DEFAULT, Notation
from constrained.grammar.numerals.numeral import Numeral
from constrained.grammar.numerals.texts import decimal_text, min_number_len, shortest_number, spellings

__all__ = ["DEFAULT", "Notation", "Numeral", "decimal_text", "min_number_len", "numeral", "shortest_number", "spellings"]
