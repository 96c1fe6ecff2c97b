"""Rules for strings: lengths, `pattern` and `format`."""

from __future__ import annotations

from dataclasses import replace

from constrained.errors import UnsupportedKeywordError
from constrained.grammar.language import Language, PatternError, from_pattern
from constrained.grammar.rules.base import Context, count, expect
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ANY, STRING, Arm
from constrained.grammar.string_sets import UNBOUNDED, StringSet


def string(context: Context, sub: Subschema) -> list[Arm]:
    """`minLength` and `maxLength`: code points of the decoded string."""
    return [Arm(string=StringSet(count(sub, "minLength", 0), count(sub, "maxLength", UNBOUNDED)))]


def not_string(context: Context, sub: Subschema) -> list[Arm]:
    """A string that is too short or too long."""
    [arm] = string(context, sub)
    wrong = [StringSet(max_len=arm.string.min_len - 1)] if arm.string.min_len else []
    wrong += [StringSet(min_len=arm.string.max_len + 1)] if arm.string.max_len < UNBOUNDED else []
    return [replace(ANY.only(STRING), string=other) for other in wrong]


def pattern(context: Context, sub: Subschema) -> list[Arm]:
    """`pattern`: an ECMA-262 regular expression that some part of the string matches."""
    return [Arm(string=StringSet(language=_pattern(sub)))]


def not_pattern(context: Context, sub: Subschema) -> list[Arm]:
    """A string with no part that matches."""
    return [replace(ANY.only(STRING), string=StringSet(language=~_pattern(sub)))]


def _pattern(sub: Subschema) -> Language:
    return pattern_language(sub, "pattern", expect(sub, "pattern", str, "a regular expression"))


def pattern_language(sub: Subschema, keyword: str, source: str) -> Language:
    try:
        return from_pattern(source)
    except PatternError as error:
        raise UnsupportedKeywordError(f"{source!r}: {error}", sub.pointer, keyword) from error


def format_(context: Context, sub: Subschema) -> list[Arm]:
    """`format`: the strings that it surely holds."""
    found = context.formats.find(sub.contents["format"], sub.draft)
    return [Arm(string=StringSet(language=found.sure))] if found is not None else [ANY]


def not_format(context: Context, sub: Subschema) -> list[Arm]:
    """The strings that it surely does not hold."""
    found = context.formats.find(sub.contents["format"], sub.draft)
    return [replace(ANY.only(STRING), string=StringSet(language=~found.possible))] if found is not None else []
