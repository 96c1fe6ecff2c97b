"""A schema as a model reads it best: an outline of the answer, `{"name": string, "age": integer (0 to 120)}`.

It says what the schema says in about half of its tokens, in the order and the form of the answer. Left out is only what masks
decide without the model's help: that an object takes no other members. Where a schema says anything that has no words here,
there is no outline, and it must be told as it is. Pure Python; knows no tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

_SILENT = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly"})
_NOTES = frozenset({"title", "description", "default", "examples"})
_LOCAL_REFERENCE = re.compile(r"#/(\$defs|definitions)/([A-Za-z0-9_.-]+)")
_NO_LETTERS = re.compile(r"[\W_]")


class _NoWordsError(Exception):
    """Something in the schema cannot be said in an outline."""


def outline(schema: Any) -> str | None:
    """The outline, definitions below it; None where there is none."""
    teller = _Teller(schema)
    try:
        text = "\n".join([teller.tell(schema), *teller.definitions()])
        text.encode()
    except (_NoWordsError, RecursionError, UnicodeEncodeError):  # the last of a lone surrogate, which no text can hold
        return None
    return text


class _Teller:
    """Tells one schema, and remembers which of its definitions were mentioned."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._mentioned: dict[str, Any] = {}

    def definitions(self) -> list[str]:
        """What each name stands for that was mentioned, in order; telling one may mention more."""
        lines: list[str] = []
        while len(lines) < len(self._mentioned):
            name = list(self._mentioned)[len(lines)]
            lines.append(f"{name}: {self.tell(self._mentioned[name], name)}")
        return lines

    def tell(self, schema: Any, name: str = "") -> str:
        """A value of `schema`, which is called `name` where it stands."""
        if schema is True:
            return "any value"
        if not isinstance(schema, dict) or ("$id" in schema and schema is not self._root):
            raise _NoWordsError
        keywords = set(schema) - _SILENT - _NOTES
        text, notes = self._value(schema, keywords) if keywords else ("any value", [])
        notes = [*_annotations(schema, name), *notes]
        return f"{text} ({'; '.join(notes)})" if notes else text

    def _value(self, schema: Mapping[str, Any], keywords: Collection[str]) -> tuple[str, list[str]]:
        """The value in brief, and what else is to be known of it."""
        if "$ref" in keywords:
            _only(keywords, {"$ref"})
            return self._mention(schema["$ref"]), []
        if "const" in keywords:
            _only(keywords, {"const", "type"})
            return _json(schema["const"]), []
        if "enum" in keywords:
            _only(keywords, {"enum", "type"})
            return " | ".join(map(_json, schema["enum"])), []
        for union in ("anyOf", "oneOf"):
            if union in keywords:
                _only(keywords, {union})
                return " | ".join(map(self.tell, schema[union])), []
        return self._typed(schema, set(keywords))

    def _typed(self, schema: Mapping[str, Any], keywords: set[str]) -> tuple[str, list[str]]:
        """A value of the types that the schema names; a keyword that belongs to none of them has no words."""
        types = schema.get("type")
        known = {"type"}
        texts, notes = [], []
        for kind in types if isinstance(types, list) else [types]:
            if kind not in _TYPES:
                raise _NoWordsError
            words, members = _TYPES[kind]
            known |= members
            text, more = words(self, schema)
            texts.append(text)
            notes += more
        _only(keywords, known)
        return " | ".join(texts), notes

    def _mention(self, reference: Any) -> str:
        found = _LOCAL_REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if found is None:
            raise _NoWordsError
        place, name = found.groups()
        definition = self._root.get(place, {}).get(name)
        if definition is None or self._mentioned.setdefault(name, definition) is not definition:
            raise _NoWordsError
        return name

    def object(self, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
        properties, required = schema.get("properties", {}), set(schema.get("required", ()))
        others = schema.get("additionalProperties", True)
        _only(required, properties)
        members = [f"{_json(key)}{'' if key in required else '?'}: {self.tell(each, key)}" for key, each in properties.items()]
        if isinstance(others, dict) and others:
            members.append(f"{'any other name' if members else 'any name'}: {self.tell(others)}")
        elif not members and others is not False:
            return "object", _range(schema, "minProperties", "maxProperties", " members")
        return f"{{{', '.join(members)}}}", _range(schema, "minProperties", "maxProperties", " members")

    def array(self, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
        first, rest = schema.get("prefixItems", []), schema.get("items", True)
        items = [self.tell(each) for each in first]
        if rest is not False:
            items += [self.tell(rest), "..."]
        different = ["all different"] if schema.get("uniqueItems") else []
        return f"[{', '.join(items)}]", [*_range(schema, "minItems", "maxItems", " items"), *different]

    def string(self, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
        notes = [schema["format"]] if "format" in schema else []
        notes += [f"matches {_json(schema['pattern'])}"] if "pattern" in schema else []
        return "string", [*notes, *_range(schema, "minLength", "maxLength", " characters")]

    def number(self, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
        if any(isinstance(schema.get(bound), bool) for bound in ("exclusiveMinimum", "exclusiveMaximum")):
            raise _NoWordsError  # draft 4
        notes = _range(schema, "minimum", "maximum", "")
        notes += [f"more than {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
        notes += [f"less than {schema['exclusiveMaximum']}"] if "exclusiveMaximum" in schema else []
        notes += [f"a multiple of {schema['multipleOf']}"] if "multipleOf" in schema else []
        return "number", notes

    def integer(self, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
        return "integer", self.number(schema)[1]


_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TYPES: dict[Any, tuple[Callable[[_Teller, Mapping[str, Any]], tuple[str, list[str]]], frozenset[str]]] = {
    "null": (lambda _, __: ("null", []), frozenset()),
    "boolean": (lambda _, __: ("true | false", []), frozenset()),
    "integer": (_Teller.integer, _BOUNDS),
    "number": (_Teller.number, _BOUNDS),
    "string": (_Teller.string, frozenset({"minLength", "maxLength", "pattern", "format"})),
    "array": (_Teller.array, frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"})),
    "object": (
        _Teller.object,
        frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
    ),
}


def _only(keywords: Collection[str], known: Collection[str]) -> None:
    if not set(keywords) <= set(known):
        raise _NoWordsError


def _annotations(schema: Mapping[str, Any], name: str) -> list[str]:
    """What people say of a value; of its title nothing where that is the name once more."""
    notes = []
    if "title" in schema and _plain(schema["title"]) != _plain(name):
        notes.append(" ".join(str(schema["title"]).split()))
    if "description" in schema:
        notes.append(" ".join(str(schema["description"]).split()))
    if "default" in schema:
        notes.append(f"by default {_json(schema['default'])}")
    if schema.get("examples"):
        notes.append(f"e.g. {', '.join(map(_json, schema['examples']))}")
    return notes


def _plain(text: Any) -> str:
    return _NO_LETTERS.sub("", str(text)).casefold()


def _range(schema: Mapping[str, Any], low: str, high: str, unit: str) -> list[str]:
    if low in schema and high in schema:
        return [f"{schema[low]} to {schema[high]}{unit}"]
    if high in schema:
        return [f"at most {schema[high]}{unit}"]
    return [f"at least {schema[low]}{unit}"] if low in schema else []


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
