"""Tokens a second of two servers with OpenAI's protocol, side by side: ours and another, each over HTTP with streams.

    python benchmarks/decode_servers.py OURS OTHER [--batches 1,8,16] [--schema-batches 8] [--tokens 64] [--rounds 3]

Method
    OURS and OTHER are base URLs of servers that run already, with the same model in the same dtype and as many threads. For
    each number of requests at once the two take turns, round by round, idle while the other is asked. Every request streams
    a chat completion, greedy, of a prompt that no request had before; free text has exactly `--tokens` tokens (`min_tokens`).
    Under the schema of a person a document ends where it is complete, and its budget is three times `--tokens`; what servers
    count as tokens differs there (ours counts forced ones, which cost no step), so the time of a whole answer is given beside.
    Times are wall clock from the first request to the end of the last stream; tokens are those of the servers' own `usage`.

Checks, each fatal
    Every stream ends, free text with the tokens that were asked for; a document that ended is valid by `jsonschema`.

Prints a table, then one line of JSON. Exit status 1 where a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

import httpx
import jsonschema
from rich.console import Console
from rich.table import Table

from benchmarks.decode_runs import PEOPLE, PERSON, CheckError

TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """One stream as it ended."""

    text: str
    finish_reason: str
    num_tokens: int
    seconds: float
    first_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """One number of requests at once; medians of the rounds, `[ours, other]`."""

    requests: int
    schema: bool
    tokens_per_s: list[float]
    first_ms: list[float]
    finished: list[int]
    answer_s: list[float]
    ratio: float


async def ask(client: httpx.AsyncClient, model: str, text: str, tokens: int, schema: bool) -> Answer:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if schema:
        form = {"name": "person", "schema": PERSON, "strict": True}
        body |= {"max_tokens": 3 * tokens, "response_format": {"type": "json_schema", "json_schema": form}}
    else:
        body |= {"max_tokens": tokens, "min_tokens": tokens}
    pieces, reason, used, first_s, began = [], "", 0, 0.0, time.perf_counter()
    async with client.stream("POST", "/v1/chat/completions", json=body) as response:
        if response.status_code != 200:
            raise CheckError(f"{client.base_url}: {response.status_code} {(await response.aread())[:300]!r}")
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            event = json.loads(line[6:])
            used = (event.get("usage") or {}).get("completion_tokens", used)
            for choice in event.get("choices", ()):
                piece = choice["delta"].get("content") or ""
                first_s = first_s or (time.perf_counter() - began if piece else 0.0)
                pieces.append(piece)
                reason = choice.get("finish_reason") or reason
    return Answer("".join(pieces), reason, used, time.perf_counter() - began, first_s)


def check(answers: Sequence[Answer], tokens: int, schema: bool) -> None:
    for answer in answers:
        if schema and answer.finish_reason == "stop":
            jsonschema.validate(json.loads(answer.text), PERSON)
        elif not schema and answer.num_tokens != tokens:
            raise CheckError(f"{answer.num_tokens} tokens in place of {tokens}")


async def turn(
    client: httpx.AsyncClient, model: str, texts: list[str], tokens: int, schema: bool
) -> tuple[float, list[Answer]]:
    """Tokens a second of as many requests at once as there are texts."""
    began = time.perf_counter()
    answers = list(await asyncio.gather(*(ask(client, model, text, tokens, schema) for text in texts)))
    seconds = time.perf_counter() - began
    check(answers, tokens, schema)
    return sum(answer.num_tokens for answer in answers) / seconds, answers


def texts_of(count: int, label: str) -> list[str]:
    return [f"{label}{i}: describe {PEOPLE[i % len(PEOPLE)]} as a JSON object." for i in range(count)]


async def measure(sides: list[tuple[httpx.AsyncClient, str]], count: int, schema: bool, options: argparse.Namespace) -> Row:
    rounds = []
    for number in range(options.rounds + 1):  # the first one warms up
        label = f"{secrets.token_hex(4)} {number}-"  # no server has seen it
        rounds.append([await turn(*side, texts_of(count, label), options.tokens, schema) for side in sides])
    counted = rounds[1:]
    answers = [[answer for each in counted for answer in each[i][1]] for i in range(2)]
    return Row(
        count,
        schema,
        [round(statistics.median(each[i][0] for each in counted), 1) for i in range(2)],
        [round(1e3 * statistics.median(a.first_s for a in side)) for side in answers],
        [sum(a.finish_reason == "stop" for a in side) for side in answers],
        [round(statistics.median(a.seconds for a in side), 2) for side in answers],
        statistics.median(each[0][0] / each[1][0] for each in counted),
    )


async def run(options: argparse.Namespace) -> list[Row]:
    ours, other = (httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S) for url in (options.ours, options.other))
    async with ours, other:
        sides = [(client, (await client.get("/v1/models")).json()["data"][0]["id"]) for client in (ours, other)]
        cases = [(int(n), False) for n in options.batches.split(",") if n]
        cases += [(int(n), True) for n in options.schema_batches.split(",") if n]
        return [await measure(sides, count, schema, options) for count, schema in cases]


def show(rows: list[Row]) -> None:
    heads = ("ours", "other", "ours/other", "first token ms", "whole answer s", "ended")
    table = Table("requests", "schema", *heads, title="tokens/s, server to server (medians)")
    for row in rows:
        pairs = (" / ".join(map(str, pair)) for pair in (row.first_ms, row.answer_s, row.finished))
        rates = (f"{value:.1f}" for value in row.tokens_per_s)
        table.add_row(str(row.requests), "yes" if row.schema else "no", *rates, f"{row.ratio:.2f}", *pairs)
    Console(width=140).print(table)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="base URL")
    parser.add_argument("other", help="base URL")
    parser.add_argument("--batches", default="1,8,16", help="requests at once, without a schema")
    parser.add_argument("--schema-batches", default="8", help="requests at once, under the schema")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    try:
        rows = asyncio.run(run(options))
    except (CheckError, jsonschema.ValidationError) as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    show(rows)
    print(json.dumps({"benchmark": "decode_servers", "tokens": options.tokens, "rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
