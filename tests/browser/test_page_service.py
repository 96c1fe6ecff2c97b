"""The page against the running service: first over a synthetic backend, then over the real model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser, Page, expect

from tests.api.server import Served, live, served, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.browser.browser_page import open_page

if TYPE_CHECKING:
    from constrained.decode.model import LoadedModel

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
PRESETS = ["Person", "Invoice", "Family tree", "Review"]
RUN_LIMIT_MS = 180_000

# Keeps each set of states that the form's fields had at one moment, as a reader of the screen would see them.
WATCH_STATES = """
() => {
  window.moments = [];
  const fields = document.querySelector("#form");
  const note = () => window.moments.push([...new Set([...fields.querySelectorAll(".field")].map((f) => f.dataset.state))]);
  new MutationObserver(note).observe(fields, { attributes: true, attributeFilter: ["data-state"], subtree: true });
}
"""


@pytest.fixture(scope="module")
def synthetic() -> Iterator[Served]:
    with served(SyntheticBackend(token_bytes=2)) as service:
        yield service


@pytest.fixture
def page(chromium: Browser, synthetic: Served) -> Iterator[Page]:
    with open_page(chromium, synthetic.url) as page:
        yield page


def fill(page: Page, midway: Callable[[], None] | None = None) -> Any:
    """Let the form fill to the end; gives the document, which must be valid, and must be what the form shows.

    `midway` is called once a list has two rows.
    """
    schema = json.loads(page.get_by_label("Schema").input_value())
    page.get_by_role("button", name="Fill the form").click()
    if midway is not None:
        expect(page.locator("#form .array > .body > :nth-child(2)").first).to_be_visible(timeout=RUN_LIMIT_MS)
        midway()
    expect(page.locator("#timings")).to_be_visible(timeout=RUN_LIMIT_MS)
    expect(page.get_by_role("status")).to_contain_text("Complete. The document is valid.")
    document = json.loads(page.locator("#json").inner_text())
    Draft202012Validator(schema).validate(document)
    assert set(page.locator("#form [data-state]:visible").evaluate_all("(all) => all.map((e) => e.dataset.state)")) <= {
        "complete",
        "absent",
    }
    assert sorted(shown(page)) == sorted(texts_of(document))
    return document


def keep_screenshot(page: Page, name: str) -> None:
    """Renew a picture in `docs/`, if this run of the tests is asked to."""
    if os.environ.get("CONSTRAINED_SCREENSHOTS") == "1":
        page.screenshot(path=DOCS / name, full_page=True)


def shown(page: Page) -> list[str]:
    """The texts in the form's boxes."""
    values: list[str] = page.locator("#form textarea:visible").evaluate_all("(all) => all.map((e) => e.value)")
    return values


def texts_of(value: Any) -> Iterator[str]:
    """All strings of a document that no choice holds: the presets' choices are lower-case words or currencies."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in {"level", "method", "currency", "sentiment", "aspect", "opinion"}:
                yield from texts_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts_of(below)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_fills(page: Page, preset: str) -> None:
    page.get_by_role("button", name=preset).click()
    page.get_by_label("Max tokens").fill("4000")
    fill(page)
    expect(page.locator("#model")).to_have_text("synthetic")


def test_cancel_reaches_the_engine(page: Page, synthetic: Served) -> None:
    page.get_by_label("Prompt").fill("slow")
    page.get_by_role("button", name="Fill the form").click()
    expect(page.locator("#form .field[data-state=complete]")).not_to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Cancelled.")
    wait_until(synthetic.backend.generations[-1].cancelled.is_set)


def test_a_run_that_fails_inside_the_service_keeps_the_form(page: Page) -> None:
    page.get_by_label("Prompt").fill("fail")
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    expect(page.locator("#form .field[data-state=complete]")).not_to_have_count(0)
    expect(page.locator("#form [data-state=streaming]")).to_have_count(0)


@pytest.mark.parametrize(
    ("label", "typed", "told"),
    [
        ("Schema", '{"type": "string", "format": "idn-hostname"}', "keyword that cannot be enforced"),
        ("Schema", '{"type": "strong"}', "not a usable JSON Schema"),
        ("Max tokens", "0", "A setting was refused"),
        ("Max tokens", "many", "A setting was refused"),
        ("Temperature", "-1", "A setting was refused"),
        ("Prompt", "word " * 2000, "too long"),
    ],
)
def test_what_the_service_refuses_is_told_beside_its_cause(page: Page, label: str, typed: str, told: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(typed)
    page.get_by_role("button", name="Fill the form").click()
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#{box.get_attribute('aria-describedby')}")).to_contain_text(told)


@pytest.fixture(scope="module")
def real_service(real_model: LoadedModel) -> Iterator[str]:
    from api.backend import ModelBackend
    from api.settings import Settings
    from constrained.decode.async_engine import AsyncEngine
    from constrained.decode.options import EngineOptions

    engine = AsyncEngine(real_model, EngineOptions())
    with live(ModelBackend(real_model, engine, Settings().schema_prompt)) as url:
        yield url


@pytest.mark.model
def test_the_form_fills_from_the_real_model(chromium: Browser, real_service: str) -> None:
    with open_page(chromium, real_service, viewport={"width": 1280, "height": 960}, reduced_motion="reduce") as page:
        page.get_by_role("button", name="Person").click()
        page.get_by_label("Seed").fill("1")
        page.evaluate(WATCH_STATES)
        person = fill(page, midway=lambda: keep_screenshot(page, "form-filling.png"))
        expect(page.get_by_label("City")).to_have_value(person["city"])
        expect(page.get_by_role("radiogroup", name="Level").first.get_by_label(person["hobbies"][0]["level"])).to_be_checked()
        moments = [set(moment) for moment in page.evaluate("window.moments")]
        assert any({"complete", "streaming", "pending"} <= moment for moment in moments)
        keep_screenshot(page, "form.png")


@pytest.mark.model
@pytest.mark.parametrize("preset", ["Invoice", "Family tree"])
def test_other_presets_fill_from_the_real_model(chromium: Browser, real_service: str, preset: str) -> None:
    with open_page(chromium, real_service) as page:
        page.get_by_role("button", name=preset).click()
        page.get_by_label("Seed").fill("3")
        fill(page)
