"""Reads escapes and character classes of ECMA-262 patterns into sets of code points."""

from __future__ import annotations

from constrained.grammar.language import charsets
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.errors import PatternError
from constrained.grammar.language.properties import known_property

_CLASS_ESCAPES: dict[str, Ranges] = {
    "d": charsets.DIGIT,
    "D": charsets.complement(charsets.DIGIT),
    "w": charsets.WORD,
    "W": charsets.complement(charsets.WORD),
    "s": charsets.SPACE,
    "S": charsets.complement(charsets.SPACE),
}
_CONTROL_ESCAPES = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_DIGITS = frozenset("0123456789")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class ClassReader:
    """A position in a pattern, and what can be read there without groups and quantifiers."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def peek(self) -> str:
        """The character here, "" at the end."""
        return self.pattern[self.position : self.position + 1]

    def take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def digits(self) -> str:
        start = self.position
        while self.peek() in _DIGITS:
            self.position += 1
        return self.pattern[start : self.position]

    def error(self, message: str) -> PatternError:
        return PatternError(message, self.position)

    # Escapes

    def class_escape(self) -> Ranges | None:
        r"""`\d`, `\p{..}` and their like, or None where the escape here means one character."""
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in _CLASS_ESCAPES:
            self.position += 2
            return _CLASS_ESCAPES[letter]
        return self.property_escape(letter == "P") if letter in ("p", "P") else None

    def property_escape(self, negated: bool) -> Ranges:
        start = self.position
        end = self.pattern.find("}", start)
        if self.pattern[start + 2 : start + 3] != "{" or end < 0:
            raise PatternError("invalid property escape", start)
        name = self.pattern[start + 3 : end]
        ranges = known_property(name)
        if ranges is None:
            raise PatternError(f"the Unicode property {name!r} is not supported", start)
        self.position = end + 1
        return charsets.complement(ranges) if negated else ranges

    def character_escape(self) -> int:
        r"""The code point of `\n`, `\x41`, `\u{1F600}`, `\-` and their like."""
        start = self.position
        letter = self.pattern[start + 1 : start + 2]
        if not letter:
            raise PatternError("a backslash at the end", start)
        self.position += 2
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "c":
            return self.control_letter(start)
        if letter == "0" and self.peek() not in _DIGITS:
            return 0
        if letter == "x":
            return self.hex_number(2, start)
        if letter == "u":
            return self.unicode_escape(start)
        if letter.isalnum():
            raise PatternError(f"the escape '\\{letter}' is not supported", start)
        return ord(letter)

    def control_letter(self, start: int) -> int:
        letter = self.peek()
        if not (letter.isascii() and letter.isalpha()):
            raise PatternError("'\\c' without a letter", start)
        self.position += 1
        return ord(letter) % 32

    def hex_number(self, length: int, start: int) -> int:
        text = self.pattern[self.position : self.position + length]
        if len(text) < length or not _HEX_DIGITS.issuperset(text):
            raise PatternError("invalid hexadecimal escape", start)
        self.position += length
        return int(text, 16)

    def unicode_escape(self, start: int) -> int:
        if self.take("{"):
            end = self.pattern.find("}", self.position)
            if end < 0:
                raise PatternError("invalid hexadecimal escape", start)
            code_point = self.hex_number(max(end - self.position, 1), start)
            self.position += 1
            if code_point > charsets.LAST_CODE_POINT:
                raise PatternError("the escape is beyond the last code point", start)
            return code_point
        first = self.hex_number(4, start)
        after_first = self.position
        if 0xD800 <= first <= 0xDBFF and self.take("\\u") and self.peek() != "{":
            second = self.hex_number(4, start)
            if 0xDC00 <= second <= 0xDFFF:
                return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        self.position = after_first
        return first

    # Classes

    def character_class(self) -> Ranges:
        """`[...]`, the position at its bracket."""
        start = self.position
        self.position += 1
        negated = self.take("^")
        spans: list[tuple[int, int]] = []
        while not self.take("]"):
            if self.position >= len(self.pattern):
                raise PatternError("a character class is not closed", start)
            spans += self.class_range()
        ranges = charsets.normalise(spans)
        return charsets.complement(ranges) if negated else ranges

    def class_range(self) -> Ranges:
        start = self.position
        first = self.class_atom()
        if self.peek() != "-" or self.pattern[self.position + 1 : self.position + 2] in ("]", ""):
            return first
        after_first = self.position
        self.position += 1
        last = self.class_atom()
        if not (_is_one(first) and _is_one(last)):
            # A hyphen beside a class escape is itself.
            self.position = after_first
            return first
        if first[0][0] > last[0][0]:
            raise PatternError("a range of characters is out of order", start)
        return ((first[0][0], last[0][0]),)

    def class_atom(self) -> Ranges:
        """Spans of one element of a class; surrogates, which `normalise` drops later, still count in ranges."""
        if self.peek() != "\\":
            code_point = ord(self.peek())
            self.position += 1
            return ((code_point, code_point),)
        ranges = self.class_escape()
        if ranges is not None:
            return ranges
        if self.take("\\b"):
            return ((0x08, 0x08),)
        code_point = self.character_escape()
        return ((code_point, code_point),)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
