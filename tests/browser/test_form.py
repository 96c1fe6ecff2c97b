"""The page and its form against a stub service that sends one step at a time: states, errors, and access for everyone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.browser_page import open_page
from tests.browser.service_stub import DEADLINE_S, ServiceStub
from tests.clients.programs import absent

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
START = {
    "run": "run-1",
    "protocol": 1,
    "model": "stub-model",
    "schema": SCHEMA,
    "schema_hash": "0",
    "order": ORDER,
    "choices": 1,
}


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


def compose(page: Page, **typed: str) -> None:
    """Type into the request, wherever the page is folded."""
    page.locator("#compose details").evaluate_all("(parts) => parts.forEach((part) => (part.open = true))")
    for name, value in typed.items():
        page.locator(f"#compose [name={name}]").fill(value)


class Run:
    """A run as a test drives it: the page started it, the stub sends its events."""

    def __init__(self, page: Page, stub: ServiceStub) -> None:
        self.page = page
        self.stub = stub
        self.seq = 0
        compose(page, schema=json.dumps(SCHEMA))
        page.get_by_role("button", name="Fill the form").click()
        stub.send("start", **START)
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
        timings = {"queue_ms": 1, "ttft_ms": 81.4, "total_ms": 205, "tokens_per_s": 19.5}
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
    labels = run.page.locator("#form .fields > .group > .body > * > .head > .label")
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
    expect(run.page.locator("#json")).to_have_text('{\n  "customer": "Ada Lovelace 🐚"')


def test_scalars_appear_whole_and_can_then_be_changed(run: Run) -> None:
    page = run.page
    run.send(opened("", "object"), field("/count"))
    assert run.state("Count") == "next"
    run.send(put("/count", 12345678901234567890, "12345678901234567890"), put("/size", "large"), put("/gift", False))
    expect(page.get_by_label("Count")).to_have_value("12345678901234567890")
    expect(page.get_by_role("radiogroup", name="Size").get_by_label("large")).to_be_checked()
    expect(page.get_by_role("radiogroup", name="Gift").get_by_label("no")).to_be_checked()
    run.send(closed(""))
    run.done()
    expect(page.get_by_role("radiogroup", name="Size").get_by_label("small")).to_be_enabled()
    page.get_by_role("radiogroup", name="Size").get_by_label("small").check()
    page.get_by_label("Count").fill("many")
    expect(page.get_by_label("Count")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#json")).to_contain_text('"count": 12345678901234567890,\n  "size": "small",\n  "gift": false')
    page.get_by_label("Count").fill("98765432109876543210")
    page.get_by_label("Count").press("Tab")
    expect(page.locator("#json")).to_contain_text('"count": 98765432109876543210,')
    assert run.stub.commands == []


def test_null_is_shown_as_none(run: Run) -> None:
    run.send(opened("", "object"), put("/note", None))
    note = run.page.get_by_label("Note")
    expect(note).to_have_value("")
    expect(note).to_have_attribute("placeholder", "none")
    expect(run.page.locator("#json")).to_contain_text('"note": null')


def test_what_the_user_corrects_goes_to_the_run_which_has_the_last_word(run: Run) -> None:
    page, customer = run.page, run.page.get_by_label("Customer")
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/count", 3), opened("/note", "string"))
    customer.fill("Grace")
    customer.press("Tab")
    page.wait_for_function("document.querySelector('constrained-form').value.customer === 'Ada'")
    assert run.stub.wait_for_command() == ("edit", {"path": "/customer", "value": "Grace", "choice": 0})
    status = {"": "streaming", "/customer": "complete", "/count": "complete", "/note": "streaming"}
    document = {"customer": "Grace", "count": 3, "note": ""}
    run.seq += 1
    run.stub.send("snapshot", seq=run.seq, choice=0, value=document, open=["", "/note"], status=status, edited="/customer")
    expect(run.status).to_have_text("stub-model is writing. Customer corrected.")
    run.send(text("/note", "Ring"))
    expect(customer).to_have_value("Grace")
    expect(page.locator("#json")).to_contain_text('"customer": "Grace"')
    run.stub.refuse(400, "The value for '/count' is not allowed.", "invalid_value", "/count")
    page.get_by_label("Count").fill("12345678901234567890")
    page.get_by_label("Count").press("Tab")
    expect(page.locator(".fault:visible")).to_have_text("The value for '/count' is not allowed.")
    assert run.stub.commands[-1][1] == {"path": "/count", "value": 12345678901234567890, "choice": 0}
    expect(page.get_by_label("Count")).to_have_value("3")
    expect(page.get_by_label("Count")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Count")).to_have_accessible_description(re.compile("not allowed"))
    expect(run.status).to_have_text("stub-model is writing. Count was not corrected.")


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


def test_a_correction_that_comes_too_late_for_the_run_is_the_users_own(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/count", 3))
    run.stub.refuse(409, "The run has ended.", "run_ended", "run")
    run.page.get_by_label("Customer").fill("Grace")
    run.page.get_by_label("Customer").press("Tab")
    run.stub.wait_for_command()
    run.send(closed(""))
    run.done()
    expect(run.page.locator("#json")).to_contain_text('"customer": "Grace"')
    expect(run.page.locator(".fault:visible")).to_have_count(0)
    expect(run.page.get_by_label("Customer")).to_have_value("Grace")


def test_a_list_that_was_replaced_as_a_whole_is_drawn_anew(run: Run) -> None:
    rows = [
        op
        for at in range(3)
        for op in (opened(f"/lines/{at}", "object"), *whole(f"/lines/{at}/item", "x"), closed(f"/lines/{at}"))
    ]
    run.send(opened("", "object"), opened("/lines", "array"), *rows, closed("/lines"))
    expect(run.page.locator(".row")).to_have_count(3)
    status = {"": "streaming", "/lines": "complete", "/lines/0": "complete", "/lines/0/item": "complete", "/count": "next"}
    snapshot = {"value": {"lines": [{"item": "Bread"}]}, "open": [""], "status": status, "edited": "/lines"}
    run.stub.send("snapshot", seq=run.seq + 1, choice=0, **snapshot)
    expect(run.page.locator(".row")).to_have_count(1)
    expect(run.page.get_by_label("Item")).to_have_value("Bread")
    expect(run.page.locator(".field", has_text="Count")).to_have_attribute("data-state", "next")


def test_a_list_of_flat_objects_is_a_table_that_grows(run: Run) -> None:
    page = run.page
    expect(page.locator(".columns")).to_have_text("Item")
    rows = [opened("/lines", "array")]
    for index, item in enumerate(["Bread", "Cheese"]):
        rows += [opened(f"/lines/{index}", "object"), *whole(f"/lines/{index}/item", item), closed(f"/lines/{index}")]
    run.send(opened("", "object"), *rows, opened("/lines/2", "object"), *whole("/lines/2/extra", "x"))
    boxes = [page.get_by_label("Item").nth(index).bounding_box() for index in range(2)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    heading = page.locator(".columns span").last.bounding_box()
    assert heading is not None
    assert abs(heading["x"] - boxes[0]["x"]) < 2
    expect(page.get_by_label("Extra")).to_have_value("x")
    assert page.locator(".row .label", has_text="Item").first.evaluate("(label) => label.clientWidth") <= 1


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
    expect(group.get_by_role("radiogroup", name="By").get_by_role("radio")).to_have_count(2)
    run.send(put("/delivery/by", "post"), variant("/delivery", "/properties/delivery/anyOf/0"))
    expect(group.get_by_label("post")).to_be_checked()
    expect(group.get_by_role("radiogroup", name="By").get_by_role("radio")).to_have_count(1)
    expect(group.get_by_label("Street")).not_to_be_editable()
    run.send(*whole("/delivery/street", "Shore Road 1"), closed("/delivery"))
    expect(group.get_by_label("Street")).to_have_value("Shore Road 1")


def test_a_union_may_turn_out_to_be_a_scalar(run: Run) -> None:
    run.send(opened("", "object"), variant("/delivery", "/properties/delivery/anyOf/2"), *whole("/delivery", "in May"))
    expect(run.page.get_by_label("Delivery")).to_have_value("in May")


def test_recursion_is_collapsed_until_it_opens(run: Run) -> None:
    inner = run.page.locator("#form .group .group.object:not(.row) > .body")
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
    expect(run.page.locator("#timings")).to_contain_text("12 (30 %)")
    strip = run.page.locator("#strip")
    assert strip.evaluate("(bar) => bar.firstElementChild.clientWidth / bar.clientWidth") == pytest.approx(0.3, abs=0.01)
    expect(run.page.locator(".notice")).to_be_hidden()
    assert json.loads(run.page.locator("#json").inner_text()) == {"customer": "Ada", "count": 1}


def test_cancelling_ends_the_connection_and_keeps_what_is_complete(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), opened("/tags", "array"), opened("/tags/0", "string"))
    run.page.get_by_role("button", name="Cancel").click()
    assert run.stub.wait_for_command() == ("cancel", {})
    assert run.stub.disconnected.wait(DEADLINE_S)
    expect(run.status).to_have_text("Cancelled.")
    assert [run.state(label) for label in ("Customer", "Tags", "Count")] == ["complete", "interrupted", "pending"]
    expect(run.page.get_by_label("Customer")).to_be_editable()
    expect(run.page.get_by_label("Tags 1")).not_to_be_editable()


def test_an_error_event_marks_what_was_open_and_retry_starts_anew(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), field("/count"), opened("/note", "string"), text("/note", "Pl"))
    run.stub.send("error", seq=9, code="internal_error", message="The step failed.", path="/note", retriable=True)
    run.stub.end()
    expect(run.status).to_have_text("The step failed.")
    expect(run.page.locator(".notice")).to_contain_text("Completed fields are kept")
    assert [run.state(label) for label in ("Customer", "Count", "Note")] == ["complete", "pending", "interrupted"]
    expect(run.page.get_by_label("Note")).to_have_value("Pl")
    expect(run.page.locator("[aria-busy]")).to_have_count(0)
    run.page.get_by_role("button", name="Try again").click()
    expect(run.page.locator(".notice")).to_be_hidden()
    run.stub.send("start", **START | {"run": "r", "model": "again"})
    expect(run.status).to_have_text("again is writing.")
    expect(run.page.get_by_label("Customer")).to_have_value("")
    assert len(run.stub.requests) == 2


def test_a_run_goes_on_by_itself_after_a_connection_that_broke(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"), opened("/note", "string"), text("/note", "Ring"))
    run.stub.end()
    run.stub.wait_for(lambda: run.stub.joins)
    assert run.stub.joins == [f"/v1/structured/run-1/events?after={run.seq}"]
    run.send(text("/note", " twice"), closed("/note"))
    expect(run.page.get_by_label("Note")).to_have_value("Ring twice")
    expect(run.status).to_have_text("stub-model is writing.")
    assert len(run.stub.requests) == 1


def test_a_run_that_is_gone_keeps_the_form(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"))
    run.stub.refuse(410, "The run has expired.", "run_expired", "run")
    run.stub.end()
    expect(run.status).to_have_text("The run has expired.")
    expect(run.page.get_by_role("button", name="Try again")).to_be_visible()
    expect(run.page.get_by_label("Customer")).to_have_value("Ada")


# Follows a run by a client that gives up at once; the element needs nothing of the page.
FOLLOW = """
async (body) => {
  const { Constrained } = await import("/static/constrained.js");
  const client = new Constrained({ maxReconnects: 0 });
  document.querySelector("constrained-form").run = client.stream(body);
}
"""


def test_after_a_lost_connection_resume_goes_on_where_it_was(page: Page, stub: ServiceStub) -> None:
    page.evaluate(FOLLOW, {"schema": SCHEMA, "prompt": "x", "resumable": True})
    stub.send("start", **START)
    begun = [opened("", "object"), *whole("/customer", "Ada"), opened("/note", "string"), text("/note", "Ring")]
    stub.send("delta", seq=6, choice=0, ops=begun)
    expect(page.get_by_label("Note")).to_have_value("Ring")
    stub.end()
    expect(page.get_by_role("status")).to_have_text("The connection was lost.")
    expect(page.locator(".notice")).to_contain_text("Completed fields are kept")
    expect(page.locator(".field", has_text="Note")).to_have_attribute("data-state", "interrupted")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    stub.wait_for(lambda: stub.joins)
    stub.send("delta", seq=8, choice=0, ops=[text("/note", " twice"), closed("/note")])
    expect(page.get_by_label("Note")).to_have_value("Ring twice")
    expect(page.locator(".field", has_text="Note")).to_have_attribute("data-state", "complete")
    expect(page.locator(".notice")).to_be_hidden()
    assert stub.joins == ["/v1/structured/run-1/events?after=6"]
    assert len(stub.requests) == 1


def test_a_reload_takes_the_run_up_again_with_what_was_typed(run: Run) -> None:
    page, stub = run.page, run.stub
    run.send(opened("", "object"), *whole("/customer", "Ada"), opened("/note", "string"), text("/note", "Ri"))
    typed = page.get_by_label("Prompt").input_value()
    page.reload()
    stub.wait_for(lambda: stub.joins)
    assert stub.joins == ["/v1/structured/run-1/events"]
    stub.send("start", **START)
    status = {"": "streaming", "/customer": "complete", "/note": "streaming"}
    stub.send("snapshot", seq=9, choice=0, value={"customer": "Ada", "note": "Ring"}, open=["", "/note"], status=status)
    expect(page.get_by_label("Customer")).to_have_value("Ada")
    expect(page.get_by_label("Note")).to_have_value("Ring")
    expect(page.get_by_label("Prompt")).to_have_value(typed)
    expect(page.locator("#schema")).to_have_value(json.dumps(SCHEMA))
    stub.send("delta", seq=11, choice=0, ops=[text("/note", "!"), closed("/note")])
    expect(page.get_by_label("Note")).to_have_value("Ring!")
    page.get_by_role("button", name="Cancel").click()
    assert stub.wait_for_command() == ("cancel", {})
    assert len(stub.requests) == 1


def test_a_reload_after_the_run_has_expired_shows_the_empty_form(run: Run) -> None:
    run.send(opened("", "object"), *whole("/customer", "Ada"))
    run.stub.refuse(404, "There is no such run.", "run_not_found", "run")
    run.page.reload()
    expect(run.status).to_have_text("Ready.")
    assert run.state("Customer") == "pending"
    run.stub.wait_for(lambda: run.stub.joins)
    run.page.reload()
    expect(run.status).to_have_text("Ready.")
    assert len(run.stub.joins) == 1


def test_the_stream_and_its_events_can_be_looked_into(run: Run) -> None:
    page = run.page
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/count", 3))
    page.get_by_role("radio", name="Stream").check()
    expect(page.get_by_label("The stream as it came")).to_contain_text('"op": "text", "path": "/customer", "add": "Ada"')
    expect(page.locator("#json")).to_be_hidden()
    page.get_by_role("radio", name="Events").check()
    rows = page.locator("#events > li:visible")
    expect(rows).to_have_count(6)
    page.get_by_label("Only paths with").fill("count")
    expect(rows).to_have_count(1)
    rows.locator("summary").click()
    expect(rows.locator("pre")).to_contain_text('"value": 3')


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
    compose(page, schema='{"properties": {"b": true, "1": {"maximum": 12345678901234567890}}}', prompt="Write.", seed="7")
    compose(page, top_p="0.9", top_k="40", min_p="0.05")
    page.get_by_label("Whitespace").select_option("indented")
    page.get_by_label("Order of keys").select_option("any")
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
            "top_p": 0.9,
            "top_k": 40,
            "min_p": 0.05,
            "model": "stub-model",
            "whitespace": "indented",
            "property_order": "any",
            "resumable": True,
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
    expect(problem).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("Not started.")
    expect(page.locator(".notice")).to_be_hidden()


def test_a_refusal_with_no_place_is_told_above_the_form(page: Page, stub: ServiceStub) -> None:
    stub.refuse(503, "Too many runs.", "overloaded", None)
    page.get_by_role("button", name="Fill the form").click()
    expect(page.get_by_role("status")).to_have_text("Too many runs.")
    expect(page.locator(".kept")).to_be_empty()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


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
        expect(page.locator("#form .fields > fieldset > legend")).to_have_text(schema["title"])
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
    expect(run.status).to_have_text("stub-model is writing. Lines complete.")
    run.send(opened("/tags", "array"), *whole("/tags/0", "a secret text"))
    assert "secret" not in run.status.inner_text()


def test_every_control_has_a_name_and_the_open_group_is_busy(run: Run) -> None:
    run.send(
        opened("", "object"),
        *whole("/customer", "Ada"),
        put("/size", "small"),
        *[opened("/tags", "array"), *whole("/tags/0", "x")],
    )
    nameless = """
    () => [document, document.querySelector("constrained-form").shadowRoot]
      .flatMap((root) => [...root.querySelectorAll("input, textarea, select, button")])
      .filter((element) => !element.labels?.length && !element.ariaLabel)
      .filter((element) => element.matches("select") || !element.textContent.trim())
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
      const box = document.querySelector("constrained-form").shadowRoot.querySelector("textarea");
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


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_needs_no_sideways_scrolling(chromium: Browser, stub: ServiceStub, width: int) -> None:
    with open_page(chromium, stub.url, viewport={"width": width, "height": 844}) as page:
        run = Run(page, stub)
        wordy = [*whole("/customer", "W" * 40), *whole("/note", "unbreakable" * 7), *whole("/" + "k" * 60, "v")]
        lines = [opened("/lines", "array"), opened("/lines/0", "object"), *whole("/lines/0/item", "Bread")]
        parents = ["/parent" * depth for depth in range(1, 25)]
        deep = [op for path in parents for op in (opened(path, "object"), *whole(f"{path}/customer", "Ada"))]
        run.send(opened("", "object"), *wordy, put("/size", "large"), *lines, closed("/lines/0"), closed("/lines"), *deep)
        page.get_by_role("radio", name="Events").check()
        run.stub.send("error", seq=99, code="internal_error", message="broken" * 30)
        expect(page.locator(".notice")).to_be_visible()
        too_wide = """
        () => [document.body, document.querySelector("constrained-form").shadowRoot]
          .flatMap((root) => [...root.querySelectorAll("*:not(.pane *)")])
          .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth)
          .map((element) => element.outerHTML.slice(0, 80))
        """
        assert page.evaluate(too_wide) == []
        deepest = page.get_by_label("Customer").last
        assert deepest.evaluate("(box) => box.clientWidth") > 200
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


# Each text's colour against what is painted behind it; a canvas knows what any CSS colour is in RGB.
PALE_TEXTS = """
() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data;
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
  };
  const texts = [document.body, document.querySelector("constrained-form").shadowRoot]
    .flatMap((root) => [...root.querySelectorAll("*")])
    .filter((e) => e.checkVisibility() && !e.closest("[aria-disabled=true]"))
    .filter((e) => e.value || [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  const contrast = (element) => {
    const [one, other] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05);
  };
  return [texts.length, texts.filter((e) => contrast(e) < 4.5).map((e) => `${e.outerHTML.slice(0, 60)} ${contrast(e)}`)];
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_in_light_and_in_the_dark(chromium: Browser, stub: ServiceStub, scheme: Any) -> None:
    with open_page(chromium, stub.url, color_scheme=scheme, reduced_motion="reduce") as page:
        run = Run(page, stub)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(247, 246, 242)") == (scheme == "light")
        lines = [opened("/lines", "array"), opened("/lines/0", "object"), *whole("/lines/0/item", "Bread")]
        run.send(opened("", "object"), *whole("/customer", "Ada"), put("/size", "small"), *lines, closed("/lines/0"))
        run.send(closed("/lines"), opened("/tags", "array"), opened("/tags/0", "string"), text("/tags/0", "new"))
        for ended in False, True:
            if ended:
                run.stub.send("error", seq=99, code="internal_error", message="It failed.")
                expect(page.locator(".notice")).to_be_visible()
            count, pale = page.evaluate(PALE_TEXTS)
            assert count > 40
            assert pale == []


AXE = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
FAULTS = """
async () => (await axe.run()).violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 120)}`))
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_any_state(chromium: Browser, stub: ServiceStub, scheme: Any) -> None:
    """By the rules of axe-core, which sees into the element."""
    if not AXE.exists():
        absent("there is no axe-core; run `make clients`")
    with open_page(chromium, stub.url, color_scheme=scheme, reduced_motion="reduce") as page:
        page.add_script_tag(path=AXE)
        assert page.evaluate(FAULTS) == []
        run = Run(page, stub)
        lines = [opened("/lines", "array"), opened("/lines/0", "object"), *whole("/lines/0/item", "Bread")]
        run.send(opened("", "object"), *whole("/customer", "Ada"), put("/size", "small"), put("/note", None), *lines)
        run.send(closed("/lines/0"), closed("/lines"), opened("/tags", "array"), opened("/tags/0", "string"))
        assert page.evaluate(FAULTS) == []
        stub.refuse(400, "The value is not allowed.", "invalid_value", "/customer")
        page.get_by_label("Customer").fill("x")
        page.get_by_label("Customer").press("Tab")
        expect(page.locator(".fault:visible")).to_have_count(1)
        page.get_by_role("radio", name="Events").check()
        assert page.evaluate(FAULTS) == []
        stub.send("error", seq=99, code="internal_error", message="It failed.")
        expect(page.locator(".notice")).to_be_visible()
        assert page.evaluate(FAULTS) == []


def test_motion_stops_for_those_who_ask(chromium: Browser, stub: ServiceStub) -> None:
    moving = "[document, document.querySelector('constrained-form').shadowRoot].flatMap((root) => root.getAnimations()).length"
    with open_page(chromium, stub.url, reduced_motion="reduce") as page:
        run = Run(page, stub)
        run.send(opened("", "object"), field("/customer"), opened("/lines", "array"), opened("/lines/0", "object"))
        assert page.evaluate(moving) == 0
    with open_page(chromium, stub.url, reduced_motion="no-preference") as page:
        run = Run(page, stub)
        run.send(opened("", "object"), field("/customer"))
        assert page.evaluate(moving) > 0


def test_all_can_be_done_with_the_keyboard(run: Run) -> None:
    page = run.page
    run.send(opened("", "object"), *whole("/customer", "Ada"), put("/size", "large"), put("/gift", True), closed(""))
    run.done()
    expect(run.status).to_contain_text("Complete.")
    page.get_by_label("Customer").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Grace")
    page.keyboard.press("Tab")  # the count was not given, and is not there
    expect(page.get_by_role("radiogroup", name="Size").get_by_label("large")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radiogroup", name="Size").get_by_label("small")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio", name="JSON")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("The stream as it came")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#json")).to_contain_text('{\n  "customer": "Grace",\n  "size": "small"')
    page.get_by_label("Prompt").press("Control+Enter")
    run.stub.send("start", **START)
    expect(run.status).to_have_text("stub-model is writing.")
    expect(page.get_by_label("Prompt")).to_be_focused()
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(run.status).to_have_text("Cancelled.")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
