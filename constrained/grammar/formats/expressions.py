"""`regex`: the regular expressions of ECMA-262, as far as they are certain to be valid.

The whole set is not regular: brackets nest, names must differ, backreferences must lead somewhere, and the ends of ranges
must be in order. Here are those with groups to a depth, with one named group, without backreferences, and with ranges and
counts whose order a few digits or one of the chosen cuts show. All is meant under the flag `u`, as JSON Schema advises
(2020-12, Core, section 6.4).
"""

from __future__ import annotations

from itertools import pairwise

from constrained.grammar.formats.abnf import ANYTHING, DIGIT, HEXDIG, any_of, exactly, optional, repeated
from constrained.grammar.formats.format import Format, Strings

MOST_NESTED_GROUPS = 4
_INNERMOST_LOOKAROUND = 3

# ECMA-262, section 22.2.1, with UnicodeMode: escapes, in classes and outside.
_SYNTAX = r"$()*+./?[\]^{|}"  # SyntaxCharacter, and the slash that IdentityEscape adds
_CODE_POINT = repeated("0") + any_of(HEXDIG + "{1,5}", f"10{HEXDIG}{{4}}")
_UNICODE_ESCAPE = r"\\u" + any_of(exactly(HEXDIG, 4), rf"\{{{_CODE_POINT}\}}")
_ESCAPE = any_of(r"\\[0fnrtv$()*+.\/?\[\\\]\^{|}]", r"\\c[A-Za-z]", rf"\\x{HEXDIG}{{2}}", _UNICODE_ESCAPE)
_PROPERTY = r"\\[Pp]\{[A-Za-z0-9_=]+\}"
_CLASS_ESCAPE = r"\\[DSWdsw]"

_ONE = any_of(r"[^\\\]\-]", r"\\[b\-]", _ESCAPE)
_ONE_OR_HYPHEN = any_of(_ONE, "-")
# The low end of a range. A bare `^` is none here: after the bracket it would be read as the negation and as a character.
_LOW = any_of(r"[^\\\]\-\^]", r"\\[b\-]", _ESCAPE)


def _class(property_escape: str, low_to_high: str, hyphen_to_high: str) -> str:
    """ClassContents: runs of atoms that end in a range, then atoms; a bare hyphen is an atom at the ends of a run only."""
    atoms = "-?" + repeated(any_of(_ONE, _CLASS_ESCAPE, property_escape))
    return rf"\[\^?{repeated(any_of(atoms + low_to_high, hyphen_to_high))}{atoms}-?\]"


# Structure: everything but the order of ranges and counts and the names of properties.
_CLASS = _class(_PROPERTY, f"{_LOW}-{_ONE_OR_HYPHEN}", f"--{_ONE_OR_HYPHEN}")
_CHARACTER = any_of(r"[^$()*+?\[\\\]\^{|}]", _ESCAPE, _CLASS_ESCAPE, _PROPERTY)
_ATOM = any_of(_CHARACTER, _CLASS)
_QUANTIFIER = any_of("[*+?]", r"\{[0-9]+(?:,[0-9]*)?\}") + r"\??"
_BETWEEN = any_of(r"[$\^|]", r"\\[Bb]")  # assertions, and what parts alternatives: each may be empty
_GROUP = r"\(" + optional(r"\?" + any_of(":", "<[A-Za-z_$][A-Za-z0-9_$]*>"))
_QUANTIFIED = _ATOM + optional(_QUANTIFIER)
_LOOKAROUND = r"\(\?<?[=!]"


def _disjunction(depth: int) -> str:
    """A lookaround takes no quantifier; here it holds groups one deep, and no lookaround."""
    if depth == 0:
        return repeated(any_of(_BETWEEN, _QUANTIFIED))
    around = [rf"{_LOOKAROUND}{_disjunction(1)}\)"] if depth >= _INNERMOST_LOOKAROUND else []
    group = rf"{_GROUP}{_disjunction(depth - 1)}\)" + optional(_QUANTIFIER)
    return repeated(any_of(_BETWEEN, *around, _QUANTIFIED, group))


_NESTED = _disjunction(MOST_NESTED_GROUPS)

# What is valid at all keeps to these tokens, however its groups nest.
_ANY_GROUP = r"\(" + optional(r"\?" + any_of("<?[=!]", "<[^>]+>", "[ims]*(?:-[ims]*)?:"))
_BACKREFERENCE = any_of(r"\\[1-9][0-9]*", r"\\k<[^>]+>")
_ANY_CLASS = _class(_PROPERTY, f"{_ONE}-{_ONE_OR_HYPHEN}", f"--{_ONE_OR_HYPHEN}")
_TOKENS = repeated(any_of(_BETWEEN, _ANY_GROUP, any_of(_CHARACTER, _ANY_CLASS, _BACKREFERENCE, r"\)") + optional(_QUANTIFIER)))

# Order of the ends of a range: there is a cut with one end at or below it and the other at or above. Each cut is a state behind
# the low end, and in each of them everything that a class may hold goes on: so they are those that people need.
_CUTS = (
    *map(ord, " /0123456789:@AFZ`afz~"),
    *(0xFF, 0x370, 0x400, 0x410, 0x430, 0x450, 0x600, 0x900, 0xE00, 0x2000, 0x3040, 0x30A0, 0x4E00, 0xAC00, 0xE000, 0x1F300),
    0x10FFFF,
)
_NOT_BARE_LOW, _NOT_BARE_HIGH = r"-\]^", r"\]"


def _end(low: int, high: int, escaped_only: str) -> str:
    """An end of a range, one character from `low` to `high`, bare or as an identity escape."""
    gaps = [low - 1, *(code for code in map(ord, escaped_only) if low <= code <= high), high + 1]
    bare = "".join(rf"\u{{{before + 1:X}}}-\u{{{after - 1:X}}}" for before, after in pairwise(gaps) if after - before > 1)
    escaped = "".join("\\" + character for character in "-" + _SYNTAX if low <= ord(character) <= high)
    return any_of(*([f"[{bare}]"] if bare else []), *([rf"\\[{escaped}]"] if escaped else []))


def _rising_digits(before: str, num_after: int, steps: str) -> str:
    """Two escapes with the same digits in `before`, then one digit of `steps` or below it, and one above it."""
    after, digits, pairs, start = exactly(HEXDIG, num_after), "0123456789ABCDEF", [], 0
    for place in map(digits.index, steps):
        low, high = digits[start : place + 1], digits[place + 1 :]
        pairs.append(f"[{low}{low.lower()}]{after}-{before}[{high}{high.lower()}]{after}")
        start = place + 1
    return before + any_of(*pairs)


_RISING = any_of(
    *(f"{_end(low + 1, cut, _NOT_BARE_LOW)}-{_end(cut, 0x10FFFF, _NOT_BARE_HIGH)}" for low, cut in pairwise((-1, *_CUTS))),
    _rising_digits(r"\\x", 1, "0127A"),
    _rising_digits(r"\\u", 3, "012349AE"),
    _rising_digits(r"\\u0", 2, "012347A"),
    _rising_digits(r"\\u00", 1, "0127A"),
    *(rf"\\u{row}00-\\u{row}{HEXDIG}{{2}}" for row in ("03", "04", "06", "30")),
)

# Order of the counts of `{low,high}`: more digits; or a higher digit first, or the same before zeros; or two digits.
_MOST_DIGITS = 4


def _rising_counts(num_digits: int) -> str:
    rest = exactly(DIGIT, num_digits - 1)
    return any_of(
        f"{'[1-9]' if num_digits > 1 else DIGIT}{rest},[1-9]{DIGIT}{{{num_digits},}}",
        *(f"{digit}{rest},[{digit + 1}-9]{rest}" for digit in range(9)),
        *(f"{digit}{'0' * (num_digits - 1)},{digit}{rest}" for digit in range(10)),
    )


_COUNTS = any_of(
    "[0-9]+,?",
    *(_rising_counts(num_digits) for num_digits in range(1, _MOST_DIGITS + 1)),
    *(f"{tens}{ones},{tens}[{ones}-9]" for tens in range(1, 10) for ones in range(10)),
)

# Names of properties: those of General_Category, and the scripts and binary properties that are met most.
_CATEGORIES = (
    *("C[cfnos]?", "L[lmotu]?", "LC", "M[cen]?", "N[dlo]?", "P[cdefios]?", "S[ckmo]?", "Z[lps]?"),
    *("Letter", "Mark", "Number", "Other", "Punctuation", "Separator", "Symbol"),
)
_SCRIPTS = (
    *("Arabic", "Armenian", "Bengali", "Common", "Cyrillic", "Devanagari", "Georgian", "Greek", "Han", "Hangul", "Hebrew"),
    *("Hiragana", "Katakana", "Latin", "Tamil", "Thai"),
)
_BINARY = (
    *("ASCII", "ASCII_Hex_Digit", "Alphabetic", "Any", "Emoji", "ID_Continue", "ID_Start", "Lowercase", "Uppercase"),
    "White_Space",
)
_KNOWN_PROPERTY = (
    r"\\[Pp]\{"
    + any_of(
        optional(any_of("General_Category", "gc") + "=") + any_of(*_CATEGORIES),
        any_of("Script", "Script_Extensions", "sc", "scx") + "=" + any_of(*_SCRIPTS),
        *_BINARY,
    )
    + r"\}"
)

# What the structure leaves out, told by the same tokens without their nesting.
_RISING_CLASS = _class(_KNOWN_PROPERTY, _RISING, "--" + _end(0x2D, 0x10FFFF, _NOT_BARE_HIGH))
_IN_ORDER = repeated(
    any_of(r"[^\\\[{]", _RISING_CLASS, rf"\{{{_COUNTS}\}}", r"\\[^Ppu]", _UNICODE_ESCAPE, _KNOWN_PROPERTY),
)
_BEFORE = repeated(any_of(r"[^\\]", r"\\[^]"))
_NUL_BEFORE_A_DIGIT = rf"{_BEFORE}\\0{DIGIT}{ANYTHING}"
_NAMED_GROUP = rf"{_BEFORE}\(\?<[A-Za-z_$]"

FORMATS = (
    Format(
        "regex",
        "ECMA-262, section 22.2.1, Pattern",
        (_NESTED, _IN_ORDER),
        (_NUL_BEFORE_A_DIGIT, _NAMED_GROUP + _NAMED_GROUP + ANYTHING),
        wider=Strings((_TOKENS,)),
        why=(
            f"groups nest at most {MOST_NESTED_GROUPS} deep, one of them may have a name, no backreference can be checked, and "
            "of ranges and counts only those whose order shows in a few digits are known to be in order"
        ),
    ),
)
