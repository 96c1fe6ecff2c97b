"""The second opinion: a standard validator's verdict on a finished document.

The validator recurses, and it writes what it refuses into messages. A document too deep for this interpreter, or with a
number too long to be written, is judged in a process of its own, where both limits can be lifted without risk to others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from referencing.jsonschema import EMPTY_REGISTRY

from constrained.errors import InternalError
from constrained.stream.numbers import read_number

DEEP_STACK_BYTES = 1 << 30
DEEP_RECURSION = 1_000_000
VALID, INVALID = 0, 10


class DocumentValidator:
    """Judges documents against one schema. Never fetches a reference."""

    def __init__(self, schema: Any) -> None:
        kind = validator_for(schema, default=Draft202012Validator)
        self._schema = schema
        self._validator = kind(schema, registry=EMPTY_REGISTRY)

    def is_valid(self, text: bytes) -> bool:
        """Whether `text` is one JSON text that meets the schema."""
        try:
            return self.judge(text)
        except (RecursionError, ValueError):
            return _judge_apart(self._schema, text)

    def judge(self, text: bytes) -> bool:
        """The same, within the interpreter's limits: `RecursionError` or `ValueError` beyond them."""
        try:
            value = json.loads(text, parse_int=_integer)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return False
        return bool(self._validator.is_valid(value))


def _integer(lexeme: str) -> int | float:
    return read_number(lexeme)[0]


def _judge_apart(schema: Any, text: bytes) -> bool:
    task = json.dumps({"schema": schema, "text": text.decode()}).encode()
    verdict = subprocess.run([sys.executable, "-m", "api.validity"], input=task, check=False).returncode
    if verdict not in (VALID, INVALID):
        raise InternalError(f"the validator's process ended with {verdict}")
    return verdict == VALID


def main() -> int:
    """Judge the task on standard input; the verdict is the exit status."""
    task = json.load(sys.stdin)
    verdicts: list[bool] = []
    sys.setrecursionlimit(DEEP_RECURSION)
    sys.set_int_max_str_digits(0)
    threading.stack_size(DEEP_STACK_BYTES)
    judge = DocumentValidator(task["schema"]).judge
    thread = threading.Thread(target=lambda: verdicts.append(judge(task["text"].encode())))
    thread.start()
    thread.join()
    return VALID if verdicts[0] else INVALID


if __name__ == "__main__":
    sys.exit(main())
