"""What README.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from constrained.cli import app

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_library_example_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "compile_json_schema" in block)
    said = re.findall(r"print\(.*\)  # (.*)", example)
    assert said
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == said


def test_every_command_is_told_and_every_told_command_exists() -> None:
    told = set(re.findall(r"^\| `constrained (\w+)", README, re.MULTILINE))
    assert told == set(get_command(app).commands)  # type: ignore[attr-defined]


def test_every_link_into_the_repository_leads_somewhere() -> None:
    root = Path(__file__).resolve().parents[1]
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert all((root / link).exists() for link in links)


def test_every_page_is_linked() -> None:
    root = Path(__file__).resolve().parents[1]
    assert all(f"(docs/{page.name})" in README for page in (root / "docs").glob("*.md"))


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in (Path(__file__).resolve().parents[1] / "docs").glob("*.md"):
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")) if "://" not in link]
        assert all((page.parent / link).exists() for link in links), page
