"""Rules for strings and numbers: lengths, `pattern`, `format` and bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from constrained.errors import UnsupportedKeywordError
from constrained.grammar.formats import FORMATS, OLDER_FORMATS, Format, Strings
from constrained.grammar.language import ANYTHING as ANY_STRING
from constrained.grammar.language import Language, PatternError, from_pattern
from constrained.grammar.number_sets import Bound, NumberSet
from constrained.grammar.rules.base import Context, count, exact, expect
from constrained.grammar.schema import Subschema
from constrained.grammar.shapes import ANY, NUMBER, STRING, Arm
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
    form = _format(context, sub)
    return [Arm(string=StringSet(language=_strings(form)))] if form is not None else [ANY]


def not_format(context: Context, sub: Subschema) -> list[Arm]:
    """The strings that it surely does not hold."""
    form = _format(context, sub)
    if form is None:
        return []
    return [replace(ANY.only(STRING), string=StringSet(language=~_strings(form.wider or form)))]


def _format(context: Context, sub: Subschema) -> Format | None:
    name = sub.contents["format"]
    if not context.asserts_formats or not isinstance(name, str):
        return None
    return OLDER_FORMATS.get(f"draft{sub.draft}", FORMATS).get(name, FORMATS.get(name))


@cache
def _strings(form: Format | Strings) -> Language:
    language = ANY_STRING
    for source in form.all_of:
        language &= from_pattern(source, anchored=True)
    for source in form.none_of:
        language &= ~from_pattern(source, anchored=True)
    return language


def number(context: Context, sub: Subschema) -> list[Arm]:
    """`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` (draft 4: booleans beside the plain bounds)."""
    return [Arm(number=NumberSet(_bound(sub, "Minimum", 1), _bound(sub, "Maximum", -1)))]


def not_number(context: Context, sub: Subschema) -> list[Arm]:
    """A number beyond a bound."""
    [arm] = number(context, sub)
    low, high = arm.number.lower, arm.number.upper
    wrong = [NumberSet(upper=Bound(low.value, not low.exclusive))] if low is not None else []
    wrong += [NumberSet(lower=Bound(high.value, not high.exclusive))] if high is not None else []
    return [replace(ANY.only(NUMBER), number=other) for other in wrong]


def _bound(sub: Subschema, name: str, sign: int) -> Bound | None:
    plain, exclusive = name.lower(), f"exclusive{name}"
    bound = Bound(exact(sub.contents[plain], sub, plain)) if plain in sub.contents else None
    if exclusive not in sub.contents:
        return bound
    if sub.draft == 4:
        flag = expect(sub, exclusive, bool, "a boolean (draft 4)")
        return replace(bound, exclusive=flag) if bound is not None else None
    value = exact(sub.contents[exclusive], sub, exclusive)
    if bound is None or (value - bound.value) * sign >= 0:
        return Bound(value, exclusive=True)
    return bound
