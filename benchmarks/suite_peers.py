"""What engines make of the official JSON Schema test suite, keyword by keyword: decided right, refused, decided wrongly.

    pip install outlines-core==0.2.14
    python benchmarks/suite_peers.py [--draft draft2020-12] [--engines ours,llguidance,xgrammar,outlines-core] [--limit-s 20]

Method
    Data: the required tests of one draft; a file of the suite is a keyword. Each group's schema goes to each engine, over a
    vocabulary of single bytes, in a process of its own (`benchmarks.workers`). An instance is accepted where some text of it
    goes through, byte by byte, each allowed by the mask before it, and the end after the last: as the suite writes its keys,
    and with the keys in the order in which the schema declares them, beyond ASCII escaped and not. Whole floats are written as
    integers.
    "Refused": the schema is not compiled, or not within the limit; also where the engine dies. An engine that refuses a schema
    with the word "unsatisfiable" rejects its instances.

Bias
    A refusal is honest, and a service may fall back; a wrong decision is silent. Engines that generate keys in declared order
    are not blamed for others. Ours runs with every text and with the suite's remote documents at hand; its default profile
    accepts fewer texts, and nothing invalid (`tests/conformance/test_suite.py`).

Prints a table in Markdown and a line of totals for each engine. Exit status 1 where ours is not right on every test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the file runs as a script too

from benchmarks import vocabularies
from benchmarks.engines.worker import Options
from benchmarks.workers import Worker

SUITE = Path(__file__).resolve().parents[2] / "shared" / "data" / "json-schema-test-suite"
ENGINES = {
    "ours": "benchmarks.engines.ours_in_full",
    "llguidance": "benchmarks.engines.llguidance_engine",
    "xgrammar": "benchmarks.engines.xgrammar_engine",
    "outlines-core": "benchmarks.engines.outlines_engine",
}
SCHEMAS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


@dataclass
class Count:
    """Of the tests of one keyword."""

    right: int = 0
    refused: int = 0
    wrong: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.right + other.right, self.refused + other.refused, self.wrong + other.wrong)

    def __str__(self) -> str:
        return f"{self.right} / {self.refused} / {self.wrong}"


@dataclass
class Tally:
    """Counts by engine and keyword, and what each engine decided wrongly."""

    counts: dict[str, dict[str, Count]] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, engine: str, keyword: str, group: dict[str, Any], verdicts: list[bool] | None) -> None:
        """The verdicts on a group's tests; None where its schema was refused."""
        count = self.counts.setdefault(engine, {}).setdefault(keyword, Count())
        for place, test in enumerate(group["tests"]):
            if verdicts is None:
                count.refused += 1
            elif verdicts[place] == test["valid"]:
                count.right += 1
            else:
                count.wrong += 1
                self.wrong.setdefault(engine, []).append(f"{keyword}: {group['description']}: {test['description']}")

    def total(self, engine: str) -> Count:
        return sum(self.counts[engine].values(), Count())


def groups(suite: Path, draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keyword and group, each schema with its dialect."""
    for path in sorted((suite / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            if isinstance(group["schema"], dict):
                group["schema"] = {"$schema": SCHEMAS[draft], **group["schema"]}
            yield path.stem, group


def whole(value: Any) -> Any:
    """Whole floats as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e60:
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    return {name: whole(member) for name, member in value.items()} if isinstance(value, dict) else value


def declared(schema: Any) -> list[str]:
    """All names of properties, in the order in which they are met first; those that are only required last."""
    names, required = dict[str, None](), dict[str, None]()

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            names.update(dict.fromkeys(part.get("properties") or () if isinstance(part.get("properties"), dict) else ()))
            required.update(dict.fromkeys(filter(lambda name: isinstance(name, str), _listed(part.get("required")))))
            for member in part.values():
                collect(member)
        for item in _listed(part):
            collect(item)

    collect(schema)
    return list(names | required)


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def texts(schema: Any, value: Any) -> list[bytes]:
    """The texts of an instance that are tried."""
    order = {name: place for place, name in enumerate(declared(schema))}

    def sorted_(part: Any) -> Any:
        if isinstance(part, list):
            return [sorted_(item) for item in part]
        if isinstance(part, dict):
            return {name: sorted_(part[name]) for name in sorted(part, key=lambda name: order.get(name, len(order)))}
        return part

    given = whole(value)
    spelled = (json.dumps(part, ensure_ascii=escaped) for part in (given, sorted_(given)) for escaped in (True, False))
    return [text.encode("utf-8", "replace") for text in dict.fromkeys(spelled)]


def verdicts(worker: Worker, group: dict[str, Any]) -> list[bool] | None:
    """Which instances the engine accepts; None where it refuses the schema."""
    spelled = [texts(group["schema"], test["data"]) for test in group["tests"]]
    answer = worker.ask(json.dumps(group["schema"]), [list(text) for several in spelled for text in several])
    if "unsatisfiable" in answer.get("refused", "").lower():
        return [False] * len(spelled)
    if "documents" not in answer:
        return None
    accepted = iter(document["accepted"] for document in answer["documents"])
    tried = [[next(accepted) for _ in several] for several in spelled]
    return [any(several) for several in tried]


def run(suite: Path, draft: str, engines: Sequence[str], limit_s: float) -> tuple[Tally, dict[str, str]]:
    """The tally, and the versions of the engines."""
    os.environ["SUITE_REMOTES"] = str(suite / "remotes")
    tally, versions, cases = Tally(), {}, list(groups(suite, draft))
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "vocabulary.npz"
        vocabularies.write_vocabulary(vocabularies.load("byte").vocabulary, path)
        for engine in engines:
            worker = Worker(Options(ENGINES.get(engine, engine), path, None, "cpu"), limit_s)
            worker.start()  # an engine that is not installed refuses nothing: it ends the run
            try:
                shown = track(cases, engine, console=Console(stderr=True), disable=not sys.stderr.isatty())
                for keyword, group in shown:
                    tally.add(engine, keyword, group, verdicts(worker, group))
            finally:
                worker.stop()
            versions[engine] = worker.version
    return tally, versions


def table(tally: Tally, versions: dict[str, str]) -> str:
    """In Markdown: right / refused / wrong, by keyword and engine."""
    engines = list(versions)
    lines = ["| keyword | " + " | ".join(f"{engine} {versions[engine]}" for engine in engines) + " |"]
    lines.append("|---" * (len(engines) + 1) + "|")
    for keyword in tally.counts[engines[0]]:
        cells = (str(tally.counts[engine][keyword]) for engine in engines)
        lines.append(f"| `{keyword}` | " + " | ".join(cells) + " |")
    lines.append("| all | " + " | ".join(str(tally.total(engine)) for engine in engines) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draft", choices=SCHEMAS, default="draft2020-12")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated, or a module's path")
    parser.add_argument("--limit-s", type=float, default=20.0, help="for a schema and its tests, in wall time")
    parser.add_argument("--suite", type=Path, default=SUITE, help="the folder of the test suite")
    parser.add_argument("--wrong", action="store_true", help="name the tests that were decided wrongly")
    options = parser.parse_args(arguments)
    tally, versions = run(options.suite, options.draft, options.engines.split(","), options.limit_s)
    print(f"{options.draft}, {datetime.now(UTC):%Y-%m-%d}; right / refused / wrong\n")
    print(table(tally, versions))
    for engine in versions if options.wrong else ():
        print(f"\n{engine}:", *tally.wrong.get(engine, []), sep="\n- ")
    ours = tally.total("ours") if "ours" in versions else Count()
    return int(ours.refused + ours.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
