"""Where in the text of a JSON document, whole or cut, the value at a path stands.

For the rare moment when a value that was written is changed in its text; it reads the whole text, and keeps nothing.
"""

from __future__ import annotations

import json
import re

from constrained.stream.pointer import split

_SPACE = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}\"\[{:]+")
_OPENERS, _CLOSERS = b"[{", b"]}"


def value_span(text: bytes, path: str) -> tuple[int, int]:
    """(start, end) of the value at `path`; `KeyError` where the text has no whole value there.

    A number or literal that the text ends with is taken as whole.
    """
    at = _skip_space(text, 0)
    for token in split(path):
        at = _member(text, at, token)
    return at, _end(text, at)


def _member(text: bytes, at: int, token: str) -> int:
    """Where the member or element `token` of the container at `at` begins."""
    is_object = text[at : at + 1] == b"{"
    if not is_object and text[at : at + 1] != b"[":
        raise KeyError(token)
    at, index = _skip_space(text, at + 1), 0
    while at < len(text) and text[at] not in _CLOSERS:
        key = str(index)
        if is_object:
            after = _end(text, at)
            key = json.loads(text[at:after])
            at = _skip_space(text, _skip_space(text, after) + 1)
        if key == token:
            return at
        at = _skip_space(text, _end(text, at))
        at = _skip_space(text, at + 1) if text[at : at + 1] == b"," else at
        index += 1
    raise KeyError(token)


def _end(text: bytes, at: int) -> int:
    """Where the value at `at` ends; `KeyError` where the text ends first."""
    depth = 0
    while at < len(text):
        byte = text[at]
        if byte in _OPENERS:
            depth += 1
            at += 1
        elif byte in _CLOSERS:
            depth -= 1
            at += 1
        else:
            at = _scalar_end(text, at)
        if depth == 0:
            return at
        at = _skip_separators(text, at)
    raise KeyError("the text ends inside this value")


def _scalar_end(text: bytes, at: int) -> int:
    match = _STRING.match(text, at) if text[at : at + 1] == b'"' else _SCALAR.match(text, at)
    if match is None:
        raise KeyError("the text ends inside this value")
    return match.end()


def _skip_separators(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in b" \t\n\r,:":
        at += 1
    return at


def _skip_space(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
