"""The page against a stub service that sends one step at a time: the form's states, errors, and access for everyone."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.browser_page import open_page
from tests.browser.service_stub import ServiceStub

pytestmark = pytest.mark.browser

Op = dict[str, Any]

SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 40, "description": "Who pays."},
        "count": {"type": "integer"},
        "size": {"enum": ["small", "large"]},
        "gift": {"type": "boolean"},
        "note": {"type": ["string", "null"], "maxLength": 80},
        "lines": {
            "type": "array",
            "items": {"title": "Line", "type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "delivery": {
            "anyOf": [
                {
                    "title": "Post",
                    "type": "object",
                    "properties": {"by": {"const": "post"}, "street": {"type": "string"}},
                    "required": ["by", "street"],
                },
                {"title": "Pickup", "type": "object", "properties": {"by": {"const": "pickup"}}, "required": ["by"]},
                {"title": "Later", "type": "string"},
            ]
        },
        "parent": {"$ref": "#"},
    },
    "required": ["customer", "count"],
}
ORDER = ["/" + key for key in SCHEMA["properties"]]


def field(path: str) -> Op:
    return {"op": "field", "path": path, "types": ["string"]}


def opened(path: str, kind: str) -> Op:
    return {"op": "open", "path": path, "type": kind}


def text(path: str, add: str) -> Op:
    return {"op": "text", "path": path, "add": add}


def put(path: str, value: Any, raw: str | None = None) -> Op:
    return {"op": "set", "path": path, "value": value, "raw": raw}


def variant(path: str, pointer: str) -> Op:
    return {"op": "variant", "path": path, "schema_pointer": pointer}


def closed(path: str) -> Op:
    return {"op": "close", "path": path}


def whole(path: str, value: str) -> list[Op]:
    return [opened(path, "string"), text(path, value), closed(path)]


class Run:
    """A run as a test drives it: the page started it, the stub sends its events."""

    def __init__(self, page: Page, stub: ServiceStub) -> None:
        self.page = page
        self.stub = stub
        self.seq = 0
        page.get_by_label("Schema").fill(json.dumps(SCHEMA))
        page.get_by_role("button", name="Fill the form").click()
        start = {"run": "run-1", "protocol": 1, "model": "stub-model", "schema_hash": "0", "choices": 1}
        stub.send("start", schema=SCHEMA, order=ORDER, **start)
        expect(self.status).to_have_text("stub-model is writing.")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("status")

    def send(self, *ops: Op) -> None:
        """One frame, and wait until the page has it."""
        self.seq += len(ops)
        self.stub.send("delta", seq=self.seq, choice=0, ops=list(ops))
        expect(self.page.locator("#event-count")).to_have_text(str(self.seq + 1))

    def done(self, finish_reason: str = "stop", status: str = "complete") -> None:
        usage = {"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49, "forced_tokens": 12, "cached_tokens": 0}
        timings = {"queue_ms": 1, "ttft_ms": 81.4, "total_ms": 2050, "tokens_per_s": 19.5}
        ending = {"finish_reason": finish_reason, "finish_reasons": [finish_reason], "status": status}
        valid = status == "complete"
        self.stub.send("done", seq=self.seq, valid=valid, closed_by_budget=False, usage=usage, timings=timings, **ending)

    def state(self, label: str) -> str | None:
        """The state of the field or group with this label."""
        heading = self.page.locator("#form .label").filter(has_text=label).first
        return heading.locator("xpath=ancestor::*[@data-state][1]").get_attribute("data-state")


@pytest.fixture
def run(page: Page, stub: ServiceStub) -> Run:
    return Run(page, stub)


def test_all_fields_are_drawn_before_the_first_token(run: Run) -> None:
    labels = run.page.locator("#form > .group > .body > * > .head > .label")
    names = ["Customer", "Count", "Size", "Gift", "Note", "Lines", "Tags", "Delivery", "Order"]
    expect(labels).to_have_text(names)
    assert {run.state(name) for name in names} == {"pending"}
    expect(run.page.get_by_label("Customer")).not_to_be_editable()


def test_a_skeleton_is_as_wide_as_its_value_is_likely_to_be(run: Run) -> None:
    def width(label: str) -> float:
        well = run.page.locator(".field", has_text=label).first.locator(".well")
        return float(well.evaluate("(well) => parseFloat(getComputedStyle(well, '::after').width)"))

    assert width("Count") < width("Customer") < width("Note")


def test_a_text_is_next_then_streams_then_is_the_users(run: Run) -> None:
    customer = run.page.get_by_label("Customer")
    run.send(opened("", "object"), field("/customer"))
    assert run.state("Customer") == "next"
    run.send(opened("/customer", "string"), text("/customer", "Ada "))
    assert run.state("Customer") == "streaming"
    expect(customer).to_have_value("Ada ")
    expect(customer).not_to_be_editable()
    run.send(text("/customer", "Lovelace 🐚"), closed("/customer"))
    assert run.state("Customer") == "complete"
    expect(customer).to_be_editable()
    customer.fill("Grace")
    expect(run.page.locator("#json")).to_have_text('{\n  "customer": "Grace"')


def test_scalars_appear_whole_and_can_then_be_changed(run: Run) -> None:
    page = run.page
    run.send(opened("", "object"), field("/count"))
    assert run.state("Count") == "next"
    run.send(put("/count", 12345678901234567890, "12345678901234567890"), put("/size", "large"), put("/gift", False))
    expect(page.get_by_label("Count")).to_have_value("12345678901234567890")
    expect(page.get_by_role("radiogroup", name="Size").get_by_label("large")).to_be_checked()
    expect(page.get_by_role("radiogroup", name="Gift").get_by_label("no")).to_be_checked()
    page.get_by_role("radiogroup", name="Size").get_by_label("small").check()
    page.get_by_label("Count").fill("many")
    expect(page.get_by_label("Count")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#json")).to_contain_text('"count": 12345678901234567890,\n  "size": "small",\n  "gift": false')


def test_null_is_shown_as_none(run: Run) -> None:
    run.send(opened("", "object"), put("/note", None))
    note = run.page.get_by_label("Note")
    expect(note).to_have_value("")
    expect(note).to_have_attribute("placeholder", "none")
    note.fill("Ring twice")
    expect(run.page.locator("#json")).to_contain_text('"note": "Ring twice"')


def test_rows_append_as_they_open(run: Run) -> None:
    page = run.page
    rows = page.get_by_role("group", name=re.compile(r"^Lines Line \d"))
    run.send(opened("", "object"), opened("/lines", "array"), field("/lines/0"))
    expect(rows).to_have_count(0)
    run.send(opened("/lines/0", "object"))
    expect(rows).to_have_count(1)
    expect(page.get_by_role("group", name="Lines Line 1")).to_have_attribute("aria-busy", "true")
    run.send(*whole("/lines/0/item", "Bread"), closed("/lines/0"), opened("/lines/1", "object"))
    expect(rows).to_have_count(2)
    expect(page.get_by_role("group", name="Lines Line 1")).not_to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("group", name="Lines Line 1").get_by_label("Item")).to_have_value("Bread")


def test_rows_of_texts_are_named_after_their_list(run: Run) -> None:
    tags = [*whole("/tags/0", "new"), *whole("/tags/1", "blue")]
    run.send(opened("", "object"), opened("/tags", "array"), *tags, closed("/tags"))
    expect(run.page.get_by_label("Tags 2", exact=True)).to_have_value("blue")
    expect(run.page.get_by_role("group", name="Tags")).to_have_accessible_description("2 entries")


def test_a_union_is_neutral_until_it_is_decided(run: Run) -> None:
    page = run.page
    delivery = page.locator("#form .field.neutral", has_text="Delivery")
    run.send(opened("", "object"), field("/delivery"))
    expect(delivery).to_contain_text("post, pickup or later")
    run.send(opened("/delivery", "object"))
    group = page.get_by_role("group", name="Delivery")
    expect(delivery).to_have_count(0)
    expect(group.get_by_role("textbox")).to_have_count(0)
    run.send(field("/delivery/by"))
    expect(group.get_by_role("radiogroup", name="By")).to_contain_text("post")
    run.send(put("/delivery/by", "post"), variant("/delivery", "/properties/delivery/anyOf/0"))
    expect(group.get_by_label("post")).to_be_checked()
    expect(group.get_by_label("Street")).not_to_be_editable()
    run.send(*whole("/delivery/street", "Shore Road 1"), closed("/delivery"))
    expect(group.get_by_label("Street")).to_have_value("Shore Road 1")


def test_a_union_may_turn_out_to_be_a_scalar(run: Run) -> None:
    run.send(opened("", "object"), variant("/delivery", "/properties/delivery/anyOf/2"), *whole("/delivery", "in May"))
    expect(run.page.get_by_label("Delivery")).to_have_value("in May")


def test_recursion_is_collapsed_until_it_opens(run: Run) -> None:
    inner = run.page.locator("#form .group .group.object > .body")
    expect(inner).to_be_empty()
    run.send(opened("", "object"), opened("/parent", "object"), *whole("/parent/customer", "Bea"))
    expect(inner.get_by_label("Customer")).to_have_value("Bea")


def test_members_beyond_the_known_ones_appear_with_their_value(run: Run) -> None:
    run.send(opened("", "object"), *whole("/giftWrap", "paper"))
    expect(run.page.get_by_label("Gift wrap")).to_have_value("paper")


def test_what_was_left_out_is_marked_absent_when_its_parent_closes(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/count", 1), closed(""))
    assert run.state("Gift") == "absent"
    assert run.state("Lines") == "absent"
    assert run.state("Customer") == "complete"
    expect(run.page.get_by_role("group", name="Lines")).to_contain_text("not given")


def test_a_finished_run_shows_its_verdict_and_times(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/count", 1), closed(""))
    run.done()
    expect(run.status).to_have_text("Complete. The document is valid.")
    expect(run.page.locator("#timings")).to_contain_text("81 ms")
    expect(run.page.locator("#timings")).to_contain_text("19.5 tokens/s")
    expect(run.page.locator("#notice")).to_be_hidden()
    assert json.loads(run.page.locator("#json").inner_text()) == {"customer": "Ada", "count": 1}


def test_cancelling_ends_the_connection_and_keeps_what_is_complete(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), opened("/tags", "array"), opened("/tags/0", "string"))
    run.page.get_by_role("button", name="Cancel").click()
    assert run.stub.disconnected.wait(10)
    expect(run.status).to_have_text("Cancelled.")
    assert [run.state(label) for label in ("Customer", "Tags", "Count")] == ["complete", "interrupted", "pending"]
    expect(run.page.get_by_label("Customer")).to_be_editable()
    expect(run.page.get_by_label("Tags 1")).not_to_be_editable()


def test_an_error_event_marks_what_was_open_and_retry_starts_anew(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), field("/count"), opened("/note", "string"), text("/note", "Pl"))
    run.stub.send("error", seq=9, code="internal_error", message="The step failed.", path="/note", retriable=True)
    run.stub.end()
    expect(run.page.locator("#notice")).to_contain_text("The step failed. Completed fields are kept")
    assert [run.state(label) for label in ("Customer", "Count", "Note")] == ["complete", "pending", "interrupted"]
    expect(run.page.get_by_label("Note")).to_have_value("Pl")
    expect(run.page.locator("[aria-busy]")).to_have_count(0)
    run.page.get_by_role("button", name="Retry").click()
    expect(run.page.locator("#notice")).to_be_hidden()
    run.stub.send("start", run="r", model="again", schema=SCHEMA, order=ORDER, choices=1)
    expect(run.status).to_have_text("again is writing.")
    expect(run.page.get_by_label("Customer")).to_have_value("")
    assert len(run.stub.requests) == 2


def test_a_lost_connection_is_told_and_keeps_the_form(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"))
    run.stub.end()
    expect(run.status).to_have_text("The connection ended before the document did.")
    expect(run.page.get_by_role("button", name="Retry")).to_be_visible()
    expect(run.page.get_by_label("Customer")).to_have_value("Ada")


def test_a_run_cut_at_its_limit_is_not_called_complete(run: Run) -> None:
    run.send(opened("", "object"), opened("/customer", "string"), text("/customer", "A"))
    run.done(finish_reason="length", status="incomplete")
    expect(run.status).to_have_text("The token limit was reached.")
    assert run.state("Customer") == "interrupted"


def test_a_snapshot_replaces_what_was_missed(run: Run) -> None:
    run.send(opened("", "object"), opened("/customer", "string"), text("/customer", "A"))
    value = {"customer": "Ada", "count": 3, "lines": [{"item": "Br"}]}
    status = dict.fromkeys(["/customer", "/count"], "complete") | dict.fromkeys(
        ["", "/lines", "/lines/0", "/lines/0/item"], "streaming"
    )
    run.seq += 1
    run.stub.send("snapshot", seq=9, choice=0, value=value, open=["", "/lines", "/lines/0", "/lines/0/item"], status=status)
    expect(run.page.get_by_label("Item")).to_have_value("Br")
    assert [run.state(label) for label in ("Customer", "Count", "Item")] == ["complete", "complete", "streaming"]
    run.send(text("/lines/0/item", "ead"), closed("/lines/0/item"))
    expect(run.page.get_by_label("Item")).to_have_value("Bread")


def test_the_request_holds_what_was_typed(page: Page, stub: ServiceStub) -> None:
    page.get_by_label("Schema").fill('{"properties": {"b": true, "1": {"maximum": 12345678901234567890}}}')
    page.get_by_label("Prompt").fill("Write.")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Whitespace").select_option("indented")
    page.get_by_label("Prompt").press("Control+Enter")
    stub.send("error", seq=0, code="internal_error", message="Enough.")
    expect(page.get_by_role("status")).to_have_text("Enough.")
    assert stub.requests == [
        {
            "schema": {"properties": {"b": True, "1": {"maximum": 12345678901234567890}}},
            "messages": [{"role": "user", "content": "Write."}],
            "max_tokens": 512,
            "temperature": 0.3,
            "seed": 7,
            "whitespace": "indented",
        }
    ]


@pytest.mark.parametrize(
    ("code", "param", "label", "told"),
    [
        ("unsupported_keyword", "/properties/a/pattern", "Schema", "keyword that cannot be enforced"),
        ("unsatisfiable_schema", "", "Schema", "No value can satisfy"),
        ("context_length_exceeded", "messages", "Prompt", "too long"),
        ("max_tokens_too_small", "max_tokens", "Max tokens", "too small"),
        ("invalid_request", "temperature", "Temperature", "A setting was refused"),
    ],
)
def test_a_refusal_stands_beside_its_cause(page: Page, stub: ServiceStub, code: str, param: str, label: str, told: str) -> None:
    stub.refuse(400, "Here is why.", code, param)
    page.get_by_role("button", name="Fill the form").click()
    culprit = page.get_by_label(label, exact=True)
    expect(culprit).to_have_attribute("aria-invalid", "true")
    problem = page.locator(f"#{culprit.get_attribute('aria-describedby')}")
    expect(problem).to_contain_text(told)
    expect(problem).to_contain_text("Here is why.")
    expect(page.get_by_role("status")).to_contain_text("Not started.")
    expect(page.locator("#notice")).to_be_hidden()


def test_a_refusal_with_no_place_is_told_above_the_form(page: Page, stub: ServiceStub) -> None:
    stub.refuse(503, "Too many runs.", "overloaded", None)
    page.get_by_role("button", name="Fill the form").click()
    expect(page.locator("#notice")).to_contain_text("The service is busy. Try again in a moment. Too many runs.")
    expect(page.locator("#notice-kept")).to_be_hidden()


@pytest.mark.parametrize(
    ("label", "typed", "told"),
    [("Schema", "{'type': 1}", "not valid JSON"), ("Schema", " ", "A schema is needed"), ("Prompt", " ", "A prompt is needed")],
)
def test_what_cannot_be_sent_is_told_without_asking_the_service(
    page: Page, stub: ServiceStub, label: str, typed: str, told: str
) -> None:
    page.get_by_label(label).fill(typed)
    page.get_by_role("button", name="Fill the form").click()
    expect(page.locator(".problem:visible")).to_contain_text(told)
    assert stub.requests == []


def test_what_is_no_schema_still_leaves_a_form(page: Page) -> None:
    oddities: list[Any] = [
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {}}, "required": 5},
        {"anyOf": "x"},
        {"enum": 1},
        {"$ref": "#/%"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        [],
        None,
    ]
    for oddity in oddities:
        page.get_by_label("Schema").fill(json.dumps(oddity))
        expect(page.locator("#form [data-state]")).to_have_count(1)


def test_each_preset_draws_its_form(page: Page) -> None:
    presets = page.get_by_role("group", name="Presets").get_by_role("button")
    for index in range(presets.count()):
        presets.nth(index).click()
        schema = json.loads(page.get_by_label("Schema").input_value())
        expect(page.locator("#form > fieldset > legend")).to_have_text(schema["title"])
        expect(presets.nth(index)).to_have_attribute("aria-pressed", "true")
        assert page.locator("#form .field").count() >= 2


def test_the_focus_stays_where_the_user_left_it(run: Run) -> None:
    run.page.get_by_label("Prompt").focus()
    run.send(opened("", "object"), *whole("/customer", "Ada"), variant("/delivery", "/properties/delivery/anyOf/2"))
    run.send(*whole("/delivery", "soon"), opened("/lines", "array"), opened("/lines/0", "object"))
    expect(run.page.get_by_label("Prompt")).to_be_focused()
    run.page.get_by_label("Customer").focus()
    run.send(*whole("/lines/0/item", "Bread"), closed("/lines/0"), closed("/lines"), closed(""))
    run.done()
    expect(run.status).to_contain_text("Complete.")
    expect(run.page.get_by_label("Customer")).to_be_focused()


def test_only_milestones_are_announced(run: Run) -> None:
    page = run.page
    expect(page.locator("[aria-live], [role=status], [role=alert], [role=log], output")).to_have_count(1)
    expect(run.status).to_have_attribute("aria-live", "polite")
    run.send(opened("", "object"), *whole("/customer", "Ada"))
    expect(run.status).to_have_text("stub-model is writing.")
    run.send(opened("/lines", "array"), closed("/lines"))
    expect(run.status).to_have_text("Lines complete.")


def test_every_control_has_a_name_and_the_open_group_is_busy(run: Run) -> None:
    run.send(
        opened("", "object"),
        *whole("/customer", "Ada"),
        put("/size", "small"),
        *[opened("/tags", "array"), *whole("/tags/0", "x")],
    )
    nameless = """
    () => [...document.querySelectorAll("input, textarea, select, button")]
      .filter((element) => !element.labels?.length && !element.textContent.trim())
      .map((element) => element.outerHTML)
    """
    assert run.page.evaluate(nameless) == []
    busy = run.page.locator("fieldset[aria-busy=true]")
    expect(busy).to_have_count(2)
    run.send(closed("/tags"))
    expect(busy).to_have_count(1)
    run.send(closed(""))
    expect(busy).to_have_count(0)


def test_a_frame_writes_each_text_once(run: Run) -> None:
    """However many ops arrive together, the page changes a path once."""
    count_writes = """
    () => {
      const box = document.querySelector("#form textarea");
      const { get, set } = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value");
      window.writes = 0;
      Object.defineProperty(box, "value", { get, set(text) { window.writes++; set.call(this, text); } });
    }
    """
    run.send(opened("", "object"), opened("/customer", "string"))
    run.page.evaluate(count_writes)
    run.send(*[text("/customer", "ab") for _ in range(40)])
    expect(run.page.get_by_label("Customer")).to_have_value("ab" * 40)
    assert run.page.evaluate("window.writes") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(chromium: Browser, stub: ServiceStub, scheme: Any) -> None:
    with open_page(chromium, stub.url, viewport={"width": 360, "height": 740}, color_scheme=scheme) as page:
        run = Run(page, stub)
        wordy = [*whole("/customer", "W" * 40), *whole("/note", "unbreakable" * 7), *whole("/" + "k" * 60, "v")]
        lines = [opened("/lines", "array"), opened("/lines/0", "object"), *whole("/lines/0/item", "Bread")]
        parents = ["/parent" * depth for depth in range(1, 25)]
        deep = [op for path in parents for op in (opened(path, "object"), *whole(f"{path}/customer", "Ada"))]
        run.send(opened("", "object"), *wordy, put("/size", "large"), *lines, closed("/lines/0"), closed("/lines"), *deep)
        page.locator("#event-pane summary").click()
        run.stub.send("error", seq=9, code="internal_error", message="broken" * 30)
        expect(page.locator("#notice")).to_be_visible()
        too_wide = """
        () => [...document.querySelectorAll("body *:not(details *)")]
          .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth)
          .map((element) => element.outerHTML.slice(0, 80))
        """
        assert page.evaluate(too_wide) == []
        deepest = page.get_by_label("Customer").last
        assert deepest.evaluate("(box) => box.clientWidth") > 200
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_motion_stops_for_those_who_ask(chromium: Browser, stub: ServiceStub) -> None:
    with open_page(chromium, stub.url, reduced_motion="reduce") as page:
        run = Run(page, stub)
        run.send(opened("", "object"), field("/customer"), opened("/lines", "array"), opened("/lines/0", "object"))
        assert page.evaluate("document.getAnimations().length") == 0
    with open_page(chromium, stub.url, reduced_motion="no-preference") as page:
        run = Run(page, stub)
        run.send(opened("", "object"), field("/customer"))
        assert page.evaluate("document.getAnimations().length") > 0
