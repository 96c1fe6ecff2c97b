"""The official suite's optional tests, but for formats: each that is refused or judged otherwise is listed with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrained.errors import SchemaError
from tests.conformance.test_suite import DRAFTS, OUT_OF_ORDER, integral, remotes
from tests.grammars import accepts, grammar_of

NOT_BUILT = "the keyword is not built yet"
CONTENT = "contentMediaType and contentEncoding are annotations (draft 7 leaves it open, 2019-09 and later ask for it)"
# By file and group: the schema is refused when it is compiled.
REFUSED = {
    ("float-overflow", "all integers are multiples of 0.5, if overflow is handled"): NOT_BUILT,
    ("dependencies-compatibility", "schema dependencies with escaped characters"): NOT_BUILT,
}
# By file and group: instances that the suite calls invalid are accepted.
ACCEPTED = {
    ("content", "validation of string-encoded content based on media type"): CONTENT,
    ("content", "validation of binary string-encoding"): CONTENT,
    ("content", "validation of binary-encoded media type documents"): CONTENT,
}
ORDER = OUT_OF_ORDER | {"single schema dependency"}
# Files in which a number's spelling matters: their instances stay as they are written.
AS_WRITTEN = {"zeroTerminatedFloats"}


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_optional_tests(shared_data: Path, draft: str) -> None:
    registry = remotes(shared_data, draft)
    seen, refused, accepted, wrong = set(), set(), set(), []
    for path in sorted((shared_data / "json-schema-test-suite" / "tests" / draft / "optional").glob("*.json")):
        for group in json.loads(path.read_text()):
            place = (path.stem, group["description"])
            seen.add(place)
            try:
                verdicts = _verdicts(draft, path.stem, group, registry)
            except SchemaError:
                refused.add(place)
                continue
            for test, verdict in zip(group["tests"], verdicts, strict=True):
                if verdict and not test["valid"]:
                    accepted.add(place)
                elif verdict != test["valid"] and group["description"] not in ORDER:
                    wrong.append((*place, test["description"]))
    assert wrong == []
    assert refused == seen & REFUSED.keys()
    assert accepted == seen & ACCEPTED.keys()


def _verdicts(draft: str, stem: str, group: dict[str, Any], registry: Any) -> list[bool]:
    schema = group["schema"]
    if isinstance(schema, dict) and stem != "no-schema":
        schema = {"$schema": DRAFTS[draft][0], **schema}
    grammar = grammar_of(schema, formats="assert" if stem.startswith("format") else "annotate", registry=registry)
    return [accepts(grammar, _text(stem, test["data"])) for test in group["tests"]]


def _text(stem: str, value: Any) -> str:
    return json.dumps(value if stem in AS_WRITTEN else integral(value))
