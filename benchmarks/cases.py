"""MaskBench cases: schemas with instances known to be valid or invalid, tokenised, and checked by a second opinion.

The text of an instance is `json.dumps(data, ensure_ascii=False)`: the separators `", "` and `": "`, non-ASCII text unescaped,
which is how models mostly write JSON. An instance is set apart, and counted under its reason, where its verdict cannot be
trusted: `jsonschema` (formats asserted) disagrees with the flag in the data, fails or takes too long; the text is not Unicode;
its tokens do not spell the text (a tokenizer that normalises); or, unless any order counts, it is valid, but its properties
are not in declared order, so that an engine may refuse the order alone (`benchmarks.order`).
"""

from __future__ import annotations

import gzip
import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from benchmarks.order import in_declared_order
from benchmarks.vocabularies import NamedVocabulary

ORACLE_LIMIT_S = 5.0
OUT_OF_ORDER = "valid, not in declared order"


@dataclass(frozen=True, slots=True)
class Document:
    """One instance: its tokens, and whether it is valid."""

    token_ids: list[int]
    valid: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with the instances that count; `set_apart` counts the others by reason."""

    id: str
    schema: str
    documents: list[Document]
    set_apart: Counter[str]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a MaskBench file: id, schema, tests."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def sample(rows: list[dict[str, Any]], num_schemas: int, seed: int) -> list[dict[str, Any]]:
    """`num_schemas` rows (0: all), in the order of the file."""
    if not 0 < num_schemas < len(rows):
        return rows
    return [rows[index] for index in sorted(random.Random(seed).sample(range(len(rows)), num_schemas))]


def build_case(row: dict[str, Any], vocabulary: NamedVocabulary, check: bool = True, any_order: bool = False) -> Case:
    """`check=False` takes the flags of the data on trust; with `any_order` instances count however their keys are ordered."""
    documents: list[Document] = []
    set_apart: Counter[str] = Counter()
    oracle = _oracle(row["schema"])
    for test in row["tests"]:
        reason = _doubt(oracle, row["schema"], test) if check else ""
        if any_order and reason == OUT_OF_ORDER:
            reason = ""
        token_ids = _spelled(test["data"], vocabulary)
        if reason or token_ids is None:
            set_apart[reason or "tokens do not spell the text"] += 1
        else:
            documents.append(Document(token_ids, test["valid"]))
    return Case(row["id"], json.dumps(row["schema"], ensure_ascii=False), documents, set_apart)


def _spelled(data: Any, vocabulary: NamedVocabulary) -> list[int] | None:
    text = json.dumps(data, ensure_ascii=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return None
    token_ids = vocabulary.encode(text)
    token_bytes = vocabulary.vocabulary.token_bytes
    return token_ids if b"".join(token_bytes[token_id] for token_id in token_ids) == encoded else None


def _oracle(schema: Any) -> Callable[[Any], bool]:
    kind = validator_for(schema, default=Draft202012Validator)
    return kind(schema, registry=REGISTRY, format_checker=kind.FORMAT_CHECKER).is_valid  # type: ignore[no-any-return]


def _doubt(oracle: Callable[[Any], bool], schema: Any, test: dict[str, Any]) -> str:
    """Why an engine's verdict on a test says nothing of the engine; "" where it does."""
    try:
        with _time_limit(ORACLE_LIMIT_S):
            verdict = oracle(test["data"])
    except TimeoutError:
        return "jsonschema takes too long"
    except Exception as error:
        return f"jsonschema raises {type(error).__name__}"
    if verdict != test["valid"]:
        return f"flag {test['valid']}, jsonschema {verdict}".lower()
    if test["valid"] and not in_declared_order(schema, test["data"], schema):
        return OUT_OF_ORDER
    return ""


@contextmanager
def _time_limit(limit_s: float) -> Iterator[None]:
    """`TimeoutError` in the main thread; a pattern that backtracks for ever is interrupted between its steps."""

    def over(*_: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
