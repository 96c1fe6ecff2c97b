"""How much of its answer the model gets right, by how it is told the schema: as an outline, as JSON Schema, or not at all.

    python benchmarks/prompt_forms.py [--model NAME] [--answers 120] [--seed 1]

Method
    The user states facts in one or two sentences, and the schema asks for just these (five schemas: a person, a product, an
    event, an order, an address; the facts are drawn by the seed). Every answer is generated greedily under its schema. A field
    is right where it equals the fact to the character; an answer is whole where all of it does.

Bias
    A task of extraction alone, which favours whatever brings the model to copy. Greedy answers of one small model: read the
    differences of several seeds, not the shares.

Prints a table, then one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from rich.console import Console
from rich.table import Table

from constrained import compile_json_schema
from constrained.decode.async_engine import AsyncEngine
from constrained.decode.model import LoadedModel, load_model
from constrained.decode.prompt import SchemaPrompt, encode_prompt
from constrained.decode.request import SamplingParams

MOST_TOKENS = 200
WORDS = "You answer with JSON only. Your answer must {}\nUse the facts that the user gives."
FORMS: dict[str, SchemaPrompt | None] = {
    "outline": SchemaPrompt(WORDS.format("have this form:\n{outline}")),
    "JSON Schema": SchemaPrompt(WORDS.format("follow this JSON Schema:\n{schema}")),
    "not told": None,
}
NAMES = ("Anna Berg", "Luis Ortega", "Mina Sato", "Paul Weber", "Chloe Martin", "Omar Haddad")
CITIES = ("Lyon", "Oslo", "Kyoto", "Quito", "Dresden", "Porto")
JOBS = ("nurse", "teacher", "carpenter", "pilot", "baker", "lawyer")
COLORS = ("red", "green", "blue", "black")
ITEMS = ("lamp", "chair", "backpack", "kettle", "bicycle", "desk")
TITLES = ("Jazz Night", "Book Fair", "City Run", "Robot Show")
STREETS = ("Mill Lane 4", "Rue Haute 12", "Park Road 9")
TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


@dataclass(frozen=True, slots=True)
class Task:
    """What the user says, and the value that says the same."""

    text: str
    schema: dict[str, Any]
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One form over all tasks."""

    form: str
    prompt_tokens: float
    fields_right: float
    whole: int
    answers: int


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def person(pick: Random) -> Task:
    name, age, city, job = pick.choice(NAMES), pick.randint(18, 80), pick.choice(CITIES), pick.choice(JOBS)
    schema = closed(name={**TEXT, "maxLength": 40}, age={**INTEGER, "minimum": 0, "maximum": 120}, city=TEXT, job=TEXT)
    text = f"{name} is a {job}, {age} years old, and lives in {city}."
    return Task(text, schema, {"name": name, "age": age, "city": city, "job": job})


def product(pick: Random) -> Task:
    item, color, price, is_there = pick.choice(ITEMS), pick.choice(COLORS), pick.randint(5, 300), pick.random() < 0.5
    schema = closed(item=TEXT, color={"enum": list(COLORS)}, price={**INTEGER, "minimum": 0}, in_stock={"type": "boolean"})
    text = f"We sell a {color} {item} for {price} euros. It is {'in stock' if is_there else 'sold out'}."
    return Task(text, schema, {"item": item, "color": color, "price": price, "in_stock": is_there})


def event(pick: Random) -> Task:
    title, place, guests = pick.choice(TITLES), pick.choice(CITIES), pick.randint(10, 900)
    date = f"2026-0{pick.randint(1, 9)}-{pick.randint(10, 28)}"
    schema = closed(title=TEXT, date={**TEXT, "format": "date"}, place=TEXT, guests=INTEGER)
    text = f"The {title} takes place in {place} on {date} with {guests} guests."
    return Task(text, schema, {"title": title, "date": date, "place": place, "guests": guests})


def order(pick: Random) -> Task:
    customer, items, counts = pick.choice(NAMES), pick.sample(ITEMS, 2), [pick.randint(1, 9) for _ in range(2)]
    line = closed(item=TEXT, quantity=INTEGER)
    schema = closed(customer=TEXT, lines={"type": "array", "items": line, "minItems": 1, "maxItems": 3})
    text = f"{customer} orders {counts[0]} of the {items[0]} and {counts[1]} of the {items[1]}."
    lines = [{"item": item, "quantity": count} for item, count in zip(items, counts, strict=True)]
    return Task(text, schema, {"customer": customer, "lines": lines})


def address(pick: Random) -> Task:
    name, street, city, code = pick.choice(NAMES), pick.choice(STREETS), pick.choice(CITIES), str(pick.randint(10000, 99999))
    schema = closed(name=TEXT, address=closed(street=TEXT, zip={**TEXT, "maxLength": 10}, city=TEXT))
    text = f"Send it to {name}, {street}, {code} {city}."
    return Task(text, schema, {"name": name, "address": {"street": street, "zip": code, "city": city}})


KINDS: tuple[Callable[[Random], Task], ...] = (person, product, event, order, address)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars of a value with their paths."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if members is None:
        yield path, value
    else:
        for key, member in members:
            yield from leaves(member, f"{path}/{key}")


async def answer(engine: AsyncEngine, model: LoadedModel, task: Task, form: SchemaPrompt | None) -> tuple[int, Any]:
    """Tokens of the prompt, and the value that the model gave."""
    prompt = encode_prompt(model, [{"role": "user", "content": task.text}], task.schema, form)
    grammar = compile_json_schema(task.schema, model.vocabulary)
    params = SamplingParams(temperature=0, max_tokens=MOST_TOKENS)
    data = b"".join([chunk.data async for chunk in engine.submit(prompt, params, grammar)])
    return len(prompt), json.loads(data)


async def measure(engine: AsyncEngine, model: LoadedModel, name: str, tasks: Sequence[Task]) -> Row:
    answers = await asyncio.gather(*(answer(engine, model, task, FORMS[name]) for task in tasks))
    wanted = [dict(leaves(task.value)) for task in tasks]
    given = [dict(leaves(value)) for _, value in answers]
    right = sum(got.get(path) == fact for want, got in zip(wanted, given, strict=True) for path, fact in want.items())
    whole = sum(want == got for want, got in zip(wanted, given, strict=True))
    prompt_tokens = sum(count for count, _ in answers) / len(tasks)
    return Row(name, round(prompt_tokens, 1), round(right / sum(map(len, wanted)), 3), whole, len(tasks))


async def run(options: argparse.Namespace) -> list[Row]:
    pick = Random(options.seed)
    tasks = [kind(pick) for kind in KINDS for _ in range(options.answers // len(KINDS))]
    model = load_model(options.model)
    engine = AsyncEngine(model)
    try:
        return [await measure(engine, model, name, tasks) for name in FORMS]
    finally:
        await engine.close()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None, help="folder or hub id; the default model where not given")
    parser.add_argument("--answers", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rows = asyncio.run(run(options))
    table = Table("told as", "prompt tokens", "fields right", "whole answers", title=f"of {rows[0].answers} answers")
    for row in rows:
        table.add_row(row.form, f"{row.prompt_tokens:.0f}", f"{row.fields_right:.3f}", str(row.whole))
    Console(width=100).print(table)
    print(json.dumps({"benchmark": "prompt_forms", "seed": options.seed, "rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
