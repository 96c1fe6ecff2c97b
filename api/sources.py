"""What a grammar can be made of: a JSON Schema as it is, or a text constraint, which says what kind it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import constrained
from constrained.decode.prompt import SchemaPrompt
from constrained.options import CompileOptions

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar
    from constrained.tokens.vocabulary import Vocabulary

TextKind = Literal["regex", "choice", "grammar"]

PROMPTS: dict[TextKind, SchemaPrompt] = {
    "regex": SchemaPrompt("Your whole answer must match this regular expression, given as a JSON string:\n{schema}"),
    "choice": SchemaPrompt("Your whole answer must be one of these texts, given as JSON strings:\n{schema}"),
    "grammar": SchemaPrompt("Your whole answer must follow this grammar in Lark's syntax, given as a JSON string:\n{schema}"),
}


@dataclass(frozen=True, slots=True)
class TextSource:
    """A constraint on raw text: a regular expression, a choice of texts, or a grammar in Lark's syntax.

    `place` is where the caller wrote it.
    """

    kind: TextKind
    source: str | tuple[str, ...]
    place: str = field(default="", compare=False)

    @property
    def shown(self) -> Any:
        """As JSON, for the model to see."""
        return self.source if isinstance(self.source, str) else list(self.source)

    @property
    def prompt(self) -> SchemaPrompt:
        """How the model is told."""
        return PROMPTS[self.kind]


def compile_source(source: Any, vocabulary: Vocabulary, options: CompileOptions) -> CompiledGrammar:
    """The grammar of a JSON Schema or of a `TextSource`. Raises what the compile raises."""
    if not isinstance(source, TextSource):
        return constrained.compile_json_schema(source, vocabulary, options)
    if isinstance(source.source, tuple):
        return constrained.compile_choice(source.source, vocabulary)
    if source.kind == "regex":
        return constrained.compile_regex(source.source, vocabulary)
    return constrained.compile_lark(source.source, vocabulary, options)
