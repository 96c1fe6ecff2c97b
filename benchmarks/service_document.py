"""The document that the service's benchmark streams: a report of many sections, of any length, in ASCII."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from constrained import Vocabulary, compile_json_schema
from constrained.stream import DeltaStream, Op, coalesce

_WORDS = "the service sends each delta once and in order while a model writes on and nobody waits for what is not there yet"
_SECTION = {
    "type": "object",
    "properties": {
        "heading": {"type": "string"},
        "level": {"type": "integer"},
        "state": {"enum": ["draft", "final"]},
        "body": {"type": "string"},
    },
    "required": ["heading", "level", "state", "body"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "sections": {"type": "array", "items": _SECTION}},
    "required": ["title", "sections"],
    "additionalProperties": False,
}


def document(num_chars: int) -> str:
    """A document of about that many characters."""
    sections: list[dict[str, Any]] = []
    left = num_chars - len('{"title":"A report","sections":[]}')
    while left > 0:
        number = len(sections)
        body = " ".join([_WORDS] * (2 + number % 3))
        sections.append({"heading": f"Part {number}", "level": number % 7, "state": "final", "body": body})
        left -= len(_compact(sections[-1])) + 1
    return _compact({"title": "A report", "sections": sections})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def tokens(text: str, token_lens: Sequence[int]) -> list[bytes]:
    """The text cut into tokens of these lengths."""
    data, at, cut = text.encode(), 0, []
    for length in token_lens:
        cut.append(data[at : at + length])
        at += length
    return cut


@dataclass(frozen=True, slots=True)
class Expected:
    """What a document's tokens must bring: the ops of each token, and the text up to there."""

    ops: list[list[Op]]

    @classmethod
    def of(cls, cut: Sequence[bytes]) -> Expected:
        vocabulary = Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), b""], [256])
        stream = DeltaStream(compile_json_schema(SCHEMA, vocabulary).root)
        return cls([stream.feed(token) for token in cut])

    def seq(self, num_tokens: int | None = None) -> int:
        """How many operations so many tokens bring."""
        return sum(map(len, self.ops[:num_tokens]))

    def wire(self, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
        """The ops of some tokens as they are told, adjacent texts merged."""
        return [op.to_wire() for op in coalesce([op for ops in self.ops[first:last] for op in ops])]
