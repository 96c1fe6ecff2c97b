"""The element on a page of its own: docs/form.md as it stands, in the page's look, in a `<form>`, with other words."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from api.settings import Settings
from tests.api.server import Served, served
from tests.api.synthetic import SyntheticBackend, compact
from tests.browser.browser_page import open_page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]


def snippet(file: str, language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text("utf-8"), re.DOTALL)
    return str(found)


HTML = snippet("docs/form.md", "html")
CSS = snippet("docs/form.md", "css")
PERSON = {"name": "Ada", "age": 36, "about": "Wrote the first program."}


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(compact(PERSON), token_bytes=2, delay_s=0.005)) as service:
        yield service


@pytest.fixture
def page(chromium: Browser, service: Served) -> Iterator[Page]:
    """Where the service's files are at hand, and nothing else is."""
    with open_page(chromium, f"{service.url}/static/icon.svg") as page:
        page.route(
            "**/host.html", lambda route: route.fulfill(content_type="text/html", body="<!doctype html><title>Host</title>")
        )
        page.goto(f"{service.url}/host.html")
        yield page


def host(page: Page, html: str) -> None:
    page.set_content(f"<!doctype html><title>Host</title>{html}", wait_until="commit")


def test_the_page_of_the_docs_fills_its_form(page: Page) -> None:
    host(page, HTML)
    expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")
    expect(page.get_by_label("Name")).to_have_value("Ada")
    expect(page.get_by_label("About")).to_have_value(PERSON["about"])
    expect(page.locator("constrained-form")).to_have_attribute("state", "complete")
    assert page.evaluate("document.querySelector('constrained-form').value") == PERSON


def test_so_does_the_page_of_the_readme(page: Page) -> None:
    host(page, snippet("README.md", "html"))
    expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")
    expect(page.get_by_label("Name")).to_have_value("Ada")


def test_a_page_gives_it_its_own_look(page: Page) -> None:
    host(page, f"<style>{CSS}</style>{HTML}")
    expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")
    expect(page.locator(".bar")).to_have_css("background-color", "rgb(122, 61, 184)")
    expect(page.locator(".status")).to_have_css("font-size", "14px")
    expect(page.get_by_label("Name")).to_have_css("border-radius", "2px")


def test_in_a_form_the_document_is_a_field_of_its_own(page: Page) -> None:
    host(page, f"<form>{HTML.replace('<constrained-form', '<constrained-form name=person', 1)}</form>")
    data = "new FormData(document.querySelector('form')).get('person')"
    expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")
    assert json.loads(page.evaluate(data)) == PERSON
    page.evaluate(
        "window.edits = []; document.querySelector('constrained-form').addEventListener('edit', (e) => edits.push(e.detail))"
    )
    page.get_by_label("Age").fill("12345678901234567890")
    page.get_by_label("Age").press("Tab")
    assert '"age": 12345678901234567890' in page.evaluate(data)
    assert page.evaluate("edits[0].path + edits[0].raw") == "/age12345678901234567890"


def test_it_says_what_the_page_wants_it_to_say(page: Page) -> None:
    words = (
        "form.words = { complete: 'Fertig.', optional: 'freiwillig', absent: (label) => 'fehlt', needsInteger: 'Ganzzahl!' };"
    )
    optional = HTML.replace('required: ["name", "age", "about"]', 'required: ["name"]').replace("age: {", "nick: true, age: {")
    host(page, optional.replace("form.schema = {", f"{words}\n  form.schema = {{", 1))
    expect(page.get_by_role("status")).to_have_text("Fertig.")
    expect(page.locator(".field", has_text="Nick")).to_contain_text("freiwilligfehlt")
    page.get_by_label("Age").fill("many")
    expect(page.locator(".fault:visible")).to_have_text("Ganzzahl!")
    expect(page.get_by_label("Age")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Age").fill("7")
    expect(page.locator(".fault:visible")).to_have_count(0)
    page.get_by_label("Age").press("Tab")
    assert page.evaluate("document.querySelector('constrained-form').value.age") == 7


def test_two_forms_on_a_page_do_not_meet(page: Page) -> None:
    host(page, HTML + HTML.replace("person", "other").replace('"Person"', '"Other"'))
    for name in "Person", "Other":
        group = page.get_by_role("group", name=name)
        expect(group.get_by_label("Name")).to_have_value("Ada")
    expect(page.get_by_role("status")).to_have_text(["Complete. The document is valid."] * 2)


def test_what_was_set_before_the_element_was_there_is_taken_over(page: Page) -> None:
    early = "document.querySelector('constrained-form').schema = { type: 'object', title: 'Early', properties: { a: true } };"
    module = "<script type=module src=/static/constrained-form.js></script>"
    host(page, f"<constrained-form></constrained-form><script>{early}</script>{module}")
    expect(page.get_by_role("group", name="Early")).to_be_visible()


def test_it_is_styled_before_it_is_shown(page: Page) -> None:
    page.route("**/form.css", lambda route: None)  # which never comes
    host(page, HTML)
    page.wait_for_function("document.querySelector('constrained-form')?.value?.about")
    expect(page.locator(".form")).to_be_hidden()


CROSS_ORIGIN = """
<constrained-form></constrained-form>
<script type="module">
  import { Constrained } from "SERVICE/static/constrained.js";
  import "SERVICE/static/constrained-form.js";

  const schema = { type: "object", title: "Person", properties: { name: { type: "string" } } };
  const client = new Constrained({ baseUrl: "SERVICE", headers: { "X-Tenant": "t" } });
  window.form = document.querySelector("constrained-form");
  form.run = client.stream({ schema, prompt: "Invent a person.", resumable: true });
  window.again = async () => (form.run = client.join(form.run.id));
</script>
"""


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """The origin of a server of another kind."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_of_another_origin_may_use_it_all(chromium: Browser, tmp_path: Path) -> None:
    backend = SyntheticBackend(compact(PERSON), token_bytes=2, delay_s=0.005)
    with serving_files(tmp_path) as origin, served(backend, Settings(cors_origins=(origin,))) as service:
        html = f"<!doctype html><link rel=icon href=data:>{CROSS_ORIGIN.replace('SERVICE', service.url)}"
        (tmp_path / "index.html").write_text(html, "utf-8")
        with open_page(chromium, origin) as page:
            use_from_elsewhere(page)


def use_from_elsewhere(page: Page) -> None:
    expect(page.get_by_role("status")).to_have_text("Complete. The document is valid.")
    expect(page.locator(".form")).to_have_css("border-radius", "12px")
    page.evaluate("again()")
    expect(page.get_by_label("Name")).to_have_value("Ada")
    refused = "form.run.client.stream({ schema: { type: 'nothing' }, prompt: 'x' })"
    refusal = page.evaluate(f"{refused}.final().catch((error) => [error.code, error.requestId])")
    assert refusal[0] == "invalid_schema"
    assert refusal[1]
