"""How runs lie in Redis: the names of the keys, and entries and checkpoints as their values.

::

    <prefix>run:<run>           hash    the head, and the replica that generates the run
    <prefix>run:<run>:events    stream  one entry each, with the id <seq>-0, so that writing twice changes nothing
    <prefix>run:<run>:snapshot  string  where the stream was trimmed: the documents as of some op
    <prefix>known:<run>         string  outlives the others: the run was there
    <prefix>owner:<replica>     string  expires unless the replica is alive
    <prefix>commands:<replica>  channel what other replicas ask of it
    <prefix>reply:<id>          list    its answer
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.feed import Entry, Feed, Head
from constrained.stream import from_wire


@dataclass(frozen=True, slots=True)
class Keys:
    prefix: str

    def run(self, run: str) -> str:
        return f"{self.prefix}run:{run}"

    def events(self, run: str) -> str:
        return f"{self.prefix}run:{run}:events"

    def snapshot(self, run: str) -> str:
        return f"{self.prefix}run:{run}:snapshot"

    def known(self, run: str) -> str:
        return f"{self.prefix}known:{run}"

    def owner(self, replica: str) -> str:
        return f"{self.prefix}owner:{replica}"

    def commands(self, replica: str) -> str:
        return f"{self.prefix}commands:{replica}"

    def reply(self, command: str) -> str:
        return f"{self.prefix}reply:{command}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The documents of a run as of their ops `seqs`; entries up to `trimmed_seq` are gone."""

    trimmed_seq: int
    seqs: list[int]
    snapshots: list[str | None]

    @classmethod
    def of(cls, feed: Feed) -> Checkpoint:
        seqs = feed.seqs
        return cls(feed.trimmed_seq, seqs, [feed.snapshot(choice)[1] if seq else None for choice, seq in enumerate(seqs)])

    def to_json(self) -> str:
        return json.dumps({"trimmed_seq": self.trimmed_seq, "seqs": self.seqs, "snapshots": self.snapshots})

    @classmethod
    def from_json(cls, text: str) -> Checkpoint:
        return cls(**json.loads(text))


def head_fields(head: Head, owner: str) -> dict[str, str]:
    return {
        "start": head.start,
        "num_choices": str(head.num_choices),
        "coalesce_ms": str(head.coalesce_ms),
        "resumable": str(int(head.resumable)),
        "owner": owner,
        **({} if head.key is None else {"key": head.key}),
    }


def read_head(run: str, fields: Mapping[str, str]) -> Head:
    numbers = int(fields["num_choices"]), int(fields["coalesce_ms"])
    return Head(run, fields["start"], *numbers, fields["resumable"] == "1", fields.get("key"))


def entry_id(entry: Entry) -> str:
    return f"{entry.seq}-0"


def entry_fields(entry: Entry, after: int) -> dict[str, str]:
    """An entry; `after` is the number of the one before it, so that a reader sees what it has missed."""
    return {"kind": entry.kind, "choice": str(entry.choice), "after": str(after), "text": entry.text}


def read_entry(identifier: str, fields: Mapping[str, Any]) -> Entry:
    kind, text = fields["kind"], fields["text"]
    ops = tuple(from_wire(op) for op in json.loads(f"[{text}]")) if kind == "delta" else ()
    return Entry(int(identifier.partition("-")[0]), kind, int(fields["choice"]), text, ops)
