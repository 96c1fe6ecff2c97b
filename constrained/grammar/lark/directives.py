"""`%json {...}` inside a Lark grammar: a JSON Schema where a terminal may stand.

Lark itself does not know it: each becomes a terminal that the text declares.
"""

from __future__ import annotations

import json
import re
from typing import Any

from constrained.errors import GrammarError

# What may hold the characters of the directive without being one: comments, strings and regular expressions of Lark.
_PIECES = re.compile(
    r"""//[^\n]*|\#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|(?P<directive>%json\b)""",
    re.DOTALL,
)


def take_schemas(text: str, schemas: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text with a declared terminal for each `%json {...}` and for each of `schemas`; and all schemas by terminal."""
    pieces: list[str] = []
    found = dict(schemas)
    at = 0
    for match in _PIECES.finditer(text):
        if match["directive"] is None or match.start() < at:
            continue
        schema, end = _schema(text, match.end())
        name = _fresh(text, found)
        found[name] = schema
        pieces += [text[at : match.start()], name]
        at = end
    pieces.append(text[at:])
    declared = f"\n%declare {' '.join(found)}\n" if found else ""
    return "".join(pieces) + declared, found


def _schema(text: str, at: int) -> tuple[Any, int]:
    """The JSON value after a directive, and where it ends."""
    start = at + len(text[at:]) - len(text[at:].lstrip())
    try:
        schema, end = json.JSONDecoder().raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError) as error:
        raise GrammarError(f"%json needs a JSON Schema: {error}", "grammar") from error
    return schema, end


def _fresh(text: str, taken: dict[str, Any]) -> str:
    number = 1
    while f"JSON__{number}" in taken or f"JSON__{number}" in text:
        number += 1
    return f"JSON__{number}"
