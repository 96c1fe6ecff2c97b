"""The page against the running service: first over a synthetic backend, then over the real model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser, Page, expect

from api.keys import entry_text, new_key
from api.settings import Settings
from constrained.decode.request import SamplingParams
from tests.api.server import Served, live, served, wait_until
from tests.api.synthetic import SyntheticBackend, SyntheticGeneration, compact
from tests.browser.browser_page import open_page
from tests.browser.cuttable import Cuttable

if TYPE_CHECKING:
    from constrained.decode.model import LoadedModel

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
PRESETS = ["Person", "Invoice", "Family tree", "Review"]
RUN_LIMIT_MS = 180_000
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "reduced_motion": "reduce", "device_scale_factor": 2}

STATES = "(all) => all.map((e) => e.dataset.state)"

# Keeps each set of states that the form's fields had at one moment, as a reader of the screen would see them.
WATCH_STATES = """
() => {
  window.moments = [];
  const fields = document.querySelector("constrained-form").shadowRoot;
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


def fill(page: Page) -> Any:
    """Let the form fill to the end; gives the document, which must be valid, and must be what the form shows."""
    schema = json.loads(page.get_by_label("Schema").input_value())
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile("^Complete"), timeout=RUN_LIMIT_MS)
    expect(page.locator("#timings")).to_contain_text("tokens/s")
    document = json.loads(page.locator("#json").inner_text())
    Draft202012Validator(schema).validate(document)
    assert set(page.locator("#form [data-state]:visible").evaluate_all("(all) => all.map((e) => e.dataset.state)")) <= {
        "complete",
        "absent",
    }
    assert sorted(shown(page)) == sorted(texts_of(document))
    return document


RENEWS_PICTURES = os.environ.get("CONSTRAINED_SCREENSHOTS") == "1"


def keep_screenshot(page: Page, name: str, full_page: bool = True) -> None:
    """Renew a picture in `docs/`, if this run of the tests is asked to."""
    if RENEWS_PICTURES:
        page.screenshot(path=DOCS / name, full_page=full_page)


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
    page.locator("#settings-part summary").click()
    page.get_by_label("Max tokens").fill("4000")
    fill(page)
    expect(page.get_by_label("Model")).to_have_value("synthetic")


def test_cancel_reaches_the_engine(page: Page, synthetic: Served) -> None:
    page.get_by_label("Prompt").fill("hang")
    page.get_by_role("button", name="Fill the form").click()
    expect(page.locator("#form .field[data-state=complete]")).not_to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Cancelled.")
    wait_until(synthetic.backend.generations[-1].cancelled.is_set)


def test_a_run_that_fails_inside_the_service_keeps_the_form(page: Page) -> None:
    page.get_by_label("Prompt").fill("fail")
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
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
    page.locator("#settings-part summary").click()
    box = page.get_by_label(label, exact=True)
    box.fill(typed)
    page.get_by_role("button", name="Fill the form").click()
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#{box.get_attribute('aria-describedby')}")).to_contain_text(told)


IS_CORRECTED = "document.querySelector('constrained-form').value.age === 52"


def test_a_closed_value_is_corrected_while_the_run_goes_on(page: Page, synthetic: Served) -> None:
    page.get_by_label("Prompt").fill("hang")
    page.get_by_role("button", name="Fill the form").click()
    age = page.get_by_label("Age")
    expect(age).to_be_editable(timeout=RUN_LIMIT_MS)
    age.fill("200")
    age.press("Tab")
    expect(page.locator(".fault:visible")).to_contain_text("maximum of 120")
    expect(age).to_have_value("37")
    age.fill("52")
    age.press("Tab")
    page.wait_for_function(IS_CORRECTED, timeout=RUN_LIMIT_MS)
    run = page.evaluate("document.querySelector('constrained-form').run.id")
    synthetic.client.post(f"/v1/structured/{run}/steer", json={"text": "now write on"}).raise_for_status()
    expect(page.get_by_role("status")).to_contain_text(re.compile("^Complete"), timeout=RUN_LIMIT_MS)
    assert json.loads(page.locator("#json").inner_text())["age"] == 52
    expect(age).to_have_value("52")


def test_a_reload_finds_the_run_again(page: Page) -> None:
    page.get_by_label("Prompt").fill("slow")
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_label("Age")).to_be_editable(timeout=RUN_LIMIT_MS)
    page.reload()
    expect(page.get_by_label("Age")).to_have_value("37")
    expect(page.get_by_label("Prompt")).to_have_value("slow")
    expect(page.get_by_role("status")).to_contain_text(re.compile("^Complete"), timeout=RUN_LIMIT_MS)
    document = json.loads(page.locator("#json").inner_text())
    Draft202012Validator(json.loads(page.locator("#schema").input_value())).validate(document)
    page.reload()
    expect(page.get_by_role("status")).to_contain_text(re.compile("^Complete"))
    assert json.loads(page.locator("#json").inner_text()) == document


OVER_A_SOCKET = """
async (schema) => {
  const { Constrained } = await import("/static/constrained.js");
  const run = new Constrained({ transport: "websocket" }).stream({ schema, prompt: "hang", coalesce_ms: 0 });
  document.querySelector("constrained-form").run = run;
}
"""


def test_the_form_fills_and_is_corrected_over_a_websocket(page: Page, synthetic: Served) -> None:
    schema = json.loads(page.locator("#schema").input_value())
    sent: list[Any] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(json.loads(frame))))
    page.on("request", lambda request: sent.append(request.url))
    page.evaluate(OVER_A_SOCKET, schema)
    age = page.get_by_label("Age")
    expect(age).to_be_editable()
    age.fill("52")
    age.press("Tab")
    page.wait_for_function(IS_CORRECTED, timeout=RUN_LIMIT_MS)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Cancelled.")
    wait_until(synthetic.backend.generations[-1].cancelled.is_set)
    assert [message["op"] for message in sent] == ["start", "edit"]


def test_a_service_with_keys_asks_for_one(chromium: Browser, tmp_path: Path) -> None:
    key, file = new_key(), tmp_path / "keys.toml"
    file.write_text(entry_text("page", key), "utf-8")
    with served(SyntheticBackend(), Settings(api_keys=file)) as service, open_page(chromium, service.url) as page:
        box = page.get_by_label("API key")
        box.fill("nobody's")
        page.get_by_role("button", name="Fill the form").click()
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#settings-problem")).to_contain_text("asks for an API key")
        box.fill(key)
        box.press("Tab")
        expect(page.get_by_label("Model")).to_have_value("synthetic")
        fill(page)
        page.reload()
        expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")


MARINA = {
    "name": "Marina Costa",
    "age": 34,
    "city": "Setúbal",
    "hobbies": [
        {"hobby": "swimming", "level": "expert"},
        {"hobby": "pottery", "level": "amateur"},
        {"hobby": "chess", "level": "beginner"},
    ],
    "address": {"street": "Rua do Sol", "country": "Portugal"},
}


class HalfwayBackend(SyntheticBackend):
    """Writes half of Marina, up to the middle of a word, and waits."""

    def __init__(self) -> None:
        super().__init__(compact(MARINA), token_bytes=1)

    def submit(
        self, prompt_token_ids: list[int], params: SamplingParams, grammar: Any, *, prefix: bytes = b""
    ) -> SyntheticGeneration:
        generation = super().submit(prompt_token_ids, params, grammar, prefix=prefix)
        generation.directive = "hang"
        return generation


@pytest.mark.parametrize(
    ("name", "device"), [("form-filling.png", DESKTOP), ("form-phone.png", PHONE)], ids=["desktop", "phone"]
)
def test_in_mid_stream_one_can_see_what_is_there_what_comes_and_where_it_is(
    chromium: Browser, name: str, device: dict[str, Any]
) -> None:
    with served(HalfwayBackend()) as service, open_page(chromium, service.url, **device) as page:
        page.get_by_role("button", name="Fill the form").click()
        expect(page.get_by_label("Hobby").nth(1)).to_have_value("potter", timeout=RUN_LIMIT_MS)
        expect(page.get_by_role("status")).to_be_in_viewport()
        fields = page.locator("#form .field")
        states = dict(zip(fields.locator(".label").all_inner_texts(), fields.evaluate_all(STATES), strict=True))
        assert (states["Name"], states["Street"]) == ("complete", "pending")
        assert fields.evaluate_all(STATES).count("streaming") == 1
        keep_screenshot(page, name, full_page=device is DESKTOP)
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("status")).to_have_text("Cancelled.")


def test_what_the_network_breaks_is_marked_and_resume_brings_the_rest(chromium: Browser) -> None:
    backend = SyntheticBackend(compact(MARINA), token_bytes=1)
    with served(backend) as service, Cuttable(service.url) as line, open_page(chromium, line.url, **DESKTOP) as page:
        page.clock.install()
        page.get_by_label("Prompt").fill("wait")
        page.get_by_role("button", name="Fill the form").click()
        expect(page.locator(".row")).to_have_count(2, timeout=RUN_LIMIT_MS)
        line.cut(for_good=True)
        expect(page.get_by_role("status")).to_contain_text("Connecting again")
        expect(page.get_by_label("Name")).to_have_value("Marina Costa")
        while page.locator("constrained-form").get_attribute("state") == "running":
            page.clock.fast_forward(10_000)
        expect(page.get_by_role("status")).to_have_text("The connection was lost.")
        assert page.locator(".field").evaluate_all(STATES).count("complete") >= 4
        expect(page.locator("[data-state=interrupted]")).not_to_have_count(0)
        page.clock.run_for(1000)
        keep_screenshot(page, "form-failed.png")
        line.mend()
        backend.go_on()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("status")).to_contain_text(re.compile("^Complete"), timeout=RUN_LIMIT_MS)
        page.clock.run_for(1000)
        assert json.loads(page.locator("#json").inner_text()) == MARINA
        assert len(backend.generations) == 1


@pytest.fixture(scope="module")
def real_service(real_model: LoadedModel) -> Iterator[str]:
    from api.backend import ModelBackend
    from constrained.decode.async_engine import AsyncEngine
    from constrained.decode.options import EngineOptions

    engine = AsyncEngine(real_model, EngineOptions())
    with live(ModelBackend(real_model, engine, Settings().schema_prompt)) as url:
        yield url


@pytest.mark.model
def test_the_form_fills_from_the_real_model(chromium: Browser, real_service: str) -> None:
    with open_page(chromium, real_service, **DESKTOP) as page:
        page.locator("#settings-part summary").click()
        page.get_by_label("Seed").fill("1")
        page.locator("#settings-part summary").click()
        page.evaluate(WATCH_STATES)
        if RENEWS_PICTURES:
            fill(page)  # the times of a first run are those of its compilation
        person = fill(page)
        expect(page.get_by_label("City")).to_have_value(person["city"])
        expect(page.get_by_label("Level").first.locator("option:checked")).to_have_text(person["hobbies"][0]["level"])
        moments = [set(moment) for moment in page.evaluate("window.moments")]
        assert any({"complete", "streaming", "pending"} <= moment for moment in moments)
        keep_screenshot(page, "form.png")


@pytest.mark.model
@pytest.mark.parametrize("preset", ["Invoice", "Family tree"])
def test_other_presets_fill_from_the_real_model(chromium: Browser, real_service: str, preset: str) -> None:
    with open_page(chromium, real_service) as page:
        page.get_by_role("button", name=preset).click()
        page.locator("#settings-part summary").click()
        page.get_by_label("Seed").fill("3")
        fill(page)
