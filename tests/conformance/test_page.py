"""`docs/json-schema.md`: its table of the suite says of us what the suite's tests hold, and its tests are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "json-schema.md").read_text(encoding="utf-8")


def test_every_keyword_of_the_suite_has_a_row_and_ours_is_right_on_all_its_tests(shared_data: Path) -> None:
    folder = shared_data / "json-schema-test-suite" / "tests" / "draft2020-12"
    counts = {
        path.stem: sum(len(group["tests"]) for group in json.loads(path.read_text(encoding="utf-8")))
        for path in folder.glob("*.json")
    }
    rows = {found[1]: found[2] for found in re.finditer(r"^\| `([\w-]+)` \| (\d+ / \d+ / \d+) \|", PAGE, re.MULTILINE)}
    assert rows == {name: f"{count} / 0 / 0" for name, count in counts.items()}


def test_rows_add_up() -> None:
    cells = [
        [tuple(map(int, cell.split(" / "))) for cell in row.split(" | ")]
        for row in re.findall(r"^\| `[\w-]+` \| (\d+ / .*?) \|$", PAGE, re.MULTILINE)
    ]
    totals = [tuple(map(sum, zip(*column, strict=True))) for column in zip(*cells, strict=True)]
    [said] = re.findall(r"^\| all \| (.*?) \|$", PAGE, re.MULTILINE)
    assert said == " | ".join(" / ".join(map(str, total)) for total in totals)


def test_what_the_page_names_as_tests_is_there() -> None:
    named = set(re.findall(r"`(tests/[\w/.]+)`", PAGE))
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
