"""Schemas that are given as JSON text."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from constrained.errors import SchemaError

Text = str | bytes | bytearray


def read(text: Text) -> Any:
    """The schema in a JSON text, as `json.loads` gives it. Raises `SchemaError` where the text is none."""
    try:
        return from_json(text)
    except ValueError:  # or what it does not take: lone surrogates, many levels
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the text of the schema is not JSON: {error}") from error
