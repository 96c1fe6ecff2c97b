"""What an operator may choose about runs, their events and their readers."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.feed import FeedLimits
from api.reader import ReaderLimits


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of the event log and of its readers.

    A finished run answers for `retention_s`, while at most `max_finished` are kept and they take at most `max_finished_bytes`;
    of `max_expired` more the log knows that they were there. `time_limit_s` ends a resumable run.
    `redis_url` puts the log into Redis Streams under keys that begin with `redis_prefix`, so that any replica answers.
    """

    retention_s: float = 600.0
    max_finished: int = 1024
    max_finished_bytes: int = 256 * 1024 * 1024
    max_expired: int = 16 * 1024
    time_limit_s: float = 3600.0
    feed: FeedLimits = field(default_factory=FeedLimits)
    reader: ReaderLimits = field(default_factory=ReaderLimits)
    redis_url: str | None = None
    redis_prefix: str = "constrained:"
