"""One step's packed batch: rows of several sequences laid end to end, with where each one's past lies.

Pure numpy; knows neither the model nor the scheduler's reasons.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens that one sequence feeds in one step: `token_ids` at positions `start` and on.

    The logits of its last `num_logits` rows are wanted.
    """

    token_ids: Seq[int]
    start: int
    blocks: Seq[int]
    num_logits: int

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """N rows of S sequences. `row_starts` [S + 1] cuts the rows by sequence; `ends` [S] is each one's length after the step."""

    token_ids: NDArray[np.int64]  # [N]
    positions: NDArray[np.int64]  # [N]
    row_starts: NDArray[np.int64]  # [S + 1]
    ends: NDArray[np.int64]  # [S]
    tables: NDArray[np.int64]  # [S, most blocks of a sequence]
    logit_rows: NDArray[np.int64]  # [rows whose logits are wanted]

    @property
    def num_rows(self) -> int:
        return len(self.token_ids)

    @property
    def num_sequences(self) -> int:
        return len(self.ends)


def pack(spans: Seq[Span]) -> PackedBatch:
    """Lay `spans` end to end, in their order."""
    counts = [len(span.token_ids) for span in spans]
    row_starts = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(counts, out=row_starts[1:])
    tables = np.zeros((len(spans), max(len(span.blocks) for span in spans)), np.int64)
    for table, span in zip(tables, spans, strict=True):
        table[: len(span.blocks)] = span.blocks
    starts = np.array([span.start for span in spans], np.int64)
    stops = row_starts[1:].tolist()
    return PackedBatch(
        token_ids=np.array([i for span in spans for i in span.token_ids], np.int64),
        positions=np.arange(row_starts[-1]) + np.repeat(starts - row_starts[:-1], counts),
        row_starts=row_starts,
        ends=starts + counts,
        tables=tables,
        logit_rows=np.array(
            [row for stop, span in zip(stops, spans, strict=True) for row in range(stop - span.num_logits, stop)], np.int64
        ),
    )
