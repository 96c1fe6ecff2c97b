r"""Unicode properties for `\p{..}`: what `unicodedata` knows exactly, in its version of Unicode.

Every other name is refused.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain, groupby

from constrained.grammar.language import charsets
from constrained.grammar.language.charsets import Ranges

# PropertyValueAliases.txt, gc: the long names and further aliases of each General_Category value.
_CATEGORIES = {
    "C": "Other",
    "Cc": "Control cntrl",
    "Cf": "Format",
    "Cn": "Unassigned",
    "Co": "Private_Use",
    "Cs": "Surrogate",
    "L": "Letter",
    "LC": "Cased_Letter",
    "Ll": "Lowercase_Letter",
    "Lm": "Modifier_Letter",
    "Lo": "Other_Letter",
    "Lt": "Titlecase_Letter",
    "Lu": "Uppercase_Letter",
    "M": "Mark Combining_Mark",
    "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark",
    "Mn": "Nonspacing_Mark",
    "N": "Number",
    "Nd": "Decimal_Number digit",
    "Nl": "Letter_Number",
    "No": "Other_Number",
    "P": "Punctuation punct",
    "Pc": "Connector_Punctuation",
    "Pd": "Dash_Punctuation",
    "Pe": "Close_Punctuation",
    "Pf": "Final_Punctuation",
    "Pi": "Initial_Punctuation",
    "Po": "Other_Punctuation",
    "Ps": "Open_Punctuation",
    "S": "Symbol",
    "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol",
    "Sm": "Math_Symbol",
    "So": "Other_Symbol",
    "Z": "Separator",
    "Zl": "Line_Separator",
    "Zp": "Paragraph_Separator",
    "Zs": "Space_Separator",
}
_CATEGORY_OF = {alias: short for short, long in _CATEGORIES.items() for alias in (short, *long.split())}

_HEX: Ranges = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_FULLWIDTH_HEX: Ranges = ((0xFF10, 0xFF19), (0xFF21, 0xFF26), (0xFF41, 0xFF46))
_WHITE_SPACE: Ranges = charsets.normalise([*(span for span in charsets.SPACE if span != (0xFEFF, 0xFEFF)), (0x85, 0x85)])
_BINARY: dict[str, Callable[[], Ranges]] = {
    "Any": lambda: charsets.ALPHABET,
    "ASCII": lambda: ((0, 0x7F),),
    "Assigned": lambda: charsets.complement(_unassigned()),
    "ASCII_Hex_Digit AHex": lambda: _HEX,
    "Hex_Digit Hex": lambda: _HEX + _FULLWIDTH_HEX,
    "White_Space space": lambda: _WHITE_SPACE,
    "Lowercase Lower": lambda: _where(str.islower),
    "Uppercase Upper": lambda: _where(str.isupper),
    "XID_Start XIDS": lambda: _where(lambda char: char != "_" and char.isidentifier()),
    "XID_Continue XIDC": lambda: _where(lambda char: ("a" + char).isidentifier()),
    "Bidi_Mirrored Bidi_M": lambda: _where(lambda char: unicodedata.mirrored(char) == 1),
}
_BINARY_OF = {name: ranges for names, ranges in _BINARY.items() for name in names.split()}


def known_property(text: str) -> Ranges | None:
    r"""The code points of `\p{text}`, or None where the name is not known here."""
    name, equals, value = text.partition("=")
    if equals:
        return _category(_CATEGORY_OF[value]) if name in ("General_Category", "gc") and value in _CATEGORY_OF else None
    if name in _CATEGORY_OF:
        return _category(_CATEGORY_OF[name])
    return _binary(name) if name in _BINARY_OF else None


@cache
def _binary(name: str) -> Ranges:
    return _BINARY_OF[name]()


@cache
def _category(short: str) -> Ranges:
    names = ("Lu", "Ll", "Lt") if short == "LC" else (short,)
    table = _categories()
    return charsets.normalise(span for name, spans in table.items() if name.startswith(names) for span in spans)


def _unassigned() -> Ranges:
    return _category("Cn")


# Planes without any character, and those of private use, which end in two noncharacters each: not worth a look.
_UNIFORM = (
    ("Cn", 0x40000, 0xDFFFF),
    ("Cn", 0xE1000, 0xEFFFF),
    ("Co", 0xF0000, 0xFFFFD),
    ("Cn", 0xFFFFE, 0xFFFFF),
    ("Co", 0x100000, 0x10FFFD),
    ("Cn", 0x10FFFE, 0x10FFFF),
)


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    """The ranges of each two-letter category, from one pass over the planes in use (tens of milliseconds, once)."""
    table: dict[str, list[tuple[int, int]]] = {}
    for name, low, high in _UNIFORM:
        table.setdefault(name, []).append((low, high))
    for start, end in ((0, 0x40000), (0xE0000, 0xE1000)):
        for name, run in groupby(map(unicodedata.category, map(chr, range(start, end)))):
            low, start = start, start + sum(1 for _ in run)
            table.setdefault(name, []).append((low, start - 1))
    return table


def _where(holds: Callable[[str], bool]) -> Ranges:
    """The code points with a property that unassigned ones never have."""
    assigned = chain.from_iterable(range(low, high + 1) for low, high in charsets.complement(_unassigned()))
    return charsets.normalise((code, code) for code in assigned if holds(chr(code)))
