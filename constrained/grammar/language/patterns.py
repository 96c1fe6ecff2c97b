r"""Parses ECMA-262 regular expressions (2025, with the u flag, as JSON Schema recommends) into expressions.

Beyond the u flag's grammar it takes what schemas hold and every other validator reads alike: escaped characters that
need no escape (`\-`, `\_`, `\"`: any but letters and digits), a brace or bracket that opens nothing (`{`, `}`, `]`), and a
class escape at the end of a range (`[\w-.]`, where `-` is a hyphen). Refused by name: backreferences, properties that
Python's `unicodedata` does not know, the `i` modifier, lookahead inside lookbehind, and letters escaped without meaning
(`\Z`). Lazy quantifiers mean the same language as greedy ones.
"""

from __future__ import annotations

import re
from math import inf

from constrained.grammar.language import charsets, context
from constrained.grammar.language.boolean import complement, union
from constrained.grammar.language.charsets import Ranges
from constrained.grammar.language.classes import ClassReader
from constrained.grammar.language.context import Ahead, Behind, Expression, Start, choice, rounds, sequence
from constrained.grammar.language.errors import PatternError
from constrained.grammar.language.language import Language
from constrained.grammar.language.normal import ANY_CHAR, ANYTHING, EMPTY, chars, concat, values
from constrained.grammar.language.terms import Term

_MAX_DEPTH = 100
_LITERALS = re.compile(r"[^\\^$.*+?()\[\]{}|\ud800-\udfff]+(?![*+?{])")
_WORD = chars(charsets.WORD)
_LINE_TERMINATOR = chars(charsets.LINE_TERMINATOR)
_NO_LINE_TERMINATOR = chars(charsets.complement(charsets.LINE_TERMINATOR))
_AFTER_WORD = concat(ANYTHING, _WORD)
_BEFORE_WORD = Ahead(_WORD, True)
_NO_WORD_NEXT = Ahead(_WORD, False)
_END = Ahead(ANY_CHAR, False)
_LINE_START = Behind(union((EMPTY, concat(ANYTHING, _LINE_TERMINATOR))))
_LINE_END = Ahead(chars(charsets.complement(charsets.LINE_TERMINATOR)), False)

_BOUNDARY = choice(
    [
        sequence([Behind(_AFTER_WORD), _NO_WORD_NEXT]),
        sequence([Behind(complement(_AFTER_WORD)), _BEFORE_WORD]),
    ]
)
_NO_BOUNDARY = choice(
    [
        sequence([Behind(_AFTER_WORD), _BEFORE_WORD]),
        sequence([Behind(complement(_AFTER_WORD)), _NO_WORD_NEXT]),
    ]
)


def from_pattern(pattern: str, *, anchored: bool = False) -> Language:
    """The strings that `pattern` matches somewhere, as JSON Schema's `pattern` means it; if `anchored`, from end to end.

    Raises `PatternError`.
    """
    expression = parse(pattern)
    return Language(context.whole(expression) if anchored else context.search(expression))


def parse(pattern: str) -> Expression:
    """The expression of an ECMA-262 pattern. Raises `PatternError`."""
    return _Parser(pattern).parse()


class _Parser(ClassReader):
    """One pattern, read left to right by recursive descent; the names are those of ECMA-262, 22.2.1."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.depth = 0
        self.multiline = False
        self.dot_all = False

    def parse(self) -> Expression:
        expression = self.disjunction()
        if self.position < len(self.pattern):
            raise self.error("unmatched ')'")
        return expression

    def disjunction(self) -> Expression:
        arms = [self.alternative()]
        while self.take("|"):
            arms.append(self.alternative())
        return choice(arms)

    def alternative(self) -> Expression:
        parts: list[Expression] = []
        while self.position < len(self.pattern) and self.peek() not in "|)":
            parts.append(self.literals() or self.term())
        return sequence(parts)

    def literals(self) -> Term | None:
        """A run of characters that mean themselves, but for one that a quantifier takes."""
        run = _LITERALS.match(self.pattern, self.position)
        if run is None:
            return None
        self.position = run.end()
        return values((run[0],))

    def term(self) -> Expression:
        start = self.position
        atom = self.assertion()
        if atom is not None:
            if self.quantifier() is not None:
                raise PatternError("a quantifier after an assertion is not allowed", start)
            return atom
        atom = self.atom()
        counts = self.quantifier()
        return atom if counts is None else rounds(atom, *counts)

    def assertion(self) -> Expression | None:
        if self.take("^"):
            return _LINE_START if self.multiline else Start()
        if self.take("$"):
            return _LINE_END if self.multiline else _END
        if self.take("\\b"):
            return _BOUNDARY
        if self.take("\\B"):
            return _NO_BOUNDARY
        for opening, holds in (("(?=", True), ("(?!", False)):
            if self.take(opening):
                return Ahead(self.group_rest(), holds)
        for opening, holds in (("(?<=", True), ("(?<!", False)):
            start = self.position
            if self.take(opening):
                return self.lookbehind(start, holds)
        return None

    def lookbehind(self, start: int, holds: bool) -> Expression:
        body = self.group_rest()
        if context.looks_ahead(body):
            raise PatternError("lookahead, '$' or a word boundary inside a lookbehind is not supported", start)
        before = context.ending_with(body)
        return Behind(before if holds else complement(before))

    def quantifier(self) -> tuple[int, float] | None:
        start = self.position
        counts = self.counts()
        if counts is not None:
            if counts[0] > counts[1]:
                raise PatternError("the numbers of a quantifier are out of order", start)
            self.take("?")
        return counts

    def counts(self) -> tuple[int, float] | None:
        for sign, counts in (("*", (0, inf)), ("+", (1, inf)), ("?", (0, 1))):
            if self.take(sign):
                return counts
        return self.braces()

    def braces(self) -> tuple[int, float] | None:
        """`{n}`, `{n,}` or `{n,m}`; a brace that opens nothing of the kind is left to be read as a character.

        But `{,m}`: some validators read characters there, others a quantifier.
        """
        start = self.position
        if self.take("{"):
            low = self.digits()
            if not low and self.take(",") and self.digits() and self.take("}"):
                raise PatternError("'{,m}' is not a quantifier of ECMA-262; write '{0,m}'", start)
            comma = bool(low) and self.take(",")
            high = self.digits() if comma else low
            if low and self.take("}"):
                return int(low), int(high) if high else inf
        self.position = start
        return None

    def atom(self) -> Expression:
        start, char = self.position, self.peek()
        if char == "(":
            return self.group()
        if char == "[":
            return chars(self.character_class())
        if char == "\\":
            return self.atom_escape()
        if char in "*+?" or self.braces() is not None:
            raise PatternError("nothing to repeat", start)
        self.position += 1
        if char == ".":
            return ANY_CHAR if self.dot_all else _NO_LINE_TERMINATOR
        return self.literal(ord(char))

    def literal(self, code_point: int) -> Term:
        ranges: Ranges = charsets.normalise([(code_point, code_point)])
        return chars(ranges)

    def atom_escape(self) -> Expression:
        ranges = self.class_escape()
        if ranges is not None:
            return chars(ranges)
        if self.pattern[self.position + 1 : self.position + 2] in tuple("123456789k"):
            raise self.error("backreferences are not supported")
        return self.literal(self.character_escape())

    def group(self) -> Expression:
        start = self.position
        if self.take("(?:"):
            return self.group_rest()
        if not self.take("(?"):
            self.position += 1
            return self.group_rest()
        if self.take("<"):
            self.group_name(start)
            return self.group_rest()
        return self.modified_group(start)

    def group_name(self, start: int) -> None:
        end = self.pattern.find(">", self.position)
        name = self.pattern[self.position : end] if end >= 0 else ""
        if not name.replace("$", "_").isidentifier():
            raise PatternError("invalid name of a group", start)
        self.position = end + 1

    def modified_group(self, start: int) -> Expression:
        """`(?ims-ims:...)`, ECMA-262 2025; `m` and `s` only."""
        added, removed = self.flags(), self.flags() if self.take("-") else ""
        if not self.take(":") or not added + removed or len(set(added + removed)) < len(added + removed):
            raise PatternError("invalid group", start)
        if "i" in added:
            raise PatternError("the modifier 'i' is not supported", start)
        outside = self.multiline, self.dot_all
        self.multiline = (self.multiline or "m" in added) and "m" not in removed
        self.dot_all = (self.dot_all or "s" in added) and "s" not in removed
        body = self.group_rest()
        self.multiline, self.dot_all = outside
        return body

    def flags(self) -> str:
        start = self.position
        while self.peek() in tuple("ims"):
            self.position += 1
        return self.pattern[start : self.position]

    def group_rest(self) -> Expression:
        start = self.position
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"groups nested deeper than {_MAX_DEPTH}")
        body = self.disjunction()
        if not self.take(")"):
            raise PatternError("a group is not closed", start)
        self.depth -= 1
        return body
