"""The official suite's optional tests, those of formats too; what is judged otherwise or refused is listed with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrained.errors import UnsupportedKeywordError
from tests.conformance.test_suite import DRAFTS, EVERY_TEXT, integral, remotes
from tests.grammars import accepts, grammar_of

CONTENT = "contentMediaType and contentEncoding are annotations (draft 7 leaves it open, 2019-09 and later ask for it)"
# By file and group: instances that the suite calls invalid are accepted.
ACCEPTED = {
    ("content", "validation of string-encoded content based on media type"): CONTENT,
    ("content", "validation of binary string-encoding"): CONTENT,
    ("content", "validation of binary-encoded media type documents"): CONTENT,
}
A_LABEL = (
    "an A-label is the Punycode of a valid label, in which a digit means what all before it make of it: nearly every prefix is "
    "a state of its own, and a mask would step through them all; such names are not generated, nor taken for invalid by `not`"
)
# Valid strings of formats that are not generated, by format and test.
NOT_GENERATED = {
    ("hostname", "a valid host name (example.test in Hangul)"): A_LABEL,
    ("hostname", "Exceptions that are PVALID, left-to-right chars"): A_LABEL,
    ("hostname", "Exceptions that are PVALID, right-to-left chars"): A_LABEL,
    ("hostname", "MIDDLE DOT with surrounding 'l's"): A_LABEL,
    ("hostname", "Greek KERAIA followed by Greek"): A_LABEL,
    ("hostname", "Hebrew GERESH preceded by Hebrew"): A_LABEL,
    ("hostname", "Hebrew GERSHAYIM preceded by Hebrew"): A_LABEL,
    ("hostname", "KATAKANA MIDDLE DOT with Hiragana"): A_LABEL,
    ("hostname", "KATAKANA MIDDLE DOT with Katakana"): A_LABEL,
    ("hostname", "KATAKANA MIDDLE DOT with Han"): A_LABEL,
    ("hostname", "Arabic-Indic digits not mixed with Extended Arabic-Indic digits"): A_LABEL,
    ("hostname", "Extended Arabic-Indic digits not mixed with Arabic-Indic digits"): A_LABEL,
    ("hostname", "ZERO WIDTH JOINER preceded by Virama"): A_LABEL,
    ("hostname", "ZERO WIDTH NON-JOINER preceded by Virama"): A_LABEL,
    ("hostname", "ZERO WIDTH NON-JOINER not preceded by Virama but matches regexp"): A_LABEL,
    ("regex", "an ECMA 262 named backreference \\k<name>"): "what a backreference names must be a group of the same pattern",
}
REFUSED_FORMATS = {"idn-hostname"}
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


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_tests_of_formats(shared_data: Path, draft: str) -> None:
    refused, not_generated, wrong, decided = set(), set(), [], 0
    for path in sorted((shared_data / "json-schema-test-suite" / "tests" / draft / "optional" / "format").glob("*.json")):
        for group in json.loads(path.read_text()):
            name = group["schema"]["format"]
            try:
                grammar = grammar_of({"$schema": DRAFTS[draft][0], **group["schema"]}, formats="assert", **EVERY_TEXT)
            except UnsupportedKeywordError:
                refused.add(name)
                continue
            for test in group["tests"]:
                decided += 1
                verdict = accepts(grammar, json.dumps(test["data"]))
                if test["valid"] and not verdict:
                    not_generated.add((name, test["description"]))
                elif verdict != test["valid"]:
                    wrong.append((name, test["description"]))
    assert wrong == []
    assert refused <= REFUSED_FORMATS
    assert not_generated == (set() if draft in ("draft4", "draft6") else NOT_GENERATED.keys())
    assert decided > 200
