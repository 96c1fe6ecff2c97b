"""Short JSON texts of single values: canonical spellings, and the shortest member of a set of strings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from itertools import product
from json.encoder import encode_basestring
from typing import Any

from constrained.grammar.string_sets import UNBOUNDED, StringSet


def canonical(value: Any) -> str:
    """The one JSON text of equal values: members sorted, numbers exact (1 and 1.0 are one value; true and 1 are two)."""
    if isinstance(value, Mapping):
        members = sorted((json.dumps(name), canonical(member)) for name, member in value.items())
        return "{" + ",".join(f"{name}:{member}" for name, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        return _canonical_number(exact) if exact.is_finite() else str(exact)
    return json.dumps(value)


def _canonical_number(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    stripped = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - len(stripped)
    if not stripped:
        return "0"
    text = f"{stripped}e{power}" if power else stripped
    return f"-{text}" if sign else text


def parsed(text: str) -> Any:
    """The value of a JSON text, numbers exact."""
    return json.loads(text, parse_float=Decimal)


def quote(text: str) -> bytes:
    """The JSON string of `text` in UTF-8, with no escape that is not needed."""
    return encode_basestring(text).encode()


def quoted_len(text: str) -> int:
    """Bytes of `quote`."""
    return len(encode_basestring(text).encode())


def shortest_string(strings: StringSet) -> bytes | None:
    """The shortest JSON string in the set; None where the set is empty."""
    if strings.values is not None:
        return min((quote(value) for value in strings.values), key=lambda text: (len(text), text), default=None)
    if strings.language is not None:
        text = strings.language.shortest()
        return None if text is None else quote(text)
    if strings.min_len >= UNBOUNDED:
        return None
    for length in range(strings.min_len, min(strings.max_len, strings.min_len + 1) + 1):
        # Only the last characters vary: a few hundred candidates are more than any finite exclusion here needs.
        fixed, free = "a" * max(length - 3, 0), min(length, 3)
        for ending in product(_LETTERS, repeat=free):
            if (text := fixed + "".join(ending)) not in strings.excluded:
                return quote(text)
    return None


def min_string_len(strings: StringSet) -> int | None:
    """Bytes of `shortest_string`; None where the set is empty."""
    if strings.values is None and strings.language is None and not strings.excluded:
        empty = strings.min_len > strings.max_len or strings.min_len >= UNBOUNDED
        return None if empty else strings.min_len + 2
    text = shortest_string(strings)
    return None if text is None else len(text)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
