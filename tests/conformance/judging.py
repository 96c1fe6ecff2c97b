"""`jsonschema` as the judge of texts: numbers without rounding, patterns as ECMA-262 reads them; and MaskBench's schemas."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import referencing
from jsonschema import ValidationError
from jsonschema.validators import extend, validator_for

EVERY_TEXT: dict[str, Any] = {"property_order": "any", "spelling": "permissive", "formats": "annotate"}
_SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_OUTSIDE = {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]", r"\s": f"[{_SPACES}]", r"\S": f"[^{_SPACES}]"}
_INSIDE = {r"\s": _SPACES}


def read(text: str | bytes) -> Any:
    """A JSON value with its fractions as decimals."""
    return json.loads(text, parse_float=Decimal)


@cache
def in_python(pattern: str) -> re.Pattern[str]:
    """A pattern of ECMA-262 for Python's `re`. Raises `re.error` for what `re` does not know."""
    pieces, in_class = [], False
    for piece in re.findall(r"\\.|[^\\]", pattern, re.DOTALL):
        in_class = piece != "]" and (in_class or piece == "[")
        pieces.append((_INSIDE if in_class else _OUTSIDE).get(piece, piece))
    return re.compile("".join(pieces), re.ASCII)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not in_python(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], value: Any, _: Any) -> Iterator[ValidationError]:
    for pattern, schema in patterns.items():
        for name in value if isinstance(value, dict) else ():
            if in_python(pattern).search(name):
                yield from validator.descend(value[name], schema)


def _multiple_of(_: Any, factor: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if is_number and (Fraction(value) / Fraction(factor)).denominator != 1:
        yield ValidationError(f"{value} is no multiple of {factor}")


def _is_integer(_: Any, value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, Decimal) and value == value.to_integral_value()
    )


@cache
def _exact(kind: Any) -> Any:
    types = kind.TYPE_CHECKER
    if kind is not jsonschema.Draft4Validator:  # to draft 4 an integer is a matter of writing
        types = types.redefine("integer", _is_integer)
    keywords = {"pattern": _pattern, "patternProperties": _pattern_properties, "multipleOf": _multiple_of}
    # 2019-09 split it in two and lets it live on; `jsonschema` does not.
    keywords["dependencies"] = kind.VALIDATORS.get("dependencies", jsonschema.Draft7Validator.VALIDATORS["dependencies"])
    return extend(kind, keywords, type_checker=types)


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Judge:
    """Whether a text is a document of a schema. Raises `Unjudgeable` where `jsonschema` or `re` cannot tell."""

    def __init__(self, schema: Any, registry: referencing.Registry[Any] | None = None) -> None:
        kind = _exact(validator_for(schema, default=jsonschema.Draft202012Validator))
        self._validator = kind(read(json.dumps(schema)), **({} if registry is None else {"registry": registry}))

    def accepts(self, text: str | bytes) -> bool:
        try:
            with _deep():
                return bool(self._validator.is_valid(read(text)))
        except (re.error, RecursionError, referencing.exceptions.Unresolvable, jsonschema.exceptions.SchemaError) as error:
            raise Unjudgeable(str(error)) from error


class Unjudgeable(Exception):
    """The judge knows nothing of this."""


def maskbench(shared_data: Path) -> list[str]:
    """The lines of the file, each a schema with instances."""
    with gzip.open(shared_data / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        return file.read().strip().split("\n")
