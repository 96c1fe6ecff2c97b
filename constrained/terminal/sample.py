"""The sample request that `make run` and `constrained demo` show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from constrained.client.wire import Options
    from schemas.events import DoneEvent

SAMPLE_SCHEMA: dict[str, Any] = {
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "hobbies": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 30},
                    "level": {"enum": ["beginner", "advanced", "expert"]},
                },
                "required": ["name", "level"],
                "additionalProperties": False,
            },
        },
        "address": {
            "type": "object",
            "properties": {
                "street": {"type": "string", "minLength": 1, "maxLength": 40},
                "city": {"type": "string", "minLength": 1, "maxLength": 30},
            },
            "required": ["street", "city"],
            "additionalProperties": False,
        },
        "about": {"type": "string", "minLength": 40, "maxLength": 160},
    },
    "required": ["name", "age", "hobbies", "address", "about"],
    "additionalProperties": False,
}
SAMPLE_PROMPT = (
    "Anna Berg is 34 years old. She lives in Lisbon, Portugal, at Rua Augusta 12. Her hobbies are chess (expert) and sailing "
    "(beginner)."
)
SAMPLE_OPTIONS: Options = {"max_tokens": 400, "temperature": 0.0}


def show_sample(url: str, console: Console) -> None:
    """Run the sample against the service at `url` and show it as a form; raises a `ClientError` where that fails."""
    from constrained.client import Client
    from constrained.stream import from_wire
    from constrained.terminal.form import Form
    from constrained.terminal.show import live
    from schemas.events import DeltaEvent

    messages = [{"role": "user", "content": SAMPLE_PROMPT}]
    console.print(f"{SAMPLE_PROMPT}\n", style="italic", highlight=False)
    with Client(url) as client, client.stream(SAMPLE_SCHEMA, messages=messages, **SAMPLE_OPTIONS) as stream:
        with live(Form(stream.start.order, SAMPLE_SCHEMA["title"]), console) as show:
            for event in stream.events():
                if isinstance(event, DeltaEvent):
                    show(from_wire(vars(op)) for op in event.ops)
            stream.final()
        if stream.done is not None:
            console.print(_summary(stream.done), style="dim", highlight=False)


def _summary(done: DoneEvent) -> str:
    verdict = "valid" if done.valid else "not valid"
    tokens, times = done.usage.completion_tokens, done.timings
    return f"{verdict}: {tokens} tokens, first after {times.ttft_ms:.0f} ms, {times.tokens_per_s:.0f} tokens/s"
