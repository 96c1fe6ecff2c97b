"""`optional/format` of the official JSON Schema test suite: every string is decided as it says, but for the lists here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from constrained.grammar.formats import FORMATS, INEXACT, OLDER_FORMATS
from tests.grammar.formats.membership import decide

DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
LATER_DRAFTS = ("draft7", "draft2019-09", "draft2020-12")
# How many strings a format leaves open: host names with an A-label, which only Punycode decides, and a regular expression
# with a backreference by name, which must be one of a group.
OPEN = {
    **{(draft, "hostname"): 38 for draft in LATER_DRAFTS},
    **{(draft, "regex"): 1 for draft in LATER_DRAFTS},
}
NOT_FORMATS = {"unknown"}


def cases(shared_data: Path, draft: str) -> Iterator[tuple[str, str, bool, str]]:
    """Format, string, expectation and description of each test whose instance is a string."""
    suite = shared_data / "json-schema-test-suite" / "tests" / draft / "optional" / "format"
    for path in sorted(suite.glob("*.json")):
        for group in json.loads(path.read_text()):
            for test in group["tests"]:
                if isinstance(test["data"], str):
                    yield group["schema"]["format"], test["data"], test["valid"], f"{path.stem}: {test['description']}"


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_string_is_decided_as_the_suite_says(shared_data: Path, draft: str) -> None:
    formats = {**FORMATS, **OLDER_FORMATS.get(draft, {})}
    wrong, left_open, decided = [], Counter[tuple[str, str]](), 0
    for name, text, valid, description in cases(shared_data, draft):
        if name in INEXACT or name in NOT_FORMATS:
            continue
        verdict = decide(formats[name], text)
        if verdict is None:
            left_open[draft, name] += 1
        elif verdict != valid:
            wrong.append((description, text))
        decided += 1
    assert wrong == []
    assert left_open == {place: number for place, number in OPEN.items() if place[0] == draft}
    assert decided > 100


def test_what_is_left_open_is_what_the_list_says(shared_data: Path) -> None:
    for name, text, _, _ in cases(shared_data, "draft2020-12"):
        if name in FORMATS and decide(FORMATS[name], text) is None:
            assert "\\k<" in text if name == "regex" else any(label.lower().startswith("xn--") for label in text.split("."))


def test_every_name_of_the_suite_is_a_format_or_refused(shared_data: Path) -> None:
    names = {name for draft in DRAFTS for name, *_ in cases(shared_data, draft)}
    assert names - NOT_FORMATS <= FORMATS.keys() | INEXACT.keys()
