"""Plain subschemas: a proof, from what is written alone, that some value meets a subschema and that the compile takes it.

A subschema is plain where each of its keywords is legal, and leaves of every kind of value a set that is not empty
(`plain_checks`). Of what is not plain the proof says nothing: it hands that on to be measured (`Nodes`), as it does with what
lies below plain subschemas without being plain itself. No node is made for it; it takes about a microsecond a subschema.

Where members may be left out or an array may have no items, what they would have to meet need not hold any value, but must
still be legal: those subschemas wait in a queue. The others are looked at on the way, and none of them may lead back to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from constrained.grammar.dialects import draft_of
from constrained.grammar.format_choice import FormatChoice
from constrained.grammar.language import LanguageTimeError
from constrained.grammar.plain_checks import Questions, asserts_only, questions
from constrained.grammar.plain_values import Step
from constrained.grammar.resources import kind_below
from constrained.grammar.schema import SchemaDocument, Subschema
from constrained.options import CompileOptions

MAX_DEPTH = 16  # subschemas that a value must meet, one inside or beside the other
CLOCK = 64  # how many subschemas wait, or a multiple of it, whenever the time is asked
FEWEST_DIGITS = 20  # of a whole number, which a proof counts on


class Plainness:
    """Which subschemas of one document are plain: `plain`, by the identity of their contents, which the document keeps.

    `named` are those of them that have a URI of their own; `others` say of subschemas that were measured what came of it.
    """

    def __init__(self, document: SchemaDocument, options: CompileOptions, formats: FormatChoice) -> None:
        dialect = document.root.place.dialect
        self.document = document
        self.draft = dialect.draft
        self._id_keyword = "id" if dialect.draft == 4 else "$id"
        self._questions: dict[tuple[str, ...], Questions | None] = {}
        self.formats = formats
        self.plain: set[int] = set()
        self.named: set[int] = set()
        self.queue: list[Step] = []
        self._is_open_to_proof = not dialect.without and not options.nullable and options.limits.max_digits >= FEWEST_DIGITS
        self.others: dict[int, bool] = {}
        self._open: set[int] = set()
        self._targets: dict[str, Any] = {}
        self._measure: Callable[[Subschema], bool] | None = None
        self._is_proving = False

    def asserts_only(self, contents: dict[str, Any], names: frozenset[str]) -> bool:
        """Whether no keyword but `names` asserts anything."""
        return asserts_only(tuple(contents), self.draft, names)

    def prove(self, measure: Callable[[Subschema], bool], deadline: float) -> bool:
        """Whether some value meets the root, and all that it leads to is legal.

        `measure` says exactly whether a value meets a subschema that is not plain; it may ask what `shows` meanwhile. Raises
        `LanguageTimeError` past the deadline (`monotonic`), and whatever `measure` raises.
        """
        root = self.document.root
        if not self._is_open_to_proof or type(root.contents) is not dict:
            return False
        self._measure = measure
        self._is_proving = True
        try:
            return self.is_inhabited((root.contents, None, root)) and self._settle(deadline)
        finally:
            self._is_proving = False
            self._measure = None  # it leads back to what holds this

    def _settle(self, deadline: float) -> bool:
        """See to those that need no value, but must be legal."""
        queue = self.queue
        while True:
            if not len(queue) % CLOCK and monotonic() > deadline:
                raise LanguageTimeError
            if not queue:
                return True
            step = queue.pop()
            if not self.is_plain(step):
                self._is_inhabited(step)

    def shows(self, sub: Subschema) -> bool:
        """Whether a subschema is plain, without a measure of any; behind the end of `prove`, whether it is known to be."""
        if id(sub.contents) in self.plain or not self._is_proving:
            return id(sub.contents) in self.plain
        place, root = sub.place, self.document.root.place
        is_here = place.base == root.base and place.dialect == root.dialect and not sub.scope
        return is_here and self.is_plain((sub.contents, None, sub))

    def is_inhabited(self, step: Step) -> bool:
        """Whether some value meets a subschema; exact, but while one is measured."""
        return self.is_plain(step) or self._is_inhabited(step)

    def _is_inhabited(self, step: Step) -> bool:
        contents = step[0]
        if contents is False:
            return False
        known = self.others.get(id(contents))
        if known is None:
            measure = self._measure
            if measure is None:
                return False
            self._measure = None
            known = self.others[id(contents)] = measure(self._subschema(step))
            self._measure = measure
        return known

    def is_plain(self, step: Step) -> bool:
        """Whether a subschema is plain."""
        contents = step[0]
        name = id(contents)
        if name in self.plain or contents is True:
            return True
        if type(contents) is not dict:
            return False
        names = tuple(contents)
        asked = self._questions.get(names)
        if asked is None:
            asked = self._questions[names] = questions(names, self.draft)
            if asked is None:
                return False
        if (self._id_keyword in contents or "$schema" in contents) and step[1] is not None and not self._may_be_named(contents):
            return False
        checks, goes_down = asked
        if not goes_down:
            for check in checks:
                if not check(self, contents, step):
                    return False
        else:
            open_ = self._open
            if name in self.others or name in open_ or len(open_) > MAX_DEPTH:
                return False
            open_.add(name)
            for check in checks:
                if not check(self, contents, step):
                    open_.discard(name)
                    return False
            open_.discard(name)
        self.plain.add(name)
        return True

    def target(self, ref: str, step: Step) -> Any:
        """What a reference into the document leads to; None where that is not plain to see."""
        if self.named and _is_named(step, self.named):
            return None
        known = self._targets.get(ref)
        if known is None:
            known = self._targets[ref] = self._find(ref)
        return known

    def _find(self, ref: str) -> Any:
        if not ref.startswith("#") or "%" in ref or "~" in ref:
            return None
        here, kind, dialect = self.document.root.contents, "schema", self.document.root.place.dialect
        if ref == "#":
            return here
        if not ref.startswith("#/"):
            return None
        for part in ref[2:].split("/"):
            if type(here) is not dict or (here is not self.document.root.contents and kind != "holder" and self.is_named(here)):
                return None
            below = here.get(part)
            kind, here = kind_below(kind, dialect, part, below), below
        return here if type(here) is dict and not self.is_named(here) else None

    def is_named(self, contents: dict[str, Any]) -> bool:
        """Whether a subschema has a URI of its own, or a dialect that is not the root's."""
        return self._id_keyword in contents or ("$schema" in contents and not self._is_alike(contents["$schema"]))

    def _is_alike(self, dialect: Any) -> bool:
        """Whether a dialect is that of the root."""
        return draft_of(dialect) == self.draft

    def _may_be_named(self, contents: dict[str, Any]) -> bool:
        """Whether a subschema has neither another dialect nor a strange URI of its own."""
        if self._id_keyword in contents:
            uri = contents[self._id_keyword]
            # Of other characters some make what is no URI.
            if type(uri) is not str or not uri.isascii() or "[" in uri or "]" in uri:
                return False
            self.named.add(id(contents))
        return "$schema" not in contents or self._is_alike(contents["$schema"])

    def _subschema(self, step: Step) -> Subschema:
        """The subschema at the end of a way down."""
        way: list[Step] = []
        here = step
        while here[1] is not None:
            way.append(here)
            here = here[1]
        sub = here[2]
        assert isinstance(sub, Subschema)
        for contents, _, path in reversed(way):
            assert isinstance(path, tuple)
            if path[0] == "$ref":
                sub = self.document.refer(sub, "$ref")
            else:
                sub = self.document.child(sub, *path, contents=contents)
        return sub


def _is_named(step: Step, named: set[int]) -> bool:
    """Whether a subschema, or one that it is below of, has a URI of its own (the root's own aside)."""
    here: Step | None = step
    while here is not None and here[1] is not None:
        if id(here[0]) in named:
            return True
        here = here[1]
    return False
