"""The official suite's optional tests, but for formats; what is judged otherwise is listed with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_suite import DRAFTS, EVERY_TEXT, integral, remotes
from tests.grammars import accepts, grammar_of

CONTENT = "contentMediaType and contentEncoding are annotations (draft 7 leaves it open, 2019-09 and later ask for it)"
# By file and group: instances that the suite calls invalid are accepted.
ACCEPTED = {
    ("content", "validation of string-encoded content based on media type"): CONTENT,
    ("content", "validation of binary string-encoding"): CONTENT,
    ("content", "validation of binary-encoded media type documents"): CONTENT,
}
# Files in which a number's spelling matters: their instances stay as they are written.
AS_WRITTEN = {"zeroTerminatedFloats"}


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_optional_tests(shared_data: Path, draft: str) -> None:
    registry = remotes(shared_data, draft)
    seen, accepted, wrong = set(), set(), []
    for path in sorted((shared_data / "json-schema-test-suite" / "tests" / draft / "optional").glob("*.json")):
        for group in json.loads(path.read_text()):
            place = (path.stem, group["description"])
            seen.add(place)
            for test, verdict in zip(group["tests"], _verdicts(draft, path.stem, group, registry), strict=True):
                if verdict and not test["valid"]:
                    accepted.add(place)
                elif verdict != test["valid"]:
                    wrong.append((*place, test["description"]))
    assert wrong == []
    assert accepted == seen & ACCEPTED.keys()


def _verdicts(draft: str, stem: str, group: dict[str, Any], registry: Any) -> list[bool]:
    schema = group["schema"]
    if isinstance(schema, dict) and stem != "no-schema":
        schema = {"$schema": DRAFTS[draft][0], **schema}
    formats = "assert" if stem.startswith("format") else "annotate"
    grammar = grammar_of(schema, formats=formats, registry=registry, **EVERY_TEXT)
    return [accepts(grammar, _text(stem, test["data"])) for test in group["tests"]]


def _text(stem: str, value: Any) -> str:
    return json.dumps(value if stem in AS_WRITTEN else integral(value))
