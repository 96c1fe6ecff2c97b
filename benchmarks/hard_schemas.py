"""Schemas that grow in one dimension: what compiling and the slowest steps cost.

    python benchmarks/hard_schemas.py [--vocabularies byte,llama3] [--runs 3] [--only NAME]

Method
    Each schema is compiled from its parsed form, and its document, which is checked against the schema first, is walked token
    by token as the tokenizer spells it: `accept_token`, then the mask. Every bit must be set, and the document must end.
    A run compiles anew, so that every step of it is cold but for what all grammars of a process share: numbers, and the strings
    of patterns and formats, are only cold in the first run, whose slowest step is shown too. Times are the process's CPU time;
    a schema's compile time, and its median, 99th percentile and slowest step, are each the least of all runs, which takes out
    what else the machine did. The vocabulary is warmed up before.

Prints a Markdown table per vocabulary, then one line of JSON. Exit status 1 where a document was refused, 0 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time_ns
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from benchmarks import vocabularies
from benchmarks.vocabularies import NamedVocabulary
from constrained import compile_json_schema, warm_up

POINTS = ("compile_ms", "p50_us", "p99_us", "max_us")
COLUMNS = ("steps", *POINTS, "first_max_us")


@dataclass(frozen=True, slots=True)
class Hard:
    """A schema with a valid document, its properties in declared order."""

    schema: Any
    document: Any


def _long_string() -> Hard:
    return Hard({"type": "string", "maxLength": 100_000}, "lorem ipsum dolor " * 100)


def _long_array() -> Hard:
    return Hard({"type": "array", "items": {"type": "integer"}, "maxItems": 10_000}, list(range(500)))


def _large_enum() -> Hard:
    values = [f"value {index:05}" for index in range(10_000)]
    return Hard({"type": "array", "items": {"enum": values}}, values[::400])


def _many_properties() -> Hard:
    names = [f"property_{index}" for index in range(1000)]
    return Hard({"properties": {name: {"type": "integer"} for name in names}}, dict.fromkeys(names[::20], 1))


def _deep() -> Hard:
    schema, document = {"type": "integer"}, 1
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
        document = {"a": document}
    return Hard(schema, document)


def _large_factor() -> Hard:
    return Hard(
        {"type": "array", "items": {"type": "integer", "multipleOf": 1_000_003}}, [1_000_003 * index for index in range(20)]
    )


def _clauses() -> Hard:
    pairs = [(f"a{index}", f"b{index}") for index in range(12)]
    clauses = [{"anyOf": [{"required": [one]}, {"required": [two]}]} for one, two in pairs]
    properties = {name: {"type": "integer"} for pair in pairs for name in pair}
    document = {pair[index % 2]: 1 for index, pair in enumerate(pairs)}
    return Hard({"type": "object", "properties": properties, "allOf": clauses}, document)


def _alternatives() -> Hard:
    def arm(outer: int, inner: int) -> Any:
        return {
            "type": "object",
            "properties": {"kind": {"const": outer}, "sort": {"const": inner}, f"value{inner}": {"type": "string"}},
            "required": ["kind", "sort"],
        }

    schema = {"oneOf": [{"oneOf": [arm(outer, inner) for inner in range(8)]} for outer in range(8)]}
    return Hard(schema, {"kind": 5, "sort": 3, "value3": "x"})


def _different_objects() -> Hard:
    properties = {f"p{index}": {"type": "integer" if index % 2 else "string"} for index in range(5)}
    items = {"type": "object", "properties": properties, "required": ["p0"]}
    values = [{f"p{i}": 3 * item + i if i % 2 else f"v{item + i}" for i in range(5)} for item in range(30)]
    return Hard({"type": "array", "items": items, "uniqueItems": True}, values)


SCHEMAS: dict[str, Callable[[], Hard]] = {
    "maxLength: 100000": _long_string,
    "maxItems: 10000": _long_array,
    "enum of 10,000": _large_enum,
    "1,000 optional properties": _many_properties,
    "200 levels": _deep,
    "multipleOf: 1000003": _large_factor,
    "12 anyOf of required": _clauses,
    "oneOf 8 x 8": _alternatives,
    "30 different objects": _different_objects,
}


def measure(hard: Hard, vocabulary: NamedVocabulary, runs: int) -> dict[str, float]:
    """The least of `runs` for each of `POINTS`, and the slowest step of the first.

    Raises `ValueError` where the document is not accepted.
    """
    if not Draft202012Validator(hard.schema).is_valid(hard.document):
        raise ValueError("the document is not valid")
    tokens = vocabulary.encode(json.dumps(hard.document))
    told = [dict(zip(POINTS, _run(hard.schema, vocabulary, tokens), strict=True)) for _ in range(runs)]
    least = {point: round(min(run[point] for run in told), 2) for point in POINTS}
    return {"steps": len(tokens), **least, "first_max_us": round(told[0]["max_us"], 2)}


def _run(schema: Any, vocabulary: NamedVocabulary, tokens: list[int]) -> Iterator[float]:
    started = process_time_ns()
    matcher = compile_json_schema(schema, vocabulary.vocabulary).matcher()
    yield (process_time_ns() - started) / 1e6
    row, times = matcher.mask_row(), []
    for token in tokens:
        if not row.words[token >> 5] >> (token & 31) & 1:
            raise ValueError(f"the mask refuses a token of the document after {bytes(matcher.text)[-40:]!r}")
        begun = process_time_ns()
        accepted = matcher.accept_token(token)
        row = matcher.mask_row()
        times.append((process_time_ns() - begun) / 1000)
        if not accepted:
            raise ValueError(f"a token that the mask allows was refused after {bytes(matcher.text)[-40:]!r}")
    if not matcher.is_accepting:
        raise ValueError("the document may not end where it ends")
    yield from (float(np.percentile(times, 50)), float(np.percentile(times, 99)), max(times))


def table(name: str, results: dict[str, dict[str, float] | str]) -> str:
    """The results over one vocabulary in Markdown."""
    titles = (column.replace("_", " ") for column in COLUMNS)
    rows = [f"| {name} | {' | '.join(titles)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for title, told in results.items():
        cells = [told] if isinstance(told, str) else [f"{told[column]:,.3g}" for column in COLUMNS]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _all(vocabulary: NamedVocabulary, names: Sequence[str], runs: int) -> dict[str, dict[str, float] | str]:
    warm_up(vocabulary.vocabulary)
    results: dict[str, dict[str, float] | str] = {}
    for name in names:
        try:
            results[name] = measure(SCHEMAS[name](), vocabulary, runs)
        except ValueError as error:
            results[name] = f"refused: {error}"
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vocabularies", default="byte,llama3", help="comma-separated: " + ", ".join(vocabularies.NAMES))
    parser.add_argument("--runs", type=int, default=3, help="of each schema; the least is shown")
    parser.add_argument("--only", choices=SCHEMAS, help="one schema")
    options = parser.parse_args(arguments)
    names = [options.only] if options.only else list(SCHEMAS)
    data = {}
    for name in options.vocabularies.split(","):
        data[name] = _all(vocabularies.load(name), names, options.runs)
        print(table(name, data[name]), end="\n\n")
    print(json.dumps(data))
    return int(any(isinstance(told, str) for results in data.values() for told in results.values()))


if __name__ == "__main__":
    sys.exit(main())
